package measure

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"planner/internal/list"
	"planner/internal/note"
	"planner/internal/stat"
	"planner/sweep/workload"
)

// Limits of a valid trial.
const (
	// littleShare is the largest relative difference between the mean number in flight and rate x
	// latency.
	littleShare = 0.05
	// sigmas is how many standard deviations a figure must be off to count against a trial.
	sigmas = 5
	// lagMost bounds the largest send lag as a share of the tightest limit on a latency that
	// includes it; leastLag is the lag that no client can avoid.
	lagMost  = 0.2
	leastLag = time.Millisecond
)

// doubts lists the reasons not to trust the figures of a trial and the judgements based on them.
func (c *cohort) doubts(m *Measurement, all []judged, o *Observation) note.Notes {
	if len(c.records) == 0 {
		return note.Notes{note.New(note.NoRequests)}
	}
	dropped := m.Failures[Dropped.String()]
	unsent := c.count(func(r *Record) bool { return r.Outcome == InFlight && r.Sent < 0 && c.end-r.Due > time.Second })
	want, n := c.expected(), float64(len(c.records))
	inFlight, law, ok := c.littlesLaw()
	return slices.Concat(note.If(dropped > 0, note.RequestsDropped, dropped, m.Requests), note.If(unsent > 0, note.RequestsUnsent, unsent),
		c.lagDoubt(all, o), note.If(want > 0 && math.Abs(n-want) > sigmas*math.Sqrt(want), note.ArrivalsOff, len(c.records), want),
		note.If(!ok && !m.Overloaded && m.Aborted.Text == "", note.NotStationary, inFlight, law))
}

// lagDoubt returns the reasons to doubt a trial because its client was late by an amount that
// matters: it sent late, or it stood still, and so read late.
func (c *cohort) lagDoubt(all []judged, o *Observation) note.Notes {
	slo, most, d := c.trial.Objective, time.Duration(0), o.Pauses
	if lags := slices.Sorted(slices.Values(c.sendLag().values)); len(lags) > 0 {
		most = lags[len(lags)-1]
		p99, allowed := stat.Quantile(lags, 0.99), slo.ClientLag()
		d = slices.Concat(note.If(p99 > allowed, note.SendLag, p99.Round(10*time.Microsecond), allowed), d)
	}
	tightest := slo.tightest(false)
	allowed := max(leastLag, time.Duration(lagMost*float64(tightest)))
	if len(o.Pauses) > 0 && o.Pause > allowed || len(d) > 0 && !c.tolerates(max(most, o.Pause), all, o) {
		return d
	}
	return note.If(tightest > 0 && most > allowed, note.LargestSendLag, most.Round(10*time.Microsecond), allowed)
}

// tolerates reports whether no judgement depends on a client that was late by at most lag. A late
// client makes a server look slow, never fast, so it is enough that under limits which forgive the
// lag the value of each bound stays within its interval, not below Low.
func (c *cohort) tolerates(lag time.Duration, all []judged, o *Observation) bool {
	for _, moved := range c.forgiving(lag).judge(o) {
		for _, j := range all {
			if j.Bound == moved.Bound && moved.Value < j.Low {
				return false
			}
		}
	}
	return len(all) > 0
}

// sendLag collects how long after its intended time each request was sent; 0 for one sent early.
func (c *cohort) sendLag() *series {
	return c.collect(func(r *Record) (time.Duration, bool, bool) { return max(r.Sent-r.Due, 0), false, r.Sent >= 0 })
}

// expected returns the expected number of requests due in the window if that number is Poisson
// distributed, otherwise 0.
func (c *cohort) expected() float64 {
	w := c.trial.Workload
	if w == nil || w.Arrivals != workload.Poisson || w.Turns > 1 || c.trial.Closed() {
		return 0
	}
	return c.trial.Rate * c.length()
}

