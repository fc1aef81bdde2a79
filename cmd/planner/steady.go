package main

import (
	"time"

	"planner/model"
	"planner/sweep/measure"
)

// settling is how long traffic of the workload takes to become steady on an engine
// with these knobs, and how long a conversation lasts: both 0 where there are
// neither conversations nor shared prefixes. How long requests take is read off
// the trials.
func (d *decision) settling(k measure.Knobs, rate float64) (settling, course time.Duration) {
	w := &d.cfg.Workload
	latency := d.meanLatency(k, rate)
	if settling = w.Settling(rate, latency); settling > 0 && w.Turns > 1 {
		course = w.Course(latency)
	}
	return settling, course
}

// meanLatency is the mean time of a request in that trial of the knobs, of those the
// server kept up with, whose rate comes nearest to a rate from below; 0 if there is
// none.
func (d *decision) meanLatency(k measure.Knobs, rate float64) time.Duration {
	nearest, latency := 0.0, time.Duration(0)
	for i := range d.trials {
		m := &d.trials[i]
		if m.Trial.Knobs == k && kept(m) && m.Trial.Rate <= rate && m.Trial.Rate > nearest && m.E2E.Mean > 0 {
			nearest, latency = m.Trial.Rate, m.E2E.Mean
		}
	}
	return latency
}

// kept reports whether the server kept up with a trial of open load.
func kept(m *measure.Measurement) bool {
	return !m.Trial.Closed() && m.Rejected == "" && m.Aborted == "" && !m.Overloaded
}

// cachedRequest is the mean request with what the prefix cache held of its prompt in
// the trials of the knobs: the largest share that was seen in a trial that the server
// kept up with, so that the bounds that follow are bounds of all of them.
func (d *decision) cachedRequest(k measure.Knobs) model.MeanRequest {
	q := meanRequest(d.cfg)
	if !k.PrefixCaching {
		return q
	}
	share := 0.0
	for i := range d.trials {
		if m := &d.trials[i]; m.Trial.Knobs == k && kept(m) && m.Server.HitRate != nil {
			share = max(share, *m.Server.HitRate)
		}
	}
	q.Cached = share * q.Prompt
	q.Shared, q.Texts = d.cfg.Workload.SharedText()
	return q
}
