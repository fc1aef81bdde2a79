package config

import (
	"bytes"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"planner/internal/list"
	"planner/model"
	"planner/plan"
)

// TOML prints the complete configuration, with every default and a comment for each key. Keys for which it
// matters whether they are given are commented out if they are not. Loaded for the same command, the text gives
// an equal Config; its paths are absolute.
func (c *Config) TOML() []byte {
	var b bytes.Buffer
	clustered := c.Engine.Launcher != "local" || !reflect.DeepEqual(c.Cluster, usualCluster())
	sections := slices.DeleteFunc(c.sections(), func(s tomlTable) bool { return s.name == "cluster" && !clustered })
	printKeys(&b, sections, func(key string, k tomlKey) (mark, text, comment string) {
		text, comment = k.text(), k.comment
		if note := c.note(key); note != "" {
			comment += "; " + note
		}
		if text == "" || key == "demand.rate" && c.Demand.Job != nil { // the rate of a job follows from it
			return "# ", c.implied(key), "not given: " + comment
		}
		return "", text, comment
	})
	c.printRun(&b)
	return b.Bytes()
}

// Sought is the text of all that determines the results of a search: everything but the demand, GPU prices,
// traffic over time, the run folder's parent and the invocation.
func (c *Config) Sought() string {
	cut := *c
	d := &cut.draft
	cut.Demand, d.job, d.tokensPerDay, d.price, d.tariff, cut.PowerPrice, cut.GPUs = plan.Demand{}, plan.Job{}, 0, eachGPU[float64]{}, eachGPU[plan.Tariff]{}, 0, nil
	cut.Fleet, cut.OutputDir, cut.Run = unreadFleet(), "", Invocation{}
	return string(cut.TOML())
}

// printKeys prints keys, section by section, each with the mark before it, the value and the comment that show
// returns.
func printKeys(b *bytes.Buffer, sections []tomlTable, show func(key string, k tomlKey) (mark, text, comment string)) {
	for i, s := range sections {
		if i > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(b, "[%s]\n", s.name)
		for _, k := range s.rows {
			mark, text, comment := show(s.name+"."+k.name, k)
			fmt.Fprintf(b, "%s  # %s\n", strings.TrimSpace(mark+k.name+" = "+text), comment)
		}
	}
}

// implied returns the value in force for a key that is not given, if there is one. It is printed commented out,
// since giving it would mean more than the default does.
func (c *Config) implied(key string) string {
	section, name, _ := strings.Cut(key, ".")
	switch {
	case section == "knobs":
		return knobIn(c.Space, name).text()
	case key == "search.budget":
		return quote(duration(c.Search.Budget))
	case key == "hardware.price_per_gpu_hour":
		each := map[string]float64{}
		for _, g := range c.GPUs {
			if g.Priced() {
				each[g.Hardware.Name] = g.PricePerGPUHour
			}
		}
		return hourlyPrices().print(eachGPU[float64]{each: each})
	}
	return ""
}

func (c *Config) note(key string) string {
	section, name, _ := strings.Cut(key, ".")
	switch {
	case name == "max_model_len" && len(c.draft.space[name]) == 0 && c.Workload.MaxLen > 0:
		return fmt.Sprintf("here %d", c.Workload.MaxLen)
	case name == "price_per_gpu_hour":
		return strings.Join(list.FilterMap(c.GPUs, func(g GPU) (string, bool) {
			return fmt.Sprintf("%s %s by %s", g.Hardware.Name, number(g.PricePerGPUHour), oneLine(g.PricedBy)), g.Priced() && g.PricedBy != byConfiguration
		}), "; ")
	case section == "knobs" && len(c.Space[name]) == 0 && !c.Simulated() && name != "kv_blocks" && name != "max_model_len":
		return "the engine's own default where it is not given"
	}
	return ""
}

// Invocation is the command that made a run folder: what is needed, beyond the other sections, to resume or
// reread it.
type Invocation struct {
	Command string
	Args    []string
	// Flags are the command's own flags by name, as text.
	Flags map[string]string
}

func (r *reader) ownRows(c *Config) (rows [2][]model.Row) {
	gpus := slices.Concat(c.draft.gpus, slices.Collect(maps.Keys(c.draft.price.each)), slices.Collect(maps.Keys(c.draft.tariff.each)))
	rows[model.GPUTable] = r.catalog.Given(model.GPUTable, gpus...)
	if c.Model.Config == "" {
		rows[model.ModelTable] = r.catalog.Given(model.ModelTable, c.Model.Name)
	}
	return rows
}

func (c *Config) printRun(b *bytes.Buffer) {
	if c.Run.Command != "" {
		b.WriteString("\n[run]  # written by planner, for resume and report\n")
		printRows(b, c.runRows())
	}
	for t, rows := range c.draft.own {
		for _, cells := range rows {
			fmt.Fprintf(b, "\n[[run.catalog.%s]]\n", model.CatalogTable(t))
			printRows(b, cellRows(model.CatalogTable(t), cells))
		}
	}
}

func printRows(b *bytes.Buffer, rows []tomlKey) {
	for _, k := range rows {
		if text := k.text(); text != "" {
			fmt.Fprintf(b, "%s = %s\n", k.name, text)
		}
	}
}
