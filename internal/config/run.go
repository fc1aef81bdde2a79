package config

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"planner/model"
)

// Invocation is how the command was called that made a run folder: what is needed to go on
// with it and to read it again, beyond what the other sections say.
type Invocation struct {
	Command string
	Args    []string
	// Flags of the command's own, by name, as texts.
	Flags map[string]string
}

// ownRows are the rows of the user's catalog that a configuration names, by table.
func (r *reader) ownRows(c *Config) (rows [2][]model.Row) {
	gpus := slices.Clone(c.draft.gpus)
	gpus = slices.AppendSeq(gpus, maps.Keys(c.draft.price.each))
	gpus = slices.AppendSeq(gpus, maps.Keys(c.draft.tariff.each))
	rows[model.GPUTable] = r.catalog.Given(model.GPUTable, gpus...)
	if c.Model.Config == "" {
		rows[model.ModelTable] = r.catalog.Given(model.ModelTable, c.Model.Name)
	}
	return rows
}

// printRun prints [run], where there is something to say.
func (c *Config) printRun(b *bytes.Buffer) {
	if c.Run.Command != "" {
		b.WriteString("\n[run]  # written by planner, for resume and report\n")
		printRows(b, c.runRows())
	}
	for t, rows := range c.draft.own {
		for _, row := range rows {
			printRow(b, "run.catalog", model.CatalogTable(t), row)
		}
	}
}

// printRows prints the keys that have a value, one a line.
func printRows(b *bytes.Buffer, rows []row) {
	for _, k := range rows {
		if text := k.text(); text != "" {
			fmt.Fprintf(b, "%s = %s\n", k.name, text)
		}
	}
}