// littlesLaw compares the mean number in flight with the arrival rate times the mean time in the
// server S (Little 1961). They differ by the request-seconds of requests that cross an end of the
// window. Those are random with variance 2/3 rate E[S^3] if requests are independent, but unbounded
// if load and server are out of balance. A trial without warm-up starts empty, out of balance by
// design, and if more than 1 % of the requests had not ended, their times are unknown: neither
// counts against the trial.
func (c *cohort) littlesLaw() (inFlight, law float64, ok bool) {
	if c.trial.Closed() || c.trial.Rate <= 0 || c.trial.Warmup <= 0 || c.to <= c.from {
		return 0, 0, true
	}
	inFlight = c.inFlight(c.from, 1)[0]
	if float64(c.count((*Record).open)) > censoredShare*float64(len(c.records)) {
		return 0, 0, true
	}
	cubes := 0.0
	for _, r := range c.records {
		s := (c.left(r) - r.Due).Seconds()
		law += s
		cubes += s * s * s
	}
	noise := math.Sqrt(2.0/3*cubes/c.length()) / c.length()
	law /= c.length()
	return inFlight, law, math.Abs(inFlight-law) <= max(littleShare*law, sigmas*noise)
}

// excuse is how many times its largest send lag a late client is forgiven in each latency: it reads
// about as late as it sends (decision 0005).
const excuse = 3

// standing reports whether an invalid trial misses its objective all the same: of the requests that
// the client did send too many fail, or they are late by more than the client can have made them,
// or, if it sent them all, the backlog grows by more than that. Every limit on a latency is raised
// by what the client adds. A trial whose load was not the one asked for, or whose server drains a
// backlog, condemns no server.
func (c *cohort) standing(o *Observation) bool {
	if o.OtherLoad || c.draining() {
		return false
	}
	sent := c.sent()
	if sent.judgeErrors(c.trial.Objective.Errors).state == Missed {
		return true
	}
	lag := slices.Max(append(c.sendLag().values, o.Pause))
	flow := c.judgeThroughput(false)
	if flow.state == Missed && flow.Low > float64(excuse*lag)/float64((c.to-c.from)/2) && len(sent.records) == len(c.records) {
		return true
	}
	late := sent.forgiving(lag)
	late.trial.Objective.Errors = -1
	return slices.ContainsFunc(late.judge(o), func(j judged) bool { return j.state == Missed })
}

// forgiving returns the cohort under limits raised by [excuse] times a client's lag.
func (c *cohort) forgiving(lag time.Duration) *cohort {
	out, trial := c.anew(), *c.trial
	tokens := list.Sum(c.records, func(r *Record) float64 { return float64(r.Output) / float64(len(c.records)) })
	trial.Objective.Bounds = list.Map(trial.Objective.Bounds, func(b Bound) Bound { return b.movedOut(excuse*lag, tokens) })
	out.trial = &trial
	return out
}

// movedOut returns the bound with its limits raised by what a client that reads late by lag adds:
// all of the lag, except that a limit on the time per token rises by lag/(tokens-1).
func (b Bound) movedOut(lag time.Duration, tokens float64) Bound {
	each := time.Duration(float64(lag) / max(tokens-1, 1))
	switch b.Metric {
	case TPOT:
		b.Limit += each
	case Goodput:
		move := func(limit *time.Duration, by time.Duration) {
			if *limit > 0 {
				*limit += by
			}
		}
		move(&b.Limits.TTFT, lag)
		move(&b.Limits.TPOT, each)
		move(&b.Limits.E2E, lag)
	default:
		b.Limit += lag
	}
	return b
}

// anew returns the cohort with nothing cached.
func (c *cohort) anew() *cohort {
	out := *c
	out.drawn, out.parts = map[Metric]*series{}, map[string]*cohort{}
	return &out
}

// sent returns the cohort without the requests that the client did not send.
func (c *cohort) sent() *cohort {
	out := c.anew()
	out.records = list.Filter(c.records, func(r *Record) bool {
		return r.Outcome != Dropped && (r.Outcome != InFlight || r.Sent >= 0)
	})
	return out
}

