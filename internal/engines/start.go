package engines

import (
	"planner/internal/config"
	"planner/internal/list"
	"planner/internal/report"
	"planner/sweep/engine"
	"planner/sweep/measure"
)

// Start says how one instance is started: of an engine that planner starts the
// very command, but for the port. The simulated engine stands for vLLM.
func Start(cfg *config.Config, k measure.Knobs) report.StartCommand {
	settings := recommended(cfg)
	switch cfg.Engine.Kind {
	case "simulated":
		formats, without, err := settings.Formats()
		if err != nil {
			return report.StartCommand{Line: err.Error()}
		}
		formats = list.Map(formats, engine.Quote)
		if len(settings.ExtraArgs) > 0 {
			formats = append(formats, engine.Command{Args: settings.ExtraArgs}.String())
		}
		return report.StartCommand{Line: report.ServerCommand(k, settings.Model, formats...), Notes: besides(without)}
	case "attach":
		return report.StartCommand{Line: "nothing is started; the server at " + settings.URL + " is used as it is"}
	}
	command, err := settings.Command(k, AnyPort)
	if err != nil {
		return report.StartCommand{Line: err.Error()}
	}
	return report.StartCommand{Line: command.String(), File: command.File, Content: command.Content, Notes: besides(command.Without)}
}

// AnyPort stands in command lines for the free one that an engine gets when it starts.
const AnyPort = 8000

// besides puts what a command line lacks in words.
func besides(without []string) []string {
	return list.Map(without, func(w string) string { return "not in the command, which has no option for it: " + w })
}
