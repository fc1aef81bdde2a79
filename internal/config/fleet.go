package config

import (
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"planner/internal/list"
	"planner/plan/fleet"
	"planner/sweep/ingest"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

// FleetSettings configures a fleet over time: its traffic, its policy, and failures.
type FleetSettings struct {
	Policy  fleet.Policy
	Nodes   fleet.Nodes
	Retries int
	// Stages, Profile and Daily are the traffic: one of them, or none if the workload replays a trace.
	Stages      []workload.RateStep
	Profile     workload.Profile
	ProfileFile string
	Daily       fleet.Daily
	Spike       fleet.Spike
	// StartUpRun is a run folder in which engine starts were measured.
	StartUpRun string
	// Limits are the limits of each class of the workload.
	Limits []fleet.ClassLimits
}

func unreadFleet() FleetSettings {
	return FleetSettings{Policy: fleet.Policy{Min: 1, Max: 8, Router: fleet.LeastInFlight, LoadCap: 1.25, Drain: 30 * time.Second,
		StartUp: fleet.StartUp{Init: 100 * time.Second}, Autoscaler: fleet.Autoscaler{Kind: fleet.None, HPA: fleet.UsualHPA(),
			KEDA:     fleet.KEDA{Polling: 30 * time.Second, Cooldown: 5 * time.Minute},
			Analyser: fleet.Analyser{Interval: time.Minute, Up: 0.85, Down: 0.7, Cap: 2, Smoothing: 1},
			Monitor:  fleet.Monitor{Scrape: 15 * time.Second, Quantile: 0.9, Predicted: true},
		}}}
}

func (c *Config) fleetRows() []tomlKey {
	f := &c.Fleet
	p := &f.Policy
	stages := tablesOf(func(s *workload.RateStep) []tomlKey {
		return []tomlKey{{"rate", " in requests/s", numberIn(atLeast(0)).in(&s.Rate)}, {"duration", "", durationIn(above(0)).in(&s.Length)}, {"drain", "", truth().in(&s.Drain)}}
	}, `a list of stages, such as [{ rate = 2, duration = "330s" }]`, "rate", "duration")
	daily := tableWith(func(d *fleet.Daily) []tomlKey {
		return []tomlKey{{"peak", " in requests/s", orNothing(numberIn(above(0))).in(&d.Peak)}, {"trough", "", orNothing(numberIn(atLeast(0))).in(&d.Trough)},
			{"shape", "", orNothing(words("", fleet.Sine, fleet.Office)).in(&d.Shape)}, {"days", "", orNothing(wholeIn(atLeast(1).atMost(31))).in(&d.Days)}}
	}, "peak")
	spike := tableWith(func(s *fleet.Spike) []tomlKey {
		return []tomlKey{{"at", "", durationIn(atLeast(0)).in(&s.At)}, {"factor", "", orNothing(numberIn(above(0))).in(&s.Factor)},
			{"duration", "", orNothing(durationIn(above(0))).in(&s.Length)}}
	}, "at", "factor", "duration")
	return []tomlKey{
		{"replicas", "of a static fleet; 0 = autoscaled", wholeIn(atLeast(0)).in(&p.Replicas)},
		{"min_replicas", "the least that an autoscaler may ask for; 0 = to zero, by keda", wholeIn(atLeast(0)).in(&p.Min)},
		{"max_replicas", "the most that it may ask for", wholeIn(atLeast(1)).in(&p.Max)},
		{"initial_replicas", "ready at the beginning; 0 = min_replicas", wholeIn(atLeast(0)).in(&p.Initial)},
		{"router", nameList(fleet.Routers()), words(fleet.Routers()...).in(&p.Router)},
		{"load_cap", "prefix-affinity: how many times the mean load a replica may have before its prefixes go elsewhere", numberIn(atLeast(1)).in(&p.LoadCap)},
		{"sticky", "keep the turns of a conversation on the replica of the first", truth().in(&p.Sticky)},
		{"start_up", `until a replica serves: a duration, { init, weights, compile, graphs, probe, cached }, or a run folder whose engines' start was measured`, f.startUp()},
		{"drain", "how long a replica that is given up may finish what it has", durationIn(atLeast(0)).in(&p.Drain)},
		{"max_nodes", "nodes that there are; 0 = as many as are asked for", wholeIn(atLeast(0)).in(&f.Nodes.Max)},
		{"failures", `of a node: { mtbf = "720h", repair = "10m" }`, pairOf("mtbf", "repair", &f.Nodes.MTBF, &f.Nodes.Repair)},
		{"spot", `nodes that are taken away: { mtbf = "24h", notice = "30s" }`, pairOf("mtbf", "notice", &f.Nodes.SpotMTBF, &f.Nodes.Notice)},
		{"autoscaler", `{ kind = "hpa", metric = "in_flight", target = 40 }; kind: ` + nameList(fleet.Kinds()), autoscaler(&p.Autoscaler)},
		{"stages", `the traffic: [ { rate = 2, duration = "330s", drain = true }, ... ]`, stages.in(&f.Stages)},
		{"profile", "or a CSV of time_s,rate_per_s in equal steps", pathname().in(&f.ProfileFile)},
		{"daily", `or a day: { peak = 100, trough = 20, shape = "sine", days = 1 }; shape: sine office`, daily.in(&f.Daily)},
		{"spike", `more of it for a while: { at = "2h", factor = 5, duration = "10m" }`, spike.in(&f.Spike)},
		{"retries", "of a client whose request failed or timed out", wholeIn(atLeast(0).atMost(100)).in(&f.Retries)},
	}
}

func nameList[T ~string](names []T) string {
	return strings.Join(list.Map(names, func(n T) string { return string(n) }), " ")
}

// pairOf is a table of two durations, both or neither given.
func pairOf(first, second string, a, b *time.Duration) binding {
	return tableAt(func() []tomlKey {
		return []tomlKey{{first, "", orNothing(durationIn(above(0))).in(a)}, {second, "", durationIn(atLeast(0)).in(b)}}
	}, first, second)
}

func (f *FleetSettings) startUp() binding {
	stages := tableWith(func(s *fleet.StartUp) []tomlKey {
		took := orNothing(durationIn(atLeast(0)))
		return []tomlKey{{"init", "", took.in(&s.Init)}, {"weights", "", took.in(&s.Weights)}, {"compile", "", took.in(&s.Compile)},
			{"graphs", "", took.in(&s.Graphs)}, {"probe", "", took.in(&s.Probe)}, {"cached", "", orNothing(truth()).in(&s.Cached)}}
	})
	s := &f.Policy.StartUp
	return binding{func(n input) {
		n = n.only()
		text, isText := n.typed()
		_, err := time.ParseDuration(text)
		switch _, isTable := n.value.(map[string]any); {
		case isTable:
			stages.in(s).take(n)
		case isText && err != nil && strings.ContainsAny(text, `/\`):
			f.StartUpRun = n.absolute(text)
		default:
			*s = fleet.StartUp{Init: durationIn(atLeast(0)).read(n)}
		}
	}, func() string {
		switch {
		case f.StartUpRun != "":
			return quote(f.StartUpRun)
		case *s == fleet.StartUp{Init: s.Init}:
			return durationIn(atLeast(0)).print(s.Init)
		}
		return stages.print(*s)
	}, nil}
}

// resolveFleet checks what concerns several keys and reads the profile.
func (r *reader) resolveFleet(c *Config) {
	f, p := &c.Fleet, &c.Fleet.Policy
	if !c.draft.need.Fleet && !(c.draft.need.InTime && f.InTime()) || !r.clean("fleet", "workload", "slo") {
		return
	}
	r.at("fleet.min_replicas").refuseIf(p.Min > p.Max, "is %d, want at most max_replicas, %d", p.Min, p.Max)
	r.at("fleet.initial_replicas").refuseIf(p.Initial > p.Max, "is %d, want at most max_replicas, %d", p.Initial, p.Max)
	r.at("fleet.min_replicas").refuseIf(p.Min == 0 && p.Replicas == 0 && p.Autoscaler.Kind != fleet.ByKEDA,
		`is 0, want at least 1: only autoscaler kind "keda" starts a fleet of none`)
	if c.draft.need.Fleet && p.Replicas == 0 && p.Autoscaler.Kind == fleet.None {
		r.absent("fleet.replicas", "is missing, want the size of a static fleet, or fleet.autoscaler")
	}
	r.checkTraffic(c)
	f.Limits = fleet.LimitsOf(&c.Objective, c.Workload.Names())
	r.checkSignals(c)
	for _, b := range c.Objective.Bounds {
		of := slices.IndexFunc(f.Limits, func(l fleet.ClassLimits) bool { return b.Class == "" || b.Class == l.Name })
		switch {
		case b.Quantile == 0 || b.Metric == measure.ITL:
			r.warn("slo: %s is no limit on single requests and says nothing of a fleet's", b)
		case of >= 0 && !f.Limits[of].Holds(b):
			r.warn("slo: %s is not what a fleet is held to, of whose requests each latency has one limit: that of its highest quantile", b)
		}
	}
}

// InTime reports whether traffic over time is given.
func (f *FleetSettings) InTime() bool {
	return len(f.Stages) > 0 || f.ProfileFile != "" || f.Daily.Peak > 0
}

// mostProfile is the maximum size of a profile in bytes.
const mostProfile = 64 << 20

func (r *reader) checkTraffic(c *Config) {
	f := &c.Fleet
	given := map[string]bool{"stages": len(f.Stages) > 0, "profile": f.ProfileFile != "", "daily": f.Daily.Peak > 0}
	sources := slices.DeleteFunc(slices.Sorted(maps.Keys(given)), func(key string) bool { return !given[key] })
	switch replayed := c.Workload.Replayed(); {
	case replayed && len(sources) > 0:
		r.at("fleet." + sources[0]).refuse("is given, want none, because the trace gives the arrivals")
	case len(sources) > 1:
		r.at("fleet."+sources[1]).refuse("is given beside %s, want one source of traffic", sources[0])
	case len(sources) == 0 && !replayed:
		r.absent("fleet.stages", `is missing, want the traffic: stages, profile, daily, or workload.arrivals = "trace"`)
	}
	if f.ProfileFile != "" {
		f.Profile = readFile(r.at("fleet.profile"), f.ProfileFile, "a CSV of time_s,rate_per_s", mostProfile, func(in io.Reader) (workload.Profile, error) {
			return ingest.ReadProfile(f.ProfileFile, in)
		})
	}
	r.at("fleet.spike").refuseIf(f.Spike.Factor > 0 && slices.ContainsFunc(f.Stages, func(s workload.RateStep) bool { return s.Drain }),
		"is given beside stages that drain, whose times nobody knows; want a stage of its own for the spike")
	r.at("fleet.daily").refuseIf(f.Daily.Trough > f.Daily.Peak, "has a trough of %s, want at most the peak, %s", number(f.Daily.Trough), number(f.Daily.Peak))
}

// checkSignals checks that the signals of an autoscaler exist.
func (r *reader) checkSignals(c *Config) {
	p := &c.Fleet.Policy
	a := &p.Autoscaler
	n := r.at("fleet.autoscaler")
	saturation := a.Kind == fleet.Saturation || slices.ContainsFunc(a.Metrics, func(m fleet.Metric) bool { return m.Name == "saturation" })
	if !saturation || p.Replicas > 0 {
		return
	}
	if !slices.ContainsFunc(c.Fleet.Limits, func(l fleet.ClassLimits) bool { return l.TTFT > 0 || l.TPOT > 0 }) {
		n.refuse("looks at the saturation, which is a latency over its limit, want a limit in slo.ttft, slo.tpot or slo.goodput")
	}
	if a.Monitor.Predicted && !p.Router.Predicts() {
		if r.given("fleet.autoscaler.signal") {
			n = r.at("fleet.autoscaler.signal")
		}
		n.refuse(`looks at what is predicted of requests, and the router %q knows nothing of its replicas; want signal = "measured", or the router least-in-flight, least-tokens, least-prefill or prefix-affinity`, p.Router)
	}
}

// Traffic returns the fleet's request rate over time; nil if a trace is replayed.
func (f *FleetSettings) Traffic() workload.Profile {
	p := append(slices.Clip(f.Profile), f.Stages...)
	if f.Daily.Peak > 0 {
		p = f.Daily.Profile()
	}
	if p == nil || f.Spike.Factor == 0 {
		return p
	}
	return p.Times(f.Spike.Factor, f.Spike.At, f.Spike.At+f.Spike.Length)
}
