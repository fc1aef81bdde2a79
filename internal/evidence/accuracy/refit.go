package main

import (
	"fmt"
	"io"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"planner/internal/list"
	"planner/model"
)

// Refitting answers what the constants would be, and how well they would predict,
// had one model on one GPU not been there. The surrogate is the simulation made linear:
// every load is simulated at the defaults and once more with each knob turned up by
// 2 %; then a fit is weighted least squares on relative errors, with the priors of the
// knobs as further rows (the maximum of the posterior under normal errors). What the
// fitted knobs give for the loads left out is simulated again, not extrapolated.

// fitRow is one figure of one load.
type fitRow struct {
	model    string
	gpu      string
	kind     string
	residual float64 // predicted / measured - 1 at the defaults
	weight   float64 // 1 / standard deviation
	slope    []float64
}

// Standard deviations of what the equations cannot be expected to give: those of the
// errors that are left with all data in the fit.
const (
	tpotDeviation = 0.03
	ttftDeviation = 0.08
	slowTTFT      = 3000 // ms: longer ones are queueing for KV blocks, far from linear
	mostLoads     = 15   // that one model on one GPU counts as at most
	turn          = 0.02
)

// fitRows simulates what the surrogate needs and makes its rows.
func fitRows(servers []server, base [][]figures) ([]fitRow, error) {
	slopes := make([][][]figures, len(knobs))
	for k := range knobs {
		values := ones()
		values[k] += turn
		moved := list.Filter(servers, func(s server) bool { return knobs[k].moves(&s) && s.group != groupOverload })
		got, err := all(moved, func(s *server) model.Constants { return turned(s, values) })
		if err != nil {
			return nil, err
		}
		slopes[k] = make([][]figures, len(servers))
		next := 0
		for i := range servers {
			slopes[k][i] = base[i]
			if knobs[k].moves(&servers[i]) && servers[i].group != groupOverload {
				slopes[k][i] = got[next]
				next++
			}
		}
	}
	return rowsOf(servers, base, slopes), nil
}

// rowsOf makes rows of the loads that may be fitted: no overload, nothing omitted.
func rowsOf(servers []server, base [][]figures, slopes [][][]figures) (rows []fitRow) {
	count := map[string]int{}
	for i := range servers {
		s := &servers[i]
		if s.group == groupOverload {
			continue
		}
		for l := range s.loads {
			if s.loads[l].omitted == "" {
				count[s.pair()]++
			}
		}
	}
	for i := range servers {
		s := &servers[i]
		for l := range s.loads {
			if s.group == groupOverload || s.loads[l].omitted != "" {
				continue
			}
			share := math.Sqrt(min(1, mostLoads/float64(count[s.pair()])))
			for _, f := range []struct {
				metric metric
				sd     float64
			}{{metricTPOT, tpotDeviation}, {metricTTFT, ttftDeviation}} {
				want, at := s.loads[l].measured[f.metric], base[i][l][f.metric]
				if want == 0 || f.metric == metricTTFT && want > slowTTFT && s.group != groupTrace {
					continue
				}
				row := fitRow{model: s.model(), gpu: s.gpu(), kind: s.kind(), weight: share / f.sd, residual: at/want - 1}
				for k := range knobs {
					row.slope = append(row.slope, (slopes[k][i][l][f.metric]-at)/want/turn)
				}
				rows = append(rows, row)
			}
		}
	}
	return rows
}

// without returns the knobs fitted to all but one model, one GPU or one kind of model; the
// empty name leaves nothing out.
func without(rows []fitRow, name string) ([]float64, error) {
	n := len(knobs)
	a, b := mat.NewSymDense(n, nil), mat.NewVecDense(n, nil)
	for k := range knobs {
		w := 1 / (knobs[k].sd * knobs[k].sd)
		a.SetSym(k, k, w)
		b.SetVec(k, w*(knobs[k].prior-1))
	}
	for _, row := range rows {
		if row.model == name || row.gpu == name || row.kind == name {
			continue
		}
		w := row.weight * row.weight
		for i := range n {
			b.SetVec(i, b.AtVec(i)-w*row.slope[i]*row.residual)
			for j := i; j < n; j++ {
				a.SetSym(i, j, a.At(i, j)+w*row.slope[i]*row.slope[j])
			}
		}
	}
	var chol mat.Cholesky
	if !chol.Factorize(a) {
		return nil, fmt.Errorf("refit without %q: normal equations are singular", name)
	}
	var x mat.VecDense
	if err := chol.SolveVecTo(&x, b); err != nil {
		return nil, fmt.Errorf("refit without %q: %w", name, err)
	}
	values := ones()
	for k := range values {
		values[k] = max(values[k]+x.AtVec(k), 0)
	}
	return values, nil
}

// leftOut lists what is left out in turn: the models, the GPUs, the kinds of models.
func leftOut(servers []server) []string {
	return slices.Concat(names(servers, (*server).model), names(servers, (*server).gpu), names(servers, (*server).kind))
}

func ones() []float64 { return slices.Repeat([]float64{1}, len(knobs)) }

// refits returns the knobs fitted without every model and every GPU in turn, and, by
// the empty name, to all of them.
func refits(servers []server) (map[string][]float64, error) {
	base, err := all(servers, defaults)
	if err != nil {
		return nil, err
	}
	rows, err := fitRows(servers, base)
	if err != nil {
		return nil, err
	}
	fits := map[string][]float64{}
	for _, m := range append(leftOut(servers), "") {
		if fits[m], err = without(rows, m); err != nil {
			return nil, err
		}
	}
	return fits, nil
}

// printMethod says how what was left out was predicted.
func printMethod(w io.Writer) {
	fmt.Fprintf(w, `
left out: the constants below fitted to every other model, or every other GPU, by weighted least squares on relative errors
(TPOT %.0f %%, TTFT %.0f %%; each model on a GPU as %d loads at most), with what would be assumed without any served
run as priors. The fit uses the simulation made linear by turning each constant by %.0f %%; what it gives for
the loads left out is simulated again.
`, 100*tpotDeviation, 100*ttftDeviation, mostLoads, 100*turn)
}

// printKnobs writes what the fits gave: with everything, and the extremes over the
// models left out.
func printKnobs(w io.Writer, servers []server, fits map[string][]float64) {
	fmt.Fprintf(w, "\nconstants that served runs had a part in, as multiples of the default's time\n")
	fmt.Fprintf(w, "%-26s %16s %10s %26s   %s\n", "", "without any run", "fitted", "fitted, one left out", "assumed without any run")
	for k := range knobs {
		low, high, lowest := math.Inf(1), math.Inf(-1), ""
		for _, m := range leftOut(servers) {
			v := fits[m][k]
			if math.Abs(v-fits[""][k]) > max(math.Abs(low-fits[""][k]), math.Abs(high-fits[""][k])) || lowest == "" {
				lowest = m
			}
			low, high = min(low, v), max(high, v)
		}
		fmt.Fprintf(w, "%-26s %8.2f +- %4.2f %10.2f %10.2f to %4.2f (%s)   %s\n", knobs[k].name, knobs[k].prior, knobs[k].sd, fits[""][k], low, high, lowest, knobs[k].because)
	}
}
