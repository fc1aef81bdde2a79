// Package doctor examines the machine for what would spoil a measurement.
package doctor

import (
	"context"
	"fmt"

	"planner/internal/config"
)

// CheckState is the result of a check.
type CheckState string

// The states of a check.
const (
	Problem CheckState = "problem"
	Warning CheckState = "warning"
	Passed  CheckState = "ok"
)

// Check is one check and its result.
type Check struct {
	Name  string     `json:"name"`
	State CheckState `json:"state"`
	// Found is the observation, Remedy what to do about it; empty if nothing needs to be done.
	Found  string `json:"found"`
	Remedy string `json:"remedy"`
}

// Examine examines the machine and, if cfg is given, what that requires of it. With selfTest it sends half a
// second of load to itself, up to three times.
func Examine(ctx context.Context, cfg *config.Config, selfTest bool) []Check {
	m, w := look(ctx, cfg), wantedBy(cfg)
	if selfTest && !w.remote() {
		m.client = bestSelfTest(ctx)
	}
	return append(judge(&m, w), cluster(ctx, cfg)...)
}

// checks are all checks, in the order of the report. Their results get the name; one without a finding does not
// apply. Those with load concern the machine that sends the load, which is another one if jobs send it.
var checks = []struct {
	name  string
	judge func(*machine, *wanted) Check
	load  bool
}{
	{"engine", engineProgram, false}, {"model", modelFile, false}, {"GPU", gpuCount, false}, {"GPU memory", gpuMemory, false}, {"port", port, true},
	{"open files", openFiles, true}, {"clock", clock, true}, {"load generator", loadGenerator, true}, {"processors", processors, true}, {"memory", memory, true},
	{"disk", disk, false}, {"temporary files", temporaryFiles, false}, {"API key", apiKey, false}, {"server", server, false},
}

// judge runs all applicable checks.
func judge(m *machine, w *wanted) []Check {
	var all []Check
	for _, c := range checks {
		if c.load && w.remote() {
			continue
		}
		if found := c.judge(m, w); found.Found != "" {
			found.Name = c.name
			all = append(all, found)
		}
	}
	return all
}

func passed(format string, a ...any) Check {
	return Check{State: Passed, Found: fmt.Sprintf(format, a...)}
}

func warned(remedy, format string, a ...any) Check {
	return Check{State: Warning, Found: fmt.Sprintf(format, a...), Remedy: remedy}
}

func problem(remedy, format string, a ...any) Check {
	return Check{State: Problem, Found: fmt.Sprintf(format, a...), Remedy: remedy}
}

// wanted is what a configuration requires of the machine; the zero value requires nothing in particular.
type wanted struct {
	// kind is the engine's; "" or "simulated" means none.
	kind string
	// launcher starts it elsewhere; "" and "local" start it here.
	launcher string
	// gpu is a catalog name, gpus the number per instance, share the part of a GPU's memory that the engine
	// will take.
	gpu   string
	gpus  int
	share float64
	// file is the file that the engine loads; "" if that is not a single file.
	file string
	// key is the environment variable of the API key, url that of the server.
	key, url string
}

// launches reports whether an engine will be started here.
func (w *wanted) launches() bool {
	return !w.remote() && w.kind != "" && w.kind != "simulated" && w.kind != "attach"
}

// remote reports whether engines run in the jobs of a cluster.
func (w *wanted) remote() bool { return w.launcher != "" && w.launcher != "local" }

func wantedBy(cfg *config.Config) *wanted {
	if cfg == nil {
		return &wanted{}
	}
	w := &wanted{kind: cfg.Engine.Kind, launcher: cfg.Launcher(), gpus: 1, file: cfg.Model.File, key: cfg.Engine.Endpoint.APIKeyEnv, url: cfg.Engine.Endpoint.URL}
	runnable, _ := cfg.Candidates()
	for _, k := range runnable {
		w.gpus, w.share = max(w.gpus, k.GPUs()), max(w.share, k.GPUMemoryUtilization)
	}
	if len(cfg.GPUs) > 0 {
		w.gpu = cfg.GPUs[0].Hardware.Name
	}
	return w
}
