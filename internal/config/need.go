package config

// EngineUse says whether a command runs an engine, and which.
type EngineUse int

// The uses of an engine. ConfiguredEngine is the one that engine.kind names;
// SimulatedEngine is the simulated one whatever it names.
const (
	NoEngine EngineUse = iota
	ConfiguredEngine
	SimulatedEngine
)

// Need says what a command uses of a configuration. Sections that it does not use
// may be missing; what is there is checked all the same.
type Need struct {
	// Demand asks for demand.rate.
	Demand bool
	// Limit asks for at least one latency limit.
	Limit bool
	// Workload reads the files that the workload names.
	Workload bool
	// Fleet asks for traffic in time and how it is served.
	Fleet bool
	// InTime checks traffic in time where it is given.
	InTime bool
	// Engine asks for what the engine needs: a simulated one model and hardware,
	// an attached one its URL.
	Engine EngineUse
	// Lists accepts lists of knobs, GPUs and degrees of parallelism.
	Lists bool
	// Search tries the standard lists for knobs that are not given; without it the
	// engine's own defaults hold.
	Search bool
}

// For returns what a command of the command line needs; an unknown command needs
// nothing.
func For(command string) Need {
	switch command {
	case "plan":
		return Need{Demand: true, Limit: true, Workload: true, InTime: true, Engine: ConfiguredEngine, Lists: true, Search: true}
	case "estimate":
		return Need{Demand: true, Limit: true, Workload: true, InTime: true, Engine: SimulatedEngine, Lists: true, Search: true}
	case "simulate", "serve-sim":
		return Need{Workload: true, Engine: SimulatedEngine}
	case "search":
		return Need{Limit: true, Workload: true, Engine: ConfiguredEngine}
	case "bench", "compare", "probe":
		return Need{Workload: true, Engine: ConfiguredEngine}
	case "fleet":
		return Need{Limit: true, Workload: true, Fleet: true, Engine: SimulatedEngine}
	case "fit":
		return Need{Demand: true, Limit: true}
	case "sweep", "doctor", "calibrate":
		return Need{Workload: true, Engine: ConfiguredEngine, Lists: true}
	}
	return Need{}
}
