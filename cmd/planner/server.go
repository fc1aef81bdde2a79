package main

import (
	"fmt"
	"slices"
	"strings"

	"planner/internal/config"
	"planner/internal/list"
	"planner/internal/report"
	"planner/sweep/engine"
	"planner/sweep/measure"
)

// serverOf says how one instance is started: of an engine that planner starts the
// very command, but for the port. The simulated engine stands for vLLM.
func serverOf(cfg *config.Config, k measure.Knobs) report.StartCommand {
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
	command, err := settings.Command(k, anyPort)
	if err != nil {
		return report.StartCommand{Line: err.Error()}
	}
	return report.StartCommand{Line: command.String(), File: command.File, Content: command.Content, Notes: besides(command.Without)}
}

// anyPort stands in command lines for the free one that an engine gets when it starts.
const anyPort = 8000

// besides puts what a command line lacks in words.
func besides(without []string) []string {
	return list.Map(without, func(w string) string { return "not in the command, which has no option for it: " + w })
}

// beside prints what belongs to the commands of servers: the files that they read,
// and what they lack.
func (p *program) beside(servers ...report.StartCommand) error {
	var texts []string
	for _, s := range servers {
		if s.File != "" {
			lines := strings.ReplaceAll(strings.TrimSpace(s.Content), "\n", "\n    ")
			texts = append(texts, s.File+":\n    "+lines)
		}
		texts = append(texts, s.Notes...)
	}
	for i, text := range texts {
		if slices.Contains(texts[:i], text) {
			continue
		}
		if _, err := fmt.Fprintf(p.plain, "  %s\n", text); err != nil {
			return err
		}
	}
	return nil
}
