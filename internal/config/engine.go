package config

import (
	"os"
	"time"

	"planner/model"
)

// EngineSettings say what serves the requests, a simulated engine or a real one.
type EngineSettings struct {
	// Kind is "simulated", an engine's name, "command" or "attach".
	Kind string
	// Version of the engine that is simulated; "" means the newest known.
	Version string
	// Settings are what else is configured of a simulated one.
	model.Settings
	// DraftModel names the model that proposes tokens, where one does.
	DraftModel string
	// Calibration is the path of a file of fitted constants; "" means none.
	Calibration string
	Endpoint    EndpointSettings
	Launch      Launch
}

// EndpointSettings say how to talk to a real engine.
type EndpointSettings struct {
	// URL of a server that runs already; Kind is then "attach".
	URL string
	// ServedName is the model's name in requests; "" means the first one that the
	// server lists.
	ServedName string
	// API is "completions" or "chat".
	API     string
	Stream  bool
	Headers map[string]string
	// APIKeyEnv is the name of the environment variable that holds the key.
	APIKeyEnv string
}

// Launch says how to start a real engine.
type Launch struct {
	// Launcher is "local", "slurm" or "kubernetes".
	Launcher string
	// Command is the argument list of an engine of Kind "command".
	Command      []string
	Env          map[string]string
	ExtraArgs    []string
	ReadyTimeout time.Duration
}

func (r *reader) checkEngine(c *Config) {
	e := &c.Engine
	switch {
	case e.Kind == "attach" && e.Endpoint.URL == "" && r.clean("engine.url"):
		r.missing("engine.url", "engine.kind", `is missing, want the server's URL, because kind is "attach"`)
	case e.Kind == "command" && len(e.Launch.Command) == 0 && r.clean("engine.command"):
		r.missing("engine.command", "engine.kind", `is missing, want the engine's argument list, because kind is "command"`)
	case e.Kind == "command" && len(e.Launch.Command) > 0 && e.Launch.Command[0] == "":
		r.at("engine.command").refuse("begins with an empty string, want the name of a program")
	}
	if _, err := model.ParseVersion(e.Version); err != nil && c.Simulated() {
		n := r.at("engine.version")
		n.value = e.Version
		n.wrong("a release such as 0.15.1, or nothing for the newest known")
	}
	if e.Calibration != "" && c.draft.need.Engine != NoEngine {
		if _, err := os.Stat(e.Calibration); err != nil {
			r.at("engine.calibration").refuse("%s cannot be read: %s, want a file from planner calibrate",
				e.Calibration, reason(err))
		}
	}
}
