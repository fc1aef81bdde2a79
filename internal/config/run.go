package config

import (
	"bytes"
	"fmt"
	"slices"

	"planner/model"
)

// Call is how the command was called that made a run folder: what is needed to go on
// with it and to read it again, beyond what the other sections say.
type Call struct {
	Command string
	Args    []string
	// Flags of the command's own, by name, as texts.
	Flags map[string]string
}

// ownRows are the rows of the user's catalog that a configuration names, by table.
func (r *reader) ownRows(c *Config) (rows [2][]model.Row) {
	gpus := slices.Clone(c.draft.gpus)
	for name := range c.draft.price.each {
		gpus = append(gpus, name)
	}
	rows[model.GPUTable] = r.catalog.Given(model.GPUTable, gpus...)
	if c.Model.Config == "" {
		rows[model.ModelTable] = r.catalog.Given(model.ModelTable, c.Model.Name)
	}
	return rows
}

// printRun prints [run], where there is something to say.
func (c *Config) printRun(b *bytes.Buffer) {
	if c.Run.Command != "" {
		fmt.Fprintf(b, "\n[run]  # written by planner, for resume and report\ncommand = %s\n", quote(c.Run.Command))
		if len(c.Run.Args) > 0 {
			fmt.Fprintf(b, "args = %s\n", arguments.print(c.Run.Args))
		}
		if len(c.Run.Flags) > 0 {
			fmt.Fprintf(b, "flags = %s\n", namedWords(nil).print(c.Run.Flags))
		}
	}
	for t, rows := range c.draft.own {
		for _, row := range rows {
			printRow(b, "run.catalog", model.CatalogTable(t), row)
		}
	}
}
