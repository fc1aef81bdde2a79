package virtual

import (
	"math"
	"math/rand/v2"
	"time"

	"planner/internal/note"
	"planner/sweep"
	"planner/sweep/measure"
)

// Bench runs trials on a server.
type Bench struct {
	Server Server
	// Drift is the standard deviation of ln capacity between trials, as if the
	// server was started anew for each.
	Drift float64
	// NoAbort lets hopeless trials run to their end.
	NoAbort bool
}

// Run runs one trial and reduces it, with the early end that a live runner
// gives a hopeless one.
func (b Bench) Run(t measure.Trial) measure.Measurement {
	speed := 1.0
	if b.Drift > 0 {
		speed = math.Exp(b.Drift * rand.New(rand.NewPCG(t.Seed, streamDrift)).NormFloat64())
	}
	requests := t.Schedule()
	if t.Closed() {
		return measure.Reduce(t, measure.Observation{Records: b.alone(t, speed)})
	}
	records := b.Server.Serve(requests, speed, t.Seed)
	if !b.NoAbort {
		if at, why := Stopped(&t, records); why.Text != "" {
			return measure.Reduce(t, measure.Observation{Records: Known(records, at), End: at, Aborted: why})
		}
	}
	return measure.Reduce(t, measure.Observation{Records: records})
}

// alone serves the requests of a closed loop with one slot.
func (b Bench) alone(t measure.Trial, speed float64) []measure.Record {
	requests := t.Schedule()
	out := make([]measure.Record, 0, len(requests))
	at := time.Duration(0)
	for i := range requests {
		r := b.Server.Serve(requests[i:i+1], speed, t.Seed+uint64(i))[0]
		r.Due, r.Sent, r.First, r.Last = r.Due+at, r.Sent+at, r.First+at, r.Last+at
		at = r.Last
		out = append(out, r)
	}
	return out
}

// Stopped says when and why a runner ends the trial early; why is empty when
// it lets it run.
func Stopped(t *measure.Trial, records []measure.Record) (at time.Duration, why note.Reason) {
	end := t.Warmup + t.Window
	for at = t.NextLook(0); at < end; at = t.NextLook(at) {
		if why = measure.Hopeless(t, Known(records, at), at); why.Text != "" {
			return at, why
		}
	}
	return 0, note.Reason{}
}

// Known is what a client knows of the requests at a time: nothing of those that
// are not due, and no event that has not happened.
func Known(records []measure.Record, at time.Duration) []measure.Record {
	out := make([]measure.Record, 0, len(records))
	for _, r := range records {
		if r.Due > at {
			break
		}
		if r.First > at {
			r.First = measure.Never
		}
		if r.Last > at {
			r.Last, r.Outcome = measure.Never, measure.InFlight
		}
		out = append(out, r)
	}
	return out
}

// Drive runs a search to its end, and counts its trials.
func Drive(s sweep.Source, run func(measure.Trial) measure.Measurement) (trials int) {
	for batch := s.Next(); len(batch) > 0; batch = s.Next() {
		for _, t := range batch {
			s.Observe(run(t))
			trials++
		}
	}
	return trials
}
