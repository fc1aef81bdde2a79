package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"planner/internal/config"
	"planner/internal/list"
	"planner/internal/report"
	"planner/model"
	"planner/sweep/engine"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

func catalogLists() []string { return []string{"gpus", "models", "engines", "workloads"} }

func (p *program) catalogCommand() *cli.Command {
	lists := strings.Join(catalogLists(), ", ")
	return &cli.Command{
		Name:        "catalog",
		Usage:       "list what planner knows, with sources and dates: " + lists,
		ArgsUsage:   strings.Join(catalogLists(), "|") + " [WORD...]",
		Description: "Example: planner catalog gpus\n         planner catalog models llama 70b\n         planner catalog models --json",
		Flags:       shared("json", "catalog"),
		Action: func(c *cli.Context) error {
			if !c.Args().Present() {
				return usagef("catalog: missing list; allowed: %s", lists)
			}
			catalog, err := config.ReadCatalog(c.String("catalog"))
			if err != nil {
				return err
			}
			switch what := c.Args().First(); what {
			case "gpus":
				return listGPUs(p, c, catalog)
			case "models":
				return listModels(p, c, catalog)
			case "engines":
				return listEngines(p, c)
			case "workloads":
				return printList(p, c, workloadRows(), func(s workload.Shape) string { return s.Name }, workload.Class, nil,
					[]report.Column{{Name: "class"}, {Name: "prompt tokens", Wrap: true}, {Name: "answer tokens", Wrap: true}},
					func(s workload.Shape) []string { return []string{s.Name, s.Prompt.Words(), s.Output.Words()} })
			default:
				return usagef("catalog: unknown list %q; allowed: %s", what, lists)
			}
		},
	}
}

// printList prints the items whose names contain all words of the command line, or else the one that find
// returns for them: as a table, and in JSON as they are if json is nil.
func printList[T any](p *program, c *cli.Context, items []T, name func(T) string, find func(string) (T, error), json func(T) any,
	columns []report.Column, cells func(T) []string) error {
	words := c.Args().Tail()
	fitting := slices.DeleteFunc(items, func(item T) bool {
		within := strings.ToLower(name(item))
		return slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(within, strings.ToLower(word)) })
	})
	if len(fitting) == 0 {
		found, err := find(strings.Join(words, " "))
		if err != nil {
			return usagef("catalog: %w", err)
		}
		fitting = []T{found}
	}
	var rows any = fitting
	if json != nil {
		rows = list.Map(fitting, json)
	}
	return p.answer(c, rows, tableOf(columns, fitting, cells))
}

func tableOf[T any](columns []report.Column, items []T, cells func(T) []string) report.Document {
	rows := list.Map(items, func(item T) []report.Cell {
		return list.Map(cells(item), func(text string) report.Cell { return report.Cell{Text: text} })
	})
	return report.Document{Blocks: []report.Block{{Table: &report.Table{Columns: columns, Rows: rows}}}}
}

func listGPUs(p *program, c *cli.Context, catalog *model.Catalog) error {
	return printList(p, c, catalog.GPUs(), func(g model.Hardware) string { return g.Name + " " + g.Vendor }, catalog.GPU,
		func(g model.Hardware) any {
			return struct { // figures that the sources do not give are null
				Name          string  `json:"name"`
				Vendor        string  `json:"vendor"`
				MemoryBytes   float64 `json:"memory_bytes"`
				BytesPerS     float64 `json:"memory_bytes_per_s"`
				BF16          float64 `json:"bf16_flop_per_s"`
				FP8           float64 `json:"fp8_flop_per_s"`
				FP4           float64 `json:"fp4_flop_per_s"`
				INT8          float64 `json:"int8_op_per_s"`
				Link          string  `json:"link"`
				LinkBytesPerS float64 `json:"link_bytes_per_s"`
				TDP           float64 `json:"tdp_w"`
				PerHour       float64 `json:"list_price_usd_per_hour"`
				Basis         string  `json:"price_basis,omitempty"`
				Date          string  `json:"price_date,omitempty"`
				Source        string  `json:"source"`
				Notes         string  `json:"notes,omitempty"`
			}{
				g.Name, g.Vendor, known(g.Memory), known(g.Bandwidth),
				known(g.Flops.BF16), known(g.Flops.FP8), known(g.Flops.FP4), known(g.Flops.INT8),
				g.Link.Kind.String(), known(g.Link.Rate), known(g.TDP), known(g.Price.USDPerHour), g.Price.Basis, g.Price.Date, g.Source, g.Notes,
			}
		},
		[]report.Column{
			{Name: "GPU"}, {Name: "memory GB", Right: true}, {Name: "bandwidth GB/s", Right: true}, {Name: "bf16 TFLOP/s", Right: true},
			{Name: "fp8 TFLOP/s", Right: true}, {Name: "link"}, {Name: "USD/h", Right: true}, {Name: "price from", Wrap: true, Extra: true}, {Name: "source", Wrap: true, Extra: true},
		},
		func(g model.Hardware) []string {
			// A memory size given in powers of two has eight digits in powers of ten.
			return []string{g.Name, figure(math.Round(g.Memory/1e8)/10, 1), figure(g.Bandwidth, 1e9), figure(g.Flops.BF16, 1e12),
				figure(g.Flops.FP8, 1e12), g.Link.Kind.String(), figure(g.Price.USDPerHour, 1), g.Price.String(), g.Source}
		})
}

