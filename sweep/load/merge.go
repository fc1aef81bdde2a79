package load

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"planner/sweep/measure"
	"planner/sweep/workload"
)

// leastCommon is the share of the shortest window, or of the longest closed
// loop, in which all generators must have run together.
const leastCommon = 0.9

// Join makes one trial and one observation of what several generators brought
// who loaded a server at the same time: the shares of one schedule, or trials
// that each drew its own. The load is the sum, and the window what the windows
// have in common.
//
// The times of the generators are put on one axis by the clocks of their hosts.
// A latency is not touched by that: each request was timed by one clock. What
// trusts the clocks is which requests count (the ends of the window) and the
// number in flight over time; an error of some milliseconds is of no account
// there, one of seconds is.
func Join(parts []Part) (measure.Trial, measure.Observation, error) {
	if len(parts) < 2 {
		return measure.Trial{}, measure.Observation{}, errors.New("join parts: two at least are needed")
	}
	parts = slices.Clone(parts)
	shared := !parts[0].Share.Whole()
	slices.SortStableFunc(parts, func(a, b Part) int {
		return cmp.Or(cmp.Compare(a.Share.Number, b.Share.Number), a.Start.Compare(b.Start))
	})
	if err := sameLoad(parts); err != nil {
		return measure.Trial{}, measure.Observation{}, fmt.Errorf("join parts: %w", err)
	}
	t, doubts := sumOfTrials(parts), []string(nil)
	if !shared {
		doubts = unlikeOne(parts)
	}
	offsets := offsetsOf(parts)
	doubt, err := common(&t, parts, offsets)
	if err != nil {
		return t, measure.Observation{}, fmt.Errorf("join parts: %w", err)
	}
	if doubt != "" {
		doubts = append(doubts, doubt)
	}
	observed := make([]measure.Observation, len(parts))
	for i := range parts {
		observed[i] = shifted(&parts[i], offsets[i], i+1)
	}
	o := merge(observed...)
	if t.Closed() && o.Aborted == "" {
		// Each closed loop ends when its requests have: what the longer ones sent
		// after that counts as well.
		for i := range observed {
			o.End = max(o.End, observed[i].End)
		}
	}
	if o.Gaps != nil && narrowed(&t, parts, offsets) {
		o.Gaps, o.ClassGaps = nil, nil
		o.Remarks = append(o.Remarks, "inter-token times: not joined, as each generator's are of its own window, which is not the common one; generators that begin at the same instant have one window")
	}
	if !shared {
		renumber(o.Records)
	}
	o.OtherLoad = o.OtherLoad || len(doubts) > 0
	o.Doubts = append(o.Doubts, doubts...)
	o.Remarks = append(o.Remarks, clockRemark(offsets, shared))
	return t, o, nil
}

// sameLoad checks that the parts are of one load: the same traffic on the same
// server for the same objective, and, of the shares of a schedule, each one once
// and from the same instant.
func sameLoad(parts []Part) error {
	first := &parts[0]
	want, err := conditions(first)
	if err != nil {
		return err
	}
	for i := range parts {
		p := &parts[i]
		got, err := conditions(p)
		if err != nil {
			return err
		}
		switch {
		case p.Share.Of != first.Share.Of && !(p.Share.Whole() && first.Share.Whole()):
			return fmt.Errorf("part %s and part %s are not of one schedule", first.Share, p.Share)
		case !bytes.Equal(got, want):
			return fmt.Errorf("parts %d and %d differ in traffic, settings, window or objective:\n%s\n%s", 1, i+1, want, got)
		case first.Share.Whole():
		case p.Share.Number != i+1:
			return fmt.Errorf("part %d/%d is missing or there twice", i+1, first.Share.Of)
		case !p.Start.Equal(first.Start):
			return fmt.Errorf("part %s began at %v, part %s at %v: no parts of one trial", first.Share, first.Start, p.Share, p.Start)
		}
	}
	if n := first.Share.Of; n > 1 && len(parts) != n {
		return fmt.Errorf("%d parts of %d are there", len(parts), n)
	}
	return nil
}

