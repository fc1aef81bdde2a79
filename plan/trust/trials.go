package trust

import (
	"fmt"
	"math"
	"slices"
	"time"

	"planner/internal/list"
	"planner/internal/note"
	"planner/sweep/measure"
)

func (d *dataset) warmUp() (ItemState, string) {
	near, _ := d.near(2)
	if why, part := noted(near, note.NotStationary, note.ConversationsStarting); part > some {
		return Fail, why
	}
	cold := share(d.used, func(m *measure.Measurement) bool { return m.Trial.Warmup <= 0 })
	switch {
	case len(d.used) == 0:
		return Fail, "no trial can be trusted"
	case cold > some:
		return Unknown, fmt.Sprintf("%.0f %% of the trials say nothing of load ahead of the window", 100*cold)
	}
	least := list.Least(list.Map(d.used, func(m *measure.Measurement) time.Duration { return m.Trial.Warmup }))
	return Pass, "load of " + seconds(least) + " or more ahead of each window is not counted"
}

func (d *dataset) openLoop() (ItemState, string) {
	why, part := noted(d.ran, note.LoopClosedBySlots, note.LoopClosedByLimit, note.SentAtOnce, note.Flood)
	// One request at a time shows an idle engine, which needs no open loop.
	closed := share(d.ran, func(m *measure.Measurement) bool { return m.Trial.Closed() && m.Trial.Concurrency > 1 })
	unknown := share(d.ran, func(m *measure.Measurement) bool {
		return !m.Trial.Closed() && (m.Trial.Rate <= 0 || m.Trial.Workload == nil && m.Requests == 0)
	})
	switch {
	case part > some:
		return Fail, why
	case closed > some:
		return Fail, "clients waited for answers before they asked again: under load they ask less, as no users do"
	case unknown > some:
		return Unknown, "the trials do not say how requests were sent"
	}
	return Pass, "requests are sent when they are due, however late the server is"
}

// samples checks that the trials near the maximum resolve the quantiles with limits; without an objective there
// are none to resolve.
func (d *dataset) samples() (ItemState, string) {
	most, resolving := 0, 0
	near, where := d.near(1.25)
	for _, m := range near {
		most = max(most, m.Requests)
		slo, own := m.Trial.Objective, !m.Trial.Objective.Empty()
		if !own {
			slo = d.Objective
		}
		ok := !slo.Empty()
		for _, b := range slo.Bounds {
			// Other tools print quantiles for any number of requests.
			resolved := m.Bounded(b) >= 0 && (own || measure.Resolves(m.Requests-m.Failed, b.Quantile, false))
			ok = ok && (b.Metric == measure.Goodput || resolved || m.Aborted.Text != "")
		}
		if ok {
			resolving++
		}
	}
	text := fmt.Sprintf("%s %s, the longest of %d requests", note.Count(len(near), "trial"), where, most)
	switch {
	case most == 0:
		return Unknown, "the number of requests is not known"
	case resolving == 0:
		return Fail, text + ": none resolves all quantiles that are bounded"
	}
	return Pass, fmt.Sprintf("%s; %d resolve all quantiles that are bounded", text, resolving)
}

func (d *dataset) tails() (ItemState, string) {
	if why, part := noted(d.ran, note.OpenLeftOut, note.EvenArrivals); part > some {
		return Fail, why
	}
	if why, part := noted(d.ran, note.FailuresUnknown); part > some {
		return Unknown, why
	}
	if d.ran[0].Requests == 0 {
		return Unknown, "the records of the requests are not there"
	}
	if !d.simulated && !slices.ContainsFunc(d.ran, func(m *measure.Measurement) bool { return m.SendLag.N > 0 }) {
		return Unknown, "whether latency counts from the intended time is not known: a client that sent late hides its own queue"
	}
	return Pass, "latency counts from the intended time; late, open and failed requests count as beyond every limit"
}

func (d *dataset) lengths() (ItemState, string) {
	if why, part := noted(d.ran, note.ShorterAnswers, note.PromptsOff); part > some {
		return Fail, why
	}
	if why, part := noted(d.ran, note.PromptsGuessed, note.LengthsEstimated, note.TokensEstimated, note.RequestsEstimated); part > some {
		return Unknown, why
	}
	w := d.ran[0].Trial.Workload
	if w == nil {
		return d.meanLengths()
	}
	prompt, output := w.MeanTokens()
	if !(prompt+output > 0) {
		return Unknown, "the lengths of prompts and answers are not known"
	}
	return Pass, fmt.Sprintf("as the workload says: %.0f prompt and %.0f output tokens in the mean", prompt, output)
}

// otherLengths is the ratio of mean lengths above which two loads are different traffic.
const otherLengths = 1.25

