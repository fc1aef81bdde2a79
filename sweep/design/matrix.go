package design

import (
	"errors"
	"fmt"

	"planner/internal/config"
	"planner/sweep"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

// HypothesisResult says what became of a hypothesis.
type HypothesisResult string

// The findings.
const (
	Unclear HypothesisResult = "undecided"
	Held    HypothesisResult = "held"
	Refuted HypothesisResult = "refuted"
	NotRun  HypothesisResult = "not_run"
)

// MatrixRow is one kind of traffic of a matrix: what is asked of it, what was
// expected, and what came out.
type MatrixRow struct {
	ID         string           `json:"row"`
	Name       string           `json:"name"`
	Question   string           `json:"question"`
	Hypothesis string           `json:"hypothesis"`
	Finding    HypothesisResult `json:"finding"`
	Outcome    string           `json:"outcome"`
	// Trials are the numbers of the row's measurements.
	Trials []int `json:"trials"`
}

// matrixRow is one kind of traffic: what is asked, what is expected, the loads
// that tell, and how they are read.
type matrixRow struct {
	id, name, question, hypothesis string
	// missing says why the row cannot run; empty if it can.
	missing string
	loads   []matrixLoad
	// read says what came of the hypothesis. get finds the measurement of a load by
	// its key, also of another row; nil for one that brought nothing.
	read func(get func(key string) *measure.Measurement) (HypothesisResult, string)
}

// matrixLoad is one trial of a row.
type matrixLoad struct {
	// key names it: "A 10 %".
	key      string
	workload *workload.Workload
	// share is that of the rate predicted for the row's first workload.
	share float64
	// temperature is that of the prefix cache, "" for what the knobs say of it.
	temperature string
	// requests that are wanted in the window.
	requests float64
}

// matrixTrials lists the trials of a matrix on one set of knobs; why a trial is
// run is the key of its load. The longest request of all rows sets max_model_len, so that one
// engine serves them all.
func matrixTrials(cfg *config.Config, g sweep.Ground, s Grid, k measure.Knobs) (rows []matrixRow, trials []measure.Trial, err error) {
	limit := 0
	if cfg.Model.Known {
		limit = cfg.Model.Arch.MaxPosition
	}
	rows = matrixRows(cfg, limit)
	for _, row := range rows {
		for _, l := range row.loads {
			k.MaxModelLen = max(k.MaxModelLen, l.workload.Longest())
		}
	}
	for i, row := range rows {
		if row.missing != "" {
			continue
		}
		most := 0.0
		for j, l := range row.loads {
			l.workload.MaxLen = k.MaxModelLen
			if j == 0 {
				if most, err = rowRate(g, cfg.Objective, l.workload, k); err != nil {
					return nil, nil, err
				}
			}
			t := measure.Trial{Knobs: k, Workload: l.workload, Rate: significant(l.share*most, 3), Objective: cfg.Objective, Whole: true, Why: l.key,
				Seed: cfg.Workload.Seed + 100*uint64(i+1)}
			if l.temperature != "" {
				t.Knobs.PrefixCaching = l.temperature != noCache
			}
			s.windows(cfg, &t, l.temperature, l.requests)
			trials = append(trials, t)
		}
	}
	return rows, trials, nil
}

// rowRate is the predicted maximum rate of a workload: without the limits where it
// meets them at no rate, since a matrix asks what the engine does.
func rowRate(g sweep.Ground, objective measure.SLO, w *workload.Workload, k measure.Knobs) (float64, error) {
	rate, err := predictedRate(g, w, objective, k)
	if err == nil && rate <= 0 {
		rate, err = predictedRate(g, w, measure.SLO{}, k)
	}
	if err == nil && rate <= 0 {
		err = errors.New("sweep --matrix: the rates are shares of a predicted maximum, which takes model and hardware in the configuration")
	}
	return rate, err
}

func readMatrix(rows []matrixRow, trials []measure.Measurement) []MatrixRow {
	byKey := map[string]*measure.Measurement{}
	for i := range trials {
		byKey[trials[i].Trial.Why] = &trials[i]
	}
	var out []MatrixRow
	for _, row := range rows {
		r := MatrixRow{ID: row.id, Name: row.name, Question: row.question, Hypothesis: row.hypothesis}
		for _, l := range row.loads {
			if m := byKey[l.key]; m != nil {
				r.Trials = append(r.Trials, m.Trial.Number)
			}
		}
		switch {
		case row.missing != "":
			r.Finding, r.Outcome = NotRun, row.missing
		default:
			r.Finding, r.Outcome = row.read(func(key string) *measure.Measurement { return byKey[key] })
		}
		out = append(out, r)
	}
	return out
}

func verdictOf(holds bool) HypothesisResult {
	if holds {
		return Held
	}
	return Refuted
}

// withoutFigures is the finding of a row whose figures are not all there.
func withoutFigures(what string) (HypothesisResult, string) {
	return Unclear, fmt.Sprintf("%s is not known: a trial failed, or was too short to resolve it", what)
}
