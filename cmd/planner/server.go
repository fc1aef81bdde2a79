package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"planner/internal/config"
	"planner/internal/list"
	"planner/internal/report"
	"planner/plan"
	"planner/sweep/measure"
)

// serverOf says how one instance is started: of an engine that planner starts the
// very command, but for the port. The simulated engine stands for vLLM.
func serverOf(cfg *config.Config, k measure.Knobs) report.StartCommand {
	settings := engineSettings(cfg)
	switch settings.Kind {
	case "simulated":
		settings.Kind = "vllm"
		formats, without, err := settings.Formats()
		if err != nil {
			return report.StartCommand{Line: err.Error()}
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

// serveOf is the same for programs; nil where nothing is started.
func serveOf(cfg *config.Config, k measure.Knobs, version string) *plan.Serve {
	settings := engineSettings(cfg)
	if settings.Kind == "simulated" {
		settings.Kind = "vllm"
	}
	command, err := settings.Command(k, anyPort)
	if err != nil || len(command.Args) == 0 {
		return nil
	}
	argv := list.Map(command.Args, func(arg string) string {
		if arg == "127.0.0.1" {
			return "0.0.0.0" // planner measures on loopback, instances serve others
		}
		return arg
	})
	return &plan.Serve{
		Model: settings.Model, Weights: settings.Format.Weights, KVCache: settings.Format.KV, Engine: settings.Kind, Version: version,
		Argv: argv, Port: anyPort, Env: slices.Sorted(maps.Keys(settings.Env)), File: command.File, Content: command.Content,
		Notes: besides(command.Without),
	}
}

// engineVersion is the release that trials ran on, "" where they do not say.
func engineVersion(trials []measure.Measurement) string {
	for i := range trials {
		if v := trials[i].Server.Engine.Version; v != "" {
			return v
		}
	}
	return ""
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
