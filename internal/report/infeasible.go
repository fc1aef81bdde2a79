package report

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"planner/internal/list"
	"planner/internal/note"
	"planner/plan"
	"planner/plan/decide"
	"planner/search"
	"planner/sweep/measure"
)

// noPlanDocument is the report of a decision without a plan: what was asked, why there is none, what to do, and
// what was seen.
func noPlanDocument(n *decide.NoPlan, e Engines) Document {
	b := &n.Background
	d := Document{Data: data(b.Trials)}
	asked := rateMeant(n.Demand.Rate, n.Demand.TraceRates)
	if n.Demand.Job != nil {
		asked = jobAsked(n.Demand.Job)
	}
	asked += behind(" at ", objective(n.Objective))
	var offers []plan.Alternative
	var rejected []measure.Rejection
	facts, overview := append(Facts{{"serving", b.Subject, Plain}}, traced(n.Demand.TraceRates)...), measure.OverviewOf(b.Trials)
	seen := Facts{{"seen", seenText(overview), Plain}}
	switch why := n.Why; {
	case n.Outcome == decide.NotMeasured:
		d.Title = "Not measured for " + asked + ": " + n.Reasons[0]
		d.add(slices.Concat(facts, each("also", n.Reasons[1:], Bad), seen))
		d.section("What to do", Bullets{Items: revive()})
	case !why.Undecided:
		d.Title = either(n.Outcome == decide.Undecided, "Undecided for pools of each class, no feasible plan for one pool for ", "No feasible plan for ") + asked
		offers, rejected = why.Alternatives, why.Rejected
		d.add(append(facts, whyInfeasible(why, b)...))
		if len(offers) == 0 {
			rejected = nil // all were rejected, for the reasons given above
		}
		busy := list.Filter(n.Notes, func(n note.Note) bool { return n.Kind == note.BusyFrontEnd })
		d.section("What would help", Bullets{Items: slices.Concat(remedies(why, &n.Demand, b.Search), note.Notes(busy).Texts())})
	default:
		d.Title, rejected = "Undecided: no rate is known yet that would give a plan for "+asked, why.Rejected
		d.add(slices.Concat(facts, each("why", why.Doubts(), Doubt), seen))
		d.section("What to do", Bullets{Items: advice(overview, why, b.Search != nil)})
		if len(why.Alternatives) > 1 {
			offers = why.Alternatives
		}
	}
	if len(eachGPU(offers)) > 1 {
		addFinance(&d, "What each GPU comes to", offers)
	}
	addTrust(&d, b.Trust)
	addDiagnosis(&d, b.Diagnosis)
	d.detailed = true
	tab := trialTable(b.Trials, n.Objective)
	if len(measure.KnobSets(b.Trials)) > 1 {
		tab = summaryTable(b.Trials, measure.Knobs{})
	}
	d.section("Trials", tab)
	addOffers(&d, "Configurations", offers, rejected)
	addEngines(&d, &e, b.Trials, nil)
	if b.Search != nil {
		addWarnings(&d, b.Search.Warnings)
	}
	return d
}

// whyInfeasible names the cheapest fleet if a limit of the demand rules it out, what an idle engine misses if
// it does, or else the reasons.
func whyInfeasible(e *plan.Unsolved, b *decide.Background) Facts {
	switch {
	case e.Cheapest != nil:
		return Facts{{"why", e.Limit, Bad}, {Label: "cheapest fleet", Text: sized(e.Cheapest)}}
	case b.Search == nil:
	case b.Search.Floor != nil:
		return Facts{{"why", floorFact(b.Search.Floor, b.Trials), Bad}}
	case b.Search.Outcome == search.Infeasible:
		return Facts{{"why", b.Search.Reason.Text, Bad}, {"least seen", leastSeen(b), Plain}}
	}
	reasons := e.Reasons()
	if len(e.Alternatives) == 0 && len(reasons) > 1 {
		reasons = grouped(e.Rejected, knobsOf(e.Rejected))
	}
	if len(reasons) == 0 {
		reasons = []string{e.Error()}
	}
	return each("why", reasons, Bad)
}

// leastSeen returns the smallest figure, or for goodput the smallest share beyond its limits, of the trials
// that missed the limit: in an undecided trial, a few requests may be within it by chance. "" if there is none.
func leastSeen(b *decide.Background) string {
	var least *measure.Measurement
	var bound measure.Bound
	lowest := math.Inf(1)
	for _, m := range measure.RanWith(b.Trials, b.Knobs) {
		if m.Verdict == nil || m.Verdict.State != measure.Missed {
			continue
		}
		for _, o := range slices.Concat(m.Trial.Objective.Bounds, m.Trial.Objective.Latencies()) {
			v := float64(m.Bounded(o))
			if c, ok := m.Count(o.String()); o.Metric == measure.Goodput && ok && c.N > 0 {
				v = float64(c.K) / float64(c.N)
			}
			if o.String() == b.Search.Binding && v > 0 && v < lowest {
				least, bound, lowest = m, o, v
			}
		}
	}
	switch {
	case least == nil:
		return ""
	case bound.Metric == measure.Goodput:
		return percent(lowest) + " of the requests beyond the limits at " + load(&least.Trial) + ", of at most " + percent(bound.Allowed())
	}
	return boundName(bound.String()) + " " + latencyAbove(least.Bounded(bound)) + " at " + load(&least.Trial) + ", of at most " + limit(bound.Limit)
}