// conditions is what the parts of one load have in common, as JSON.
func conditions(p *Part) ([]byte, error) {
	t := p.Trial
	same := measure.Trial{Knobs: t.Knobs, Workload: t.Workload, Objective: t.Objective}
	if t.Rate > 0 {
		same.Rate = 1
	}
	if !p.Share.Whole() {
		same.Rate, same.Seed, same.Warmup, same.Window, same.Cooldown = t.Rate, t.Seed, t.Warmup, t.Window, t.Cooldown
	}
	if t.Workload != nil {
		w := *t.Workload
		w.Seed = 0 // of independent generators each has its own; that of shares is the trial's
		same.Workload = &w
	}
	if t.Closed() {
		same.Concurrency = 1
	}
	return json.Marshal(measure.Measurement{Trial: same})
}

// sumOfTrials is the trial of the sum of the loads, with the window of the first.
func sumOfTrials(parts []Part) measure.Trial {
	t := parts[0].Trial
	for _, p := range parts[1:] {
		t.Rate += p.Trial.Rate
		t.Concurrency += p.Trial.Concurrency
		t.Requests += p.Trial.Requests
	}
	if n := parts[0].Share.Of; n > 1 {
		t.Rate = parts[0].Trial.Rate * float64(n)
	}
	t.Why = fmt.Sprintf("joined from %d generators", len(parts))
	return t
}

// unlikeOne says why the sum of trials that each drew its own requests is not
// the traffic that was asked for.
func unlikeOne(parts []Part) []string {
	var d []string
	for i := range parts {
		for j := range i {
			a, b := &parts[j].Trial, &parts[i].Trial
			if replayed := a.Workload != nil && a.Workload.Replayed(); replayed || a.Seed == b.Seed {
				d = append(d, fmt.Sprintf("generators %d and %d sent the same requests (seed %d): give each a seed of its own, or a part of one schedule", j+1, i+1, a.Seed))
			}
		}
	}
	if w := parts[0].Trial.Workload; w != nil && slices.ContainsFunc(w.Shapes, func(s workload.Shape) bool { return s.Prefix.Groups > 0 }) {
		d = append(d, fmt.Sprintf("each generator had shared prefixes of its own, so the server saw %d times as many groups; parts of one schedule share them", len(parts)))
	}
	return d
}

// offsetsOf is how much later than the first each generator began.
func offsetsOf(parts []Part) []time.Duration {
	first := parts[0].Start
	for i := range parts {
		if parts[i].Start.Before(first) {
			first = parts[i].Start
		}
	}
	out := make([]time.Duration, len(parts))
	for i := range parts {
		out[i] = parts[i].Start.Sub(first)
	}
	return out
}

// common gives the trial the window that all generators have in common, and says
// what is in doubt if that is not most of it. Generators that never ran together
// are an error.
func common(t *measure.Trial, parts []Part, offsets []time.Duration) (doubt string, err error) {
	const forever = time.Duration(1<<63 - 1)
	from, to, over := time.Duration(0), forever, forever
	shortest, longest := forever, time.Duration(0)
	for i, at := range offsets {
		p := &parts[i].Trial
		begin, end := at+p.Warmup, at+p.Warmup+p.Window
		if p.Closed() || p.Window <= 0 {
			begin, end = at, at+parts[i].Obs.End
		}
		from, to, over = max(from, begin), min(to, end), min(over, end+p.Cooldown)
		shortest, longest = min(shortest, end-begin), max(longest, end-begin)
	}
	if to <= from {
		return "", errors.New("by their clocks the generators did not run at the same time")
	}
	whole := shortest
	if t.Closed() || t.Window <= 0 {
		whole = longest
	} else {
		t.Warmup, t.Window, t.Cooldown = from, to-from, over-to
	}
	if share := float64(to-from) / float64(whole); share < leastCommon {
		doubt = fmt.Sprintf("the generators ran together for %.0f %% of the time only", 100*share)
	}
	return doubt, nil
}

