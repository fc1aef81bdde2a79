package main

import (
	"maps"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"planner/internal/schema"
	"planner/plan"
	"planner/plan/decide"
	"planner/plan/fleet"
	"planner/sweep/measure"
)

func schemas() map[string]schema.Definition {
	const units = "The unit of a figure stands at the end of its key; null is not known."
	return map[string]schema.Definition{
		"plan": {Title: "plan of planner", Types: []any{plan.Plan{}, decide.NoPlan{}},
			Description: "plan.json of a run folder, and what `planner plan`, `estimate` and `fit` print with --json: a plan, or why there is none. " + units},
		"search": {Title: "maximum rate of planner", Types: []any{decide.FoundRate{}},
			Description: "What `planner search` prints with --json, and search.json of its run folder: the highest rate within the limits. " + units},
		"fleet": {Title: "replay of planner", Types: []any{fleet.Answer{}},
			Description: "What `planner fleet` prints with --json: a fleet replayed in time. " + units},
		"measurement": {Title: "measurement of planner", Types: []any{measure.Measurement{}, measure.RejectedLine{}},
			Description: "What `planner simulate` and `planner bench` print with --json: one load point, or why there is none. " + units},
		"journal": {Title: "line of a journal of planner", Types: []any{measure.Measurement{}, measure.RejectedLine{}},
			Description: "One line of journal.jsonl of a run folder: a trial, or a configuration that cannot run. " + units},
	}
}

func (p *program) schemaCommand() *cli.Command {
	names := strings.Join(slices.Sorted(maps.Keys(schemas())), ", ")
	return &cli.Command{
		Name:        "schema",
		Usage:       "JSON Schema of an output: " + names,
		ArgsUsage:   "OUTPUT",
		Description: "Example: planner schema plan > plan.schema.json",
		Action: func(c *cli.Context) error {
			name, err := onePositional(c, "output")
			if err != nil {
				return err
			}
			d, ok := schemas()[name]
			if !ok {
				return usagef("schema: unknown output %q; allowed: %s", name, names)
			}
			s, err := d.Schema()
			if err != nil {
				return err
			}
			return p.printJSON(s)
		},
	}
}
