package measure

import (
	"slices"
	"time"
)

// excuse is by how many of its largest send lags a client that was late is
// forgiven in each latency: it reads about as late as it sends.
const excuse = 3

// standing reports whether a trial that is not valid missed its objective all the
// same: where requests fail by the server's answer, or are late by more than
// the client could have made them. To that end its own drops are left out, and
// every limit on a latency is moved out by three times its largest send lag. A
// bound on times between tokens has no such measure of what the client adds to
// it, and a load that was not the one asked for condemns no server.
func (c *cohort) standing(o *Observation) bool {
	if o.OtherLoad {
		return false
	}
	if errors := c.sent().judgeErrors(c.trial.Objective.Errors); errors.state == Missed {
		return true
	}
	moved := *c.trial
	moved.Objective.Errors = -1
	moved.Objective.Bounds = nil
	var lag time.Duration
	if lags := c.sendLag().values; len(lags) > 0 {
		lag = excuse * slices.Max(lags)
	}
	for _, b := range c.trial.Objective.Bounds {
		if b, ok := b.movedOut(lag); ok {
			moved.Objective.Bounds = append(moved.Objective.Bounds, b)
		}
	}
	late := c.sent()
	late.trial = &moved
	return slices.ContainsFunc(late.judge(o), func(j judged) bool { return j.state == Missed })
}

// movedOut is the bound with its limits on what contains a client's lateness moved
// out by lag, without a limit on times between tokens; false where nothing of it
// is left.
func (b Bound) movedOut(lag time.Duration) (Bound, bool) {
	switch b.Metric {
	case TTFT, E2E:
		b.Limit += lag
		return b, true
	case Goodput:
		for _, limit := range []*time.Duration{&b.Limits.TTFT, &b.Limits.E2E} {
			if *limit > 0 {
				*limit += lag
			}
		}
		b.Limits.TPOT = 0
		return b, b.Limits != Limits{}
	}
	return b, false
}

// sent is the cohort without the requests that the client did not send.
func (c *cohort) sent() *cohort {
	out := *c
	out.drawn = [E2E + 1]*series{}
	out.records = slices.DeleteFunc(slices.Clone(c.records), func(r *Record) bool {
		return r.Outcome == Dropped || r.Outcome == InFlight && r.Sent < 0
	})
	return &out
}