// meanLengths compares the mean lengths that a tool reports for its loads.
func (d *dataset) meanLengths() (ItemState, string) {
	told := list.FilterMap(d.used, func(m *measure.Measurement) (float64, bool) {
		return m.MeanPrompt + m.MeanOutput, m.MeanPrompt > 0 && m.MeanOutput > 0
	})
	if len(told) == 0 {
		return Unknown, "the lengths of prompts and answers are not known"
	}
	low, high := slices.Min(told), slices.Max(told)
	if high > otherLengths*low {
		return Fail, fmt.Sprintf("requests have %.0f tokens in the mean of one load and %.0f in that of another: they are of different traffic", low, high)
	}
	return Unknown, fmt.Sprintf("requests have %.0f tokens in the mean; how their lengths spread is not known", (low+high)/2)
}

// aside is the factor by which a maximum may, by chance, lie beyond loads that were met or missed.
const aside = 1.25

// sweep checks for loads on both sides of the maximum, and that it lies between them if they do not overlap.
func (d *dataset) sweep() (ItemState, string) {
	low, high, unsure, loads := 0, 0, 0, map[float64]bool{}
	met, missed := 0.0, math.Inf(1)
	for _, m := range d.used {
		loads[m.Trial.Rate+float64(m.Trial.Concurrency)] = true
		switch {
		case m.Verdict == nil:
		case m.Verdict.State == measure.Met:
			low++
			met = max(met, m.Trial.Rate)
		case m.Verdict.State == measure.Missed:
			high++
			if m.Trial.Rate > 0 {
				missed = min(missed, m.Trial.Rate)
			}
		default:
			unsure++
		}
	}
	text := note.Count(len(loads), "load")
	switch {
	case len(loads) < 3:
		return Fail, text + ": one point is no curve"
	case low == 0 && high == 0:
		return Unknown, text + "; no verdict says on which side of the limits they lie"
	case low == 0 && unsure > 0:
		return Unknown, text + ", none of which is shown to meet the limits"
	case high == 0 && unsure > 0:
		return Unknown, text + ", none of which is shown to miss the limits: where they end is not known"
	case high == 0:
		return Fail, text + ", none of which misses the limits: where they end is not known"
	case low == 0:
		return Fail, text + ", none of which meets the limits"
	case met < missed && (d.Rate > aside*missed || 0 < d.Rate && aside*d.Rate < met):
		return Fail, fmt.Sprintf("%s: the limits are met up to %.3g requests/s and missed from %.3g on, and the maximum of %.3g does not lie there",
			text, met, missed, d.Rate)
	}
	return Pass, fmt.Sprintf("%s: %s met the limits, %d missed them", text, note.Count(low, "trial"), high)
}

// A trial is long enough if it lasts several times as long as its requests and, on a real machine, whose speed
// varies from second to second, at least a minute.
const (
	leastWindow = time.Minute
	leastLives  = 5
)

func (d *dataset) duration() (ItemState, string) {
	longest, lives := time.Duration(0), 0.0
	near, where := d.near(1.25)
	for _, m := range near {
		if m.Duration > longest {
			longest = m.Duration
			if m.E2E.Mean > 0 {
				lives = float64(m.Duration) / float64(m.E2E.Mean)
			}
		}
	}
	switch {
	case longest <= 0:
		return Unknown, "how long the trials took is not known"
	case !d.simulated && longest < leastWindow:
		return Fail, "the longest trial " + where + " took " + seconds(longest) + ": less than " + seconds(leastWindow)
	case lives > 0 && lives < leastLives:
		return Fail, fmt.Sprintf("the longest trial %s, of %s, is %.1f times as long as a request", where, seconds(longest), lives)
	}
	return Pass, "up to " + seconds(longest) + " " + where
}

func (d *dataset) repeats() (ItemState, string) {
	near, where := d.near(1.25)
	seeds := list.Distinct(list.Map(near, func(m *measure.Measurement) uint64 { return m.Trial.Seed }))
	switch {
	case !d.simulated && len(d.used) > 0 && d.used[0].Trial.Workload == nil:
		return Unknown, "the trials do not say whether they drew requests of their own"
	case len(seeds) < 2:
		return Fail, "one draw of requests " + where + ": what another draw shows is not known"
	}
	return Pass, note.Count(len(seeds), "draw") + " of requests " + where
}

// client checks whether the load generator kept up.
func (d *dataset) client() (ItemState, string) {
	if d.simulated {
		return Pass, "virtual time: there is no client to be late"
	}
	why, part := noted(d.ran, note.ClientUnsent, note.ClientOffWindow, note.ClientBusy, note.ClientCollecting, note.ClientWaiting,
		note.ClientStood, note.ClientFiles, note.RequestsDropped, note.RequestsUnsent, note.SendLag, note.LargestSendLag, note.MeanLag)
	if part > some {
		return Fail, why
	}
	lag := measure.Unresolved
	for _, m := range d.used {
		if m.SendLag.N > 0 {
			lag = max(lag, m.SendLag.P99, m.SendLag.P90)
		}
	}
	if lag < 0 {
		return Unknown, "how late the client sent is not known"
	}
	return Pass, fmt.Sprintf("requests left at most %.3g ms late at p99", float64(lag)/float64(time.Millisecond))
}
