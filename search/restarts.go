package search

import (
	"math"
	"slices"

	"planner/internal/note"
	"planner/sweep/measure"
)

// start is one start of the engine: the knobs that it ran with and the trials under
// load on it that count. final says that one of these is of a final search.
type start struct {
	knobs  measure.Knobs
	trials []measure.Measurement
	final  bool
}

// keep adds a trial to the start of the engine that it ran on.
func (r *Race) keep(m *measure.Measurement) {
	if n := len(r.starts); n == 0 || m.Trial.Knobs != r.starts[n-1].knobs || m.Rejected.Text != "" {
		r.starts = append(r.starts, start{knobs: m.Trial.Knobs})
	}
	if m.Valid && m.Rejected.Text == "" && !m.Trial.Closed() {
		on := &r.starts[len(r.starts)-1]
		on.trials, on.final = append(on.trials, *m), on.final || r.phase == finishing
	}
}

// startsOf lists the starts of a knob set with a trial that counts, in order. final
// counts those that the final search ran on.
func (r *Race) startsOf(k measure.Knobs) (of []start, final int) {
	for _, s := range r.starts {
		if s.knobs != k || len(s.trials) == 0 {
			continue
		}
		of = append(of, s)
		if s.final {
			final++
		}
	}
	return of, final
}

// takeTurns proposes trials of the final searches by turns of turnTrials.
func (r *Race) takeTurns() []measure.Trial {
	for range 2 * len(r.finals) {
		c := r.finals[r.turn/turnTrials%len(r.finals)]
		if c.status != Unable {
			if batch := r.follow(c); len(batch) > 0 {
				r.turn++
				return batch
			}
		}
		r.turn += turnTrials - r.turn%turnTrials
	}
	return nil
}

// allowForStarts widens what the final searches found by what the rate differs
// by from one start of the engine to the next, or says that this is not known.
func (r *Race) allowForStarts(out *RaceResult) {
	var sharp []Estimate
	starts, final := r.startsOf(out.Knobs)
	for _, on := range starts {
		if e := r.finals[0].search.alone(on.trials); e.Value > 0 && (e.High-e.Low)/2 < wide*e.Value {
			sharp = append(sharp, e)
		}
	}
	if len(sharp) < leastStarts {
		out.warn(note.New(note.FewStarts, len(sharp)))
		return
	}
	sigma := betweenStarts(sharp)
	if sigma <= 0 {
		return
	}
	out.Best.Estimate = out.Best.Estimate.widen(sigma, final)
	if out.Default != nil {
		_, final := r.startsOf(r.cfg.Default.Knobs)
		out.Default.Estimate = out.Default.Estimate.widen(sigma, final)
	}
	out.warn(note.New(note.StartsDiffer, 100*sigma, len(sharp)))
}

// warn adds a warning to both results, as either may be chosen.
func (r *RaceResult) warn(n note.Note) {
	r.Best.Warnings = append(slices.Clip(r.Best.Warnings), n)
	if r.Default != nil {
		r.Default.Warnings = append(slices.Clip(r.Default.Warnings), n)
	}
}

// alone is what some trials say by themselves, without any prediction of the
// rate; zero if they say nothing.
func (s *MaxRate) alone(trials []measure.Measurement) Estimate {
	seen := make([][]likelihood, len(s.bounds))
	for i := range trials {
		shown, _ := s.shown(&trials[i])
		for j := range shown {
			if _, ok := trials[i].Count(s.bounds[j].name); ok {
				seen[j] = append(seen[j], shown[j])
			}
		}
	}
	parts := make(posteriors, len(s.bounds))
	for j := range s.bounds {
		b := s.bounds[j]
		b.max.median = 0
		if len(s.posteriors) > 0 {
			// How steep it is, and how requests clump, is the server's whatever the start.
			known := s.posteriors[j]
			b.kappa, b.phi = lognormal{known.kappa, predicted * kappaSpread}, lognormal{known.phi, predicted * phiSpread}
		}
		if len(seen[j]) == 0 {
			return Estimate{}
		}
		parts[j] = b.infer(seen[j])
	}
	return parts.estimate(s.cfg.Confidence)
}

// betweenStarts estimates the standard deviation of ln capacity between restarts of a
// server from one estimate a restart: what the spread of the values has beyond
// what their own intervals explain (the moment estimator of DerSimonian and
// Laird 1986, unweighted). Fewer than three restarts say nothing; it is then 0.
func betweenStarts(restarts []Estimate) float64 {
	if len(restarts) < leastStarts {
		return 0
	}
	mean, within := 0.0, 0.0
	n := float64(len(restarts))
	for _, e := range restarts {
		mean += math.Log(e.Value) / n
		sd := math.Log(e.High/e.Low) / (2 * normalTail(e.Confidence))
		within += sd * sd / n
	}
	between := 0.0
	for _, e := range restarts {
		d := math.Log(e.Value) - mean
		between += d * d / (n - 1)
	}
	return math.Sqrt(max(between-within, 0))
}

// widen adds what starts differ by to an estimate that rests on the given
// number of them: the interval grows by the normal quantile of its confidence
// times sigma/sqrt(restarts).
func (e Estimate) widen(sigma float64, restarts int) Estimate {
	if sigma <= 0 {
		return e
	}
	sd := sigma / math.Sqrt(float64(max(restarts, 1)))
	f := math.Exp(normalTail(e.Confidence) * sd)
	e.Low /= f
	e.High *= f
	e.Safe /= math.Exp(quantile95 * sd)
	return e
}

// normalTail is the standard normal quantile that a central interval of the
// given confidence reaches.
func normalTail(confidence float64) float64 {
	return math.Sqrt2 * math.Erfinv(confidence)
}
