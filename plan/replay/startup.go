package replay

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"planner/internal/config"
	"planner/internal/list"
	"planner/plan/fleet"
	"planner/sweep"
)

// measuredStart takes the stages of a start from the run folder that the configuration names: those of the
// median of its measured starts.
func measuredStart(f *config.FleetSettings) error {
	if f.StartUpRun == "" {
		return nil
	}
	var seen []sweep.EngineTelemetry
	folder, _, err := sweep.OpenFolder(f.StartUpRun)
	if err == nil {
		seen, err = folder.ReadEngineTelemetry()
	}
	if err != nil {
		return fmt.Errorf("fleet.start_up: %w", err)
	}
	engines := list.Map(seen, func(t sweep.EngineTelemetry) sweep.TrialEngine { return t.Engine })
	starts := list.Filter(engines, func(e sweep.TrialEngine) bool { return e.Fresh && e.Cold > 0 })
	if len(starts) == 0 {
		return fmt.Errorf("fleet.start_up: %s has no engine whose start was measured; want a run that started engines, or the stages themselves", f.StartUpRun)
	}
	slices.SortFunc(starts, func(a, b sweep.TrialEngine) int { return cmp.Compare(a.Cold, b.Cold) })
	f.Policy.StartUp = startOf(starts[len(starts)/2])
	return nil
}

// startOf assigns the stages of a measured start by their names; the rest is Init.
func startOf(s sweep.TrialEngine) fleet.StartUp {
	out := fleet.StartUp{Init: s.Cold}
	for _, stage := range s.Stages {
		name := strings.ToLower(stage.Name)
		var took *time.Duration
		switch {
		case stage.Took <= 0 || stage.Took > out.Init:
			continue
		case strings.Contains(name, "weight"):
			took = &out.Weights
		case strings.Contains(name, "compil"):
			took = &out.Compile
		case strings.Contains(name, "graph"):
			took = &out.Graphs
		default:
			continue
		}
		*took += stage.Took
		out.Init -= stage.Took
	}
	return out
}
