package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"planner/internal/list"
	"planner/internal/note"
	"planner/internal/stat"
	"planner/plan/decide"
	"planner/search"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

func searchDocument(a *decide.FoundRate, e Engines) Document {
	k, r, trials := a.Knobs, a.Result, a.Seen
	if a.Drawn != nil {
		_, drawn, _ := estimate(*a.Drawn)
		r.Estimate = *a.Rate
		r.Reason.Text += ", by the draw of the requests alone: " + drawn
	}
	var slo measure.SLO
	if len(trials) > 0 {
		slo = trials[0].Trial.Objective
	}
	d := Document{Title: found(&r, slo, trials), Data: data(trials)}
	decided := r.Outcome == search.Infeasible || r.Estimate.Value > 0
	ran := r.Outcome != search.Infeasible || len(trials) > 0
	seen, next := "", []string{}
	if r.Outcome == search.Unmeasured {
		next = revive()
	} else if !decided {
		overview := measure.OverviewOf(trials)
		seen, next = seenText(overview), advice(overview, nil, true)
	}
	facts := append(traced(r.TraceRates), Facts{
		{"one instance", where(r.Outcome != search.Infeasible && decided, rateFact(r.Estimate)), Strong},
		{"limited by", where(r.Binding != "", limitedBy(&r, r.Binding, trials)), Plain},
		{"ended", where(ran, r.Reason.Text), Plain},
		{"effort", where(ran, plural(r.Trials, "trial")+", "+latency(r.EngineTime)+" of engine time"), Plain},
		{"seen", seen, Plain},
	}...)
	if r.Estimate.Value > 0 {
		d.add(doubted(a.Trust))
	}
	d.add(facts)
	d.section("What to do", Bullets{Items: next})
	if ran {
		addStart(&d, "Server flags", startOf(&e, k))
	}
	addTrust(&d, a.Trust)
	addDiagnosis(&d, a.Diagnosis)
	d.detailed = true
	addCertificate(&d, r.Certificate)
	d.section("Trials", trialTable(trials, slo))
	addExceedances(&d, &r, trials)
	_ = addTimeline(&d, &e, nearest(trials, k, r.Estimate.Value)) // without it if it cannot be read
	addEngines(&d, &e, trials, nil)
	d.section("Assumptions", Bullets{Items: a.Assumptions})
	addWarnings(&d, r.Warnings)
	return d
}

// found returns the result in one line. If the engine failed before the trials ended, it says nothing of lower
// rates than the current one.
func found(r *search.Result, slo measure.SLO, trials []measure.Measurement) string {
	at := meantBy("", r.TraceRates) + behind(" at ", objective(slo))
	value, interval, _ := estimate(r.Estimate)
	answer := fmt.Sprintf("%s requests/s%s (%s)", value, at, interval)
	switch {
	case r.Outcome == search.Unmeasured:
		return "Not measured" + at + ": " + r.Reason.Text
	case r.Outcome == search.Infeasible && r.Floor != nil:
		return "No rate" + at + ": " + floorFact(r.Floor, trials)
	case r.Outcome == search.Infeasible:
		return "No rate" + at + ": " + r.Reason.Text
	case r.Estimate.Value <= 0:
		return "Undecided: no rate is known" + at + ": " + r.Reason.Text
	case r.Outcome == search.NotReached:
		return "At least " + number(r.Estimate.Value, 3) + " requests/s" + at + ": the limit was not reached"
	case r.Outcome == search.Searching:
		return answer + " so far: the search has not ended"
	case r.Outcome == search.OutOfBudget:
		return answer + ": the search ended before the interval was as narrow as asked"
	case r.Warnings.Has(note.RateDoubted) || r.Warnings.Has(note.RateWide):
		return answer + ": undecided, for what is not known of the engine's constants"
	}
	return answer
}

// floorFact describes the limit that even an idle engine misses; how requests fail is told by the trials.
func floorFact(f *search.Floor, trials []measure.Measurement) string {
	name := boundName(f.Bound)
	if f.Bound == measure.ErrorsBound {
		return "requests fail even one at a time" + failedAlone(trials)
	}
	if f.Value <= 0 {
		return name + ": even an engine with one request at a time misses the limit"
	}
	bound, class, _ := strings.Cut(f.Bound, " ")
	metric, stat, _ := strings.Cut(bound, ".")
	if stat == f.Stat {
		return fmt.Sprintf("an idle engine has a %s of %s, above the limit of %s; the smallest feasible limit is %s",
			name, latency(f.Value), limit(f.Limit), latencyAbove(f.Value))
	}
	return fmt.Sprintf("an idle engine has a %s of %s already, and the limit on %s is %s; the smallest feasible limit is above %s",
		boundName(strings.TrimSpace(metric+"."+f.Stat+" "+class)), latency(f.Value), name, limit(f.Limit), latency(f.Value))
}

