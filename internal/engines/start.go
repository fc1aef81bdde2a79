package engines

import (
	"slices"

	"planner/internal/config"
	"planner/internal/list"
	"planner/internal/report"
	"planner/sweep/engine"
	"planner/sweep/measure"
)

// Start returns how one instance is started: for an engine that planner starts the actual command, except for
// the port. A simulated engine stands for vLLM.
func Start(cfg *config.Config, k measure.Knobs) report.StartCommand {
	settings := recommended(cfg)
	if cfg.Engine.Kind == "attach" {
		return report.StartCommand{Line: "nothing is started; the server at " + settings.URL + " is used as it is"}
	}
	command, err := settings.Command(k, engine.AnyPort)
	if err != nil {
		return report.StartCommand{Line: err.Error()}
	}
	notes := besides(command.Without)
	if cfg.Engine.Kind == "simulated" {
		command.Env = nil // planner sets it only for measurements
		notes = slices.Concat(notes, onNodes(cfg, k), simulatedNotes(cfg, k))
	}
	return report.StartCommand{Line: command.String(), File: command.File, Content: command.Content, Notes: notes}
}

// besides says what a command line lacks.
func besides(without []string) []string {
	return list.Map(without, func(w string) string { return "not in the command, which has no option for it: " + w })
}