func listModels(p *program, c *cli.Context, catalog *model.Catalog) error {
	return printList(p, c, catalog.Models(), func(m model.Arch) string { return m.Name + " " + m.Repo }, catalog.Model,
		func(m model.Arch) any {
			total, active := m.Params()
			return struct {
				Name          string  `json:"name"`
				Repo          string  `json:"hf_repo"`
				Parameters    float64 `json:"parameters"`
				Active        float64 `json:"active_parameters"`
				Layers        int     `json:"layers"`
				Hidden        int     `json:"hidden"`
				Heads         int     `json:"heads"`
				KVHeads       int     `json:"kv_heads"`
				KVBytes       float64 `json:"kv_bytes_per_token"`
				LongestTokens int     `json:"max_position_tokens"`
				Source        string  `json:"source"`
				Notes         string  `json:"notes,omitempty"`
			}{m.Name, m.Repo, known(total), known(active), m.Layers, m.Hidden, m.Attention.Heads, m.Attention.KVHeads,
				known(m.KVBytesPerToken(model.KVAuto)), m.MaxPosition, m.Source, m.Notes}
		},
		[]report.Column{
			{Name: "model"}, {Name: "parameters", Right: true}, {Name: "active", Right: true}, {Name: "layers", Right: true}, {Name: "hidden", Right: true},
			{Name: "attention"}, {Name: "KV bytes/token", Right: true}, {Name: "longest", Right: true}, {Name: "Hugging Face id", Extra: true},
		},
		func(m model.Arch) []string {
			total, active := m.Params()
			return []string{m.Name, billions(total), billions(active), fmt.Sprint(m.Layers), fmt.Sprint(m.Hidden),
				fmt.Sprintf("%d/%d heads", m.Attention.Heads, m.Attention.KVHeads), figure(m.KVBytesPerToken(model.KVAuto), 1), fmt.Sprint(m.MaxPosition), m.Repo}
		})
}

func known(x float64) float64 {
	if !(x > 0) {
		return math.NaN()
	}
	return x
}

func figure(x, unit float64) string {
	if x == 0 {
		return ""
	}
	return strconv.FormatFloat(math.Round(1e6*x/unit)/1e6, 'f', -1, 64)
}

func workloadRows() []workload.Shape {
	return list.Map(workload.ClassNames(), func(name string) workload.Shape {
		s, _ := workload.Class(name)
		return s
	})
}

func billions(n float64) string {
	if !(n > 0) {
		return ""
	}
	return strconv.FormatFloat(n/1e9, 'f', 1, 64) + "B"
}

// An engineRow is a kind of engine in JSON, with what it loads and the evidence for that.
type engineRow struct {
	engine.Support
	Source string `json:"source"`
	Model  string `json:"model"`
}

// engineRows lists the simulated engine and the kinds that can be started or attached.
func engineRows() []engineRow {
	knobs := list.Map(measure.KnobTable, func(n measure.Knob) string { return n.Name })
	rows := []engineRow{{
		engine.Support{Kind: "simulated", Releases: "vLLM 0.10 to 0.33", ExactPrompts: true, ResetsCache: true, Metrics: true,
			Knobs: slices.DeleteFunc(knobs, func(name string) bool { return name == "gpu" })},
		"scheduler and block pool checked step by step against vLLM 0.15.1, 0.20.2, 0.26.0, 0.32.0 and 0.33.0; step time from data sheets and published kernel tables",
		"of the catalog, or a config.json",
	}}
	const written = "options, metrics and log lines of its source; "
	for _, s := range engine.Supported() {
		row := engineRow{s, written + "no release of it is started by the tests", "a name of Hugging Face, or a folder with its config.json"}
		switch {
		case s.Kind == "vllm":
			row.Source = written + "0.32.0 on processors is started by the tests"
		case engine.LoadsFile(s.Kind):
			row.Source, row.Model = written+"a build of 2026 is started by the tests", "a GGUF file"
		case s.Kind == "command":
			row.Source, row.Model = "engine.command", "what the command names"
		case s.Kind == "attach":
			row.Source, row.Model = "engine.url", "what the server has"
		}
		rows = append(rows, row)
	}
	return rows
}

func listEngines(p *program, c *cli.Context) error {
	kind := func(e engineRow) string { return e.Kind }
	none := func(name string) (engineRow, error) {
		return engineRow{}, fmt.Errorf("unknown engine %q; allowed: %s", name, strings.Join(list.Map(engineRows(), kind), ", "))
	}
	return printList(p, c, engineRows(), kind, none, nil,
		[]report.Column{{Name: "kind"}, {Name: "versions", Wrap: true}, {Name: "program", Wrap: true}, {Name: "model", Wrap: true},
			{Name: "knobs that it lacks", Wrap: true}, {Name: "source", Wrap: true, Extra: true}},
		func(e engineRow) []string {
			return []string{e.Kind, e.Releases, strings.Join(e.Program, " "), e.Model, strings.Join(e.Without, ", "), e.Source}
		})
}