// failedAlone says how requests failed in the longest trial with one at a time; "" if none did.
func failedAlone(trials []measure.Measurement) string {
	alone := list.Filter(trials, func(m measure.Measurement) bool { return m.Trial.Concurrency == 1 && m.Failed > 0 })
	if len(alone) == 0 {
		return ""
	}
	lone := slices.MaxFunc(alone, func(a, b measure.Measurement) int { return cmp.Compare(a.Requests, b.Requests) })
	s := ": " + count(lone.Failed) + " of " + plural(lone.Requests, "request") + " failed"
	n, w := lone.Failures[measure.Timeout.String()], cmp.Or(lone.Trial.Workload, &workload.Workload{})
	if 2*n <= lone.Failed {
		return s + "; " + lone.Complaint()
	}
	return s + ", " + count(n) + " of them by the timeout" + where(w.Timeout > 0, " of "+limit(w.Timeout))
}

// limitedBy says what limits the rate, with its probability if others may. For throughput it gives the
// saturation rate and the first bound that still holds at the highest rate measured.
func limitedBy(r *search.Result, binding string, trials []measure.Measurement) string {
	bound, ok := list.Find(r.Bounds, func(b search.BoundResult) bool { return b.Bound == binding })
	s := boundName(binding) + where(ok && bound.Probability < 0.995 && len(r.Bounds) > 1, " (with probability "+number(bound.Probability, 2)+")")
	if !ok || binding != measure.ThroughputBound {
		return s
	}
	s += ": the engine saturates at " + number(bound.Rate, 3) + " requests/s"
	highest := &measure.Measurement{}
	for _, m := range measure.RanWith(trials, r.Knobs) {
		if m.Valid && m.Trial.Rate > highest.Trial.Rate {
			highest = m
		}
	}
	for _, b := range highest.Trial.Objective.Bounds {
		if seen := highest.Bounded(b); seen > 0 && seen <= b.Limit {
			return s + "; " + boundName(b.String()) + " stays at " + latency(seen) + " even at " + number(highest.Trial.Rate, 3) + " requests/s"
		}
	}
	return s
}

// addExceedances draws the trials and fitted curve of the bound on single requests that most likely limits the
// rate, and tabulates up to which rate each bound holds.
func addExceedances(d *Document, r *search.Result, trials []measure.Measurement) {
	ofRequests := list.Filter(r.Bounds, func(b search.BoundResult) bool { return b.Bound != measure.ThroughputBound && b.Rate > 0 })
	if len(ofRequests) == 0 {
		return
	}
	likeliest := slices.MaxFunc(ofRequests, func(a, b search.BoundResult) int { return cmp.Compare(a.Probability, b.Probability) })
	if c := exceedanceChart(likeliest, trials); len(c.Series[0].Points) > 0 {
		c.XLabel = meantBy(c.XLabel, r.TraceRates)
		d.section("Requests beyond the limit", c)
	}
	highest := list.Largest(trials, func(m measure.Measurement) float64 { return m.Trial.Rate })
	if tab := boundTable(r, highest); len(tab.Rows) > 1 {
		d.add(tab)
	}
}

// boundTable lists the bounds of a search, each with the interval of the largest rate that meets it. A rate far
// beyond the highest tried would be an extrapolation and is not given; throughput has no row then.
func boundTable(r *search.Result, highest float64) Table {
	tab := table(left("bound"), right("binds with probability", "holds to, req/s"), extra(right("clumping (phi)")))
	far := 1.5 * highest
	for _, b := range r.Bounds {
		holds := number(b.Rate, 3)
		switch {
		case b.Rate > far && b.Bound == measure.ThroughputBound:
			continue
		case b.Rate > far:
			holds = "beyond " + number(highest, 3)
		case b.High > far:
			holds += " (" + number(b.Low, 3) + " or more)"
		case b.Low > 0:
			holds += " (" + number(b.Low, 3) + " to " + number(b.High, 3) + ")"
		}
		tab.row(boundName(b.Bound), fixed(b.Probability, 2), holds, either(b.Bound == measure.ThroughputBound, unknown, number(b.Phi, 2)))
	}
	return tab
}

func addCertificate(d *Document, c *search.Certified) {
	if c == nil {
		return
	}
	d.section("Certificate", Facts{
		either(c.State == measure.Met, Fact{"certified", number(c.Rate, 3) + " requests/s, whatever the curve", Good},
			Fact{"not certified", someOf(c.Rate, 3) + " requests/s: " + c.Reason.Text, Doubt}),
		{"seen", where(c.Requests > 0, fmt.Sprintf("%s of %s requests beyond %s in %s, %s of engine time", fixed(c.Beyond, 0), fixed(c.Requests, 0),
			boundName(c.Binding), plural(c.Looks, "look"), latency(c.EngineTime))), Plain},
		{"as few", where(c.Requests > 0, "would come with a probability of "+percent(stat.Rounded(c.Probability, 4))+
			" if just the allowed share were beyond; at most 2.5 % is asked of each look"), Plain}})
}