// narrowed reports whether the window of the joined trial is not that of each part.
func narrowed(t *measure.Trial, parts []Part, offsets []time.Duration) bool {
	if t.Closed() || t.Window <= 0 {
		return false
	}
	for i, at := range offsets {
		if p := &parts[i].Trial; at+p.Warmup != t.Warmup || p.Window != t.Window {
			return true
		}
	}
	return false
}

// shifted is what a generator observed, its times counted from the start of the
// first one.
func shifted(p *Part, by time.Duration, number int) measure.Observation {
	o := p.Obs
	o.End += by
	o.Records = slices.Clone(o.Records)
	for i := range o.Records {
		r := &o.Records[i]
		for _, at := range []*time.Duration{&r.Due, &r.Sent, &r.First, &r.Last} {
			if *at >= 0 {
				*at += by
			}
		}
	}
	mark := func(texts []string) (out []string) {
		for _, s := range texts {
			out = append(out, fmt.Sprintf("generator %d: %s", number, s))
		}
		return out
	}
	o.Doubts, o.Remarks = mark(o.Doubts), mark(o.Remarks)
	return o
}

// renumber gives the requests of independent generators numbers of their own, in
// order of time.
func renumber(records []measure.Record) {
	slices.SortStableFunc(records, func(a, b measure.Record) int { return cmp.Compare(a.Due, b.Due) })
	for i := range records {
		records[i].ID = i
	}
}

func clockRemark(offsets []time.Duration, shared bool) string {
	if shared {
		return "joined on the hosts' clocks, by which all began at the same instant; latencies do not depend on that"
	}
	return fmt.Sprintf("joined on the hosts' clocks, by which the generators began within %v; latencies do not depend on that", slices.Max(offsets).Round(time.Millisecond))
}

// merge joins what several generators observed of one trial, each of which sent
// a part of its schedule. Each must have counted time from the same start.
func merge(parts ...measure.Observation) measure.Observation {
	if len(parts) == 0 {
		return measure.Observation{}
	}
	all := parts[0]
	all.Records = slices.Clone(all.Records)
	all.Doubts = slices.Clone(all.Doubts)
	all.Remarks = slices.Clone(all.Remarks)
	for _, p := range parts[1:] {
		all.Records = append(all.Records, p.Records...)
		// A request is known to be in flight only as long as all of them looked.
		all.End = min(all.End, p.End)
		all.Doubts = append(all.Doubts, p.Doubts...)
		all.Remarks = append(all.Remarks, p.Remarks...)
		all.OtherLoad = all.OtherLoad || p.OtherLoad
		if all.Aborted == "" {
			all.Aborted = p.Aborted
		}
		all.Gaps = mergeGaps(all.Gaps, p.Gaps)
		all.ClassGaps = mergeClasses(all.ClassGaps, p.ClassGaps)
	}
	slices.SortStableFunc(all.Records, func(a, b measure.Record) int { return a.ID - b.ID })
	return all
}

// mergeGaps adds two histograms; nil, not recorded, on either side is nil.
func mergeGaps(a, b *hdrhistogram.Histogram) *hdrhistogram.Histogram {
	if a == nil || b == nil {
		return nil
	}
	return sumOf(a, b)
}

// mergeClasses adds the histograms of the classes of two generators, one of
// which may have met fewer of them.
func mergeClasses(a, b []*hdrhistogram.Histogram) []*hdrhistogram.Histogram {
	if len(a) == 0 || len(b) == 0 {
		return nil
	}
	if len(a) > len(b) {
		a, b = b, a
	}
	out := slices.Clone(b)
	for i := range a {
		out[i] = mergeGaps(a[i], b[i])
	}
	return out
}