func revive() []string {
	return []string{
		"look at the engine's log, in the folder engine/ of the run where planner starts it, or parts/NAME/job.log on a cluster: whether it still runs, and why not",
		"`planner doctor` checks the program, the port and whether a server can be reached, of a cluster's node where it is called there; `planner resume` goes on once the cause is gone",
	}
}

func seenText(s measure.Overview) string {
	if s.Trials == 0 {
		return "no trial was run"
	}
	return plural(s.Trials, "trial") + where(s.Unsure > 0, ", "+count(s.Unsure)+" unsure") + where(s.Invalid > 0, ", "+count(s.Invalid)+" not valid") +
		behind(", mostly as ", s.Doubts[:min(len(s.Doubts), 1)].String())
}

func advice(s measure.Overview, e *plan.Unsolved, searched bool) []string {
	if e != nil && slices.ContainsFunc(e.Alternatives, func(a plan.Alternative) bool {
		return slices.Contains([]note.Kind{note.RateDoubted, note.RateWide}, a.Reason.Note.Kind)
	}) {
		return []string{
			"a short bench of two loads on such a GPU, `planner calibrate`, and engine.calibration: more trials do not tell the constants apart",
			"looser limits, or a model and a GPU that the constants were calibrated on",
		}
	}
	if s.Invalid > 0 && 2*s.Invalid >= s.Trials {
		return []string{
			"remove what makes trials invalid, and start again: `planner doctor` checks the machine, and `planner bench` runs one load point to try it on",
			"a load generator on a host of its own, where the engine takes the processors that requests are sent with",
		}
	}
	if !searched { // fitted results
		return []string{"trials at lower rates, or longer ones: those that were measured do not tell at which the limits are kept"}
	}
	return []string{
		"a larger search.budget, or none on the simulated engine",
		"fewer knob sets (pin knobs with one value), or a looser search.precision",
		"a shorter search.trial where one is set, so that the budget holds several",
	}
}

func sized(a *plan.Alternative) string {
	return fleetOf(&a.Fleet, &a.Offer) + costing(a.Cost.PerHour, " per hour")
}

// remedies are possible changes, as far as the reason suggests any.
func remedies(e *plan.Unsolved, d *plan.Demand, r *search.Result) []string {
	var help []string
	if c := e.Cheapest; c != nil {
		alone := d.MaxGPUs > 0 && c.Offer.GPUs > d.MaxGPUs || d.MaxUSDPerHour > 0 && float64(c.Offer.GPUs)*c.Offer.PricePerGPUHour > d.MaxUSDPerHour
		return []string{"allow " + sized(c), either(alone, "compare smaller instances: one of these alone breaks the limit", "ask for less headroom, fewer spares, or a looser objective"),
			"compare other GPUs, or formats with fewer bytes per weight"}
	}
	if slices.ContainsFunc(e.Alternatives, func(a plan.Alternative) bool { return a.Reason.Note.Kind == note.EvenAtHigh }) {
		return []string{"a higher demand.max_usd_per_hour or max_gpus: what it takes at the least is said above", "less headroom, fewer spares, or a looser objective",
			"other GPUs, or formats with fewer bytes per weight"}
	}
	if r == nil {
		return nil
	}
	bound := r.Binding
	if f := r.Floor; f != nil {
		bound = f.Bound
		help = append(help, where(f.Value > 0, "a limit on "+boundName(bound)+" well above "+latencyAbove(f.Value)))
	}
	faster := either(widerIsSlower(e.Alternatives), "faster GPUs or links between them, as more GPUs to an instance make it slower",
		"more GPUs to an instance or faster ones")
	cacheless := !r.Knobs.PrefixCaching && !r.Knobs.PrefixUnknown
	switch {
	case bound == measure.ErrorsBound:
		help = append(help, "a workload.timeout longer than whole answers take, where requests fail by it", "the errors that the server or its log gives, where they fail otherwise")
	case cacheless && strings.HasPrefix(bound, "ttft"):
		help = append(help, "prefix_caching = true, where prompts share their beginnings, as turns of a conversation do", faster+", or shorter prompts")
	case strings.HasPrefix(bound, "ttft"):
		help = append(help, faster+": an idle engine's TTFT is the computing of one prompt, beside some milliseconds of its front end, which no GPU shortens", "shorter prompts, or shared prefixes that the cache holds")
	case strings.HasPrefix(bound, "tpot"), strings.HasPrefix(bound, "itl"):
		help = append(help, faster+": an idle engine's time per token is the streaming of the weights and the fixed costs of a step", "formats with fewer bytes per weight, where the weights take most of it")
	case strings.HasPrefix(bound, "e2e"):
		help = append(help, faster+", or shorter outputs")
	}
	return help
}

// widerIsSlower reports whether, on one type of GPU, a larger instance is slower without load than a smaller
// one.
func widerIsSlower(all []plan.Alternative) bool {
	idle := func(a plan.Alternative) float64 { return cmp.Or(a.Offer.Idle, &plan.IdleLatency{}).Latency }
	return slices.ContainsFunc(all, func(a plan.Alternative) bool {
		return slices.ContainsFunc(all, func(b plan.Alternative) bool {
			return a.Offer.GPU == b.Offer.GPU && a.Offer.GPUs > b.Offer.GPUs && idle(a) > idle(b)
		})
	})
}
