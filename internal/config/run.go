package config

import (
	"bytes"
	"fmt"

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

// runKeys are the keys of [run], which planner writes and users do not.
func runKeys() []key {
	return []key{
		{"run.command", "what made this run folder", func(d *draft) value { return word{&d.run.Command, nil} }},
		{"run.args", "its arguments", func(d *draft) value { return words{&d.run.Args} }},
		{"run.flags", "its own flags", func(d *draft) value { return table{&d.run.Flags, nil} }},
		{"run.catalog", "GPUs and model of the user's own catalog", func(*draft) value { return ownCatalog{} }},
	}
}

// ownCatalog are the rows of a user's catalog that a configuration names.
type ownCatalog struct{}

func (ownCatalog) take(n node) { n.r.putCatalog(n) }

func (ownCatalog) text() string { return "" }

// ownRows are the rows of the user's catalog that a configuration names, by table.
func (r *reader) ownRows(c *Config) (rows [2][]model.Row) {
	gpus := c.gpuNames()
	for name := range c.draft.hardware.price.each {
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
			fmt.Fprintf(b, "args = %s\n", words{&c.Run.Args}.text())
		}
		if len(c.Run.Flags) > 0 {
			fmt.Fprintf(b, "flags = %s\n", table{&c.Run.Flags, nil}.text())
		}
	}
	for t, rows := range c.draft.own {
		for _, row := range rows {
			printRow(b, "run.catalog", model.Table(t), row)
		}
	}
}