// leastSent is the least share of the offered requests that conversations must send in the window
// for the figures to be those of the offered rate. A measurement below it says so, and a search
// counts it at a lower rate: see [Measurement.Carried].
const leastSent = 0.95

// unsteady returns why conversations sent fewer requests in the window than were offered, nil if
// they did not: a schedule begins with no conversations under way, and a turn is sent only when the
// one before it has ended. The requests of a conversation form a clump, which multiplies the
// variance of their number by Turns.
func (c *cohort) unsteady(m *Measurement) note.Notes {
	w := c.trial.Workload
	if w == nil || w.Turns <= 1 || c.trial.Closed() || c.trial.Rate <= 0 || c.length() <= 0 {
		return nil
	}
	offered := c.trial.Rate
	if steady := w.Steady(c.from, c.to); steady < leastSent {
		course := w.Course(max(m.E2E.Mean, 0))
		return note.Notes{note.New(note.ConversationsStarting, m.Sent, offered, course.Round(time.Second), c.trial.Warmup)}
	}
	want := offered * c.length()
	missing := want - m.Sent*c.length()
	return note.If(missing > max((1-leastSent)*want, 3*math.Sqrt(want*float64(w.Turns))), note.TurnsWaited, m.Sent, offered)
}

// mostComplaints is how many kinds of failure are reported with their details.
const mostComplaints = 3

// complaints describes the failed requests by outcome and detail, the most frequent first: "217
// requests ended with http status: 429: rate limit". Failures without detail appear in the tally
// alone.
func complaints(records []*Record) note.Notes {
	type complaint struct {
		outcome Outcome
		detail  string
	}
	seen := map[complaint]int{}
	for _, r := range records {
		if r.failed() && r.Detail != "" {
			seen[complaint{r.Outcome, r.Detail}]++
		}
	}
	kinds := slices.SortedFunc(maps.Keys(seen), func(a, b complaint) int {
		return cmp.Or(cmp.Compare(seen[b], seen[a]), cmp.Compare(a.outcome, b.outcome), cmp.Compare(a.detail, b.detail))
	})
	var out note.Notes
	for _, k := range kinds[:min(len(kinds), mostComplaints)] {
		how := strings.ReplaceAll(k.outcome.String(), "_", " ")
		out = append(out, note.New(note.FailedWith, seen[k], how, k.detail))
	}
	more := len(kinds) - mostComplaints
	return append(out, note.If(more > 0, note.FailedOtherwise, more)...)
}

// unresolved names all quantiles that the sample does not resolve in one remark.
func (m *Measurement) unresolved() note.Notes {
	var sizes []int
	names := map[int][]string{}
	for metric := TTFT; metric <= E2E; metric++ {
		s := m.Latency(metric)
		for _, q := range Statistics[1:] {
			if s.Stat(q) != Unresolved || s.N == 0 {
				continue
			}
			if names[s.N] == nil {
				sizes = append(sizes, s.N)
			}
			names[s.N] = append(names[s.N], Bound{Metric: metric, Quantile: q}.String())
		}
	}
	parts := list.Map(sizes, func(n int) string { return fmt.Sprintf("%d values do not resolve %s", n, strings.Join(names[n], ", ")) })
	return note.If(len(parts) > 0, note.QuantilesUnresolved, strings.Join(parts, "; "))
}

// remarks lists what is worth knowing besides doubts: quantiles that the sample does not resolve,
// open and failed requests, conversations that sent too little, and overload.
func (m *Measurement) remarks(c *cohort) note.Notes {
	open := c.count((*Record).open)
	return slices.Concat(m.unresolved(), note.If(open > 0, note.RequestsOpen, open, m.Requests),
		note.If(m.Failed > 0, note.RequestsFailed, m.Failed, m.Requests), complaints(c.records), c.unsteady(m), note.If(m.Overloaded, note.Overloaded))
}
