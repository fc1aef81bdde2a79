package report

import (
	"cmp"
	"slices"

	"planner/internal/list"
	"planner/plan"
	"planner/sweep/engine"
	"planner/sweep/measure"
)

// knobText prints the value of a knob in tables; empty for the engine's default.
func knobText(n measure.Knob, k measure.Knobs) string {
	switch v := n.Get(k).(type) {
	case bool:
		return either(v, "on", "off")
	case float64:
		if text := n.Text(k); len(text) == 3 {
			return text + "0" // 0.9 beside 0.85
		}
	}
	return n.Text(k)
}

// StartCommand is how one instance is started.
type StartCommand struct {
	// Line is its command line. File is the path of its option file and Content the file's text; "" if there is
	// none.
	Line, File, Content string
	// Notes say what the command line cannot express.
	Notes []string
}

// startOf returns how an instance is started, or its knobs if that is all that is known.
func startOf(e *Engines, k measure.Knobs) (s StartCommand) {
	if e.Start != nil {
		s = e.Start(k)
	}
	// Results of other tools may give only the GPU, which makes no command.
	known := k
	known.GPU, known.PrefixUnknown = "", false
	if s.Line == "" && known != (measure.Knobs{}) {
		vllm := engine.Settings{Kind: "vllm", Model: "MODEL"}
		if command, err := vllm.Command(k, engine.AnyPort); err == nil {
			args := slices.DeleteFunc(command.Args, func(arg string) bool { return k.PrefixUnknown && arg == "--no-enable-prefix-caching" })
			s.Line = engine.Command{Args: args}.String()
		}
	}
	return s
}

// startOfPlan returns how an instance of a plan is started: as the plan's handover says if it has that.
func startOfPlan(p *plan.Plan, e *Engines) StartCommand {
	own := p.Handover.Engine
	if own == nil {
		return startOf(e, p.Offer.Knobs)
	}
	s := StartCommand{Line: engine.Command{Args: own.Argv}.String(), Notes: own.Notes}
	if own.File != nil {
		s.File, s.Content = own.File.Path, own.File.Content
	}
	return s
}

func addStart(d *Document, title string, s StartCommand) {
	if s.Line == "" {
		return
	}
	d.section(title, Code{s.Line})
	if s.File != "" {
		d.add(Paragraph{s.File + ":", Quiet}, Code{s.Content})
	}
	d.add(Bullets{s.Notes, Doubt})
}

func addModelled(d *Document, features []plan.Feature) {
	var approximated, refused Facts
	for _, f := range features {
		switch f.State {
		case plan.Approximated:
			approximated = append(approximated, Fact{f.Name, "approximated: " + f.How, Plain})
		case plan.Refused:
			refused = append(refused, Fact{f.Name, "not modelled: " + f.How, Doubt})
		}
	}
	d.section("What the simulated engine does not have as it is", append(refused, approximated...))
}

// differing marks the knobs that are not the same in all sets, by their index in the table.
func differing(sets []measure.Knobs) []bool {
	return list.Map(measure.KnobTable, func(n measure.Knob) bool {
		return slices.ContainsFunc(sets, func(k measure.Knobs) bool { return n.Get(k) != n.Get(sets[0]) })
	})
}

// describe prints the chosen knobs of a set: "TP 4, seqs 256".
func describe(k measure.Knobs, which []bool) string {
	return cmp.Or(values([]measure.Knobs{k}, which), "the same")
}

// apart marks the knobs in which sets differ; for a single set those that are given.
func apart(sets []measure.Knobs) []bool {
	if len(sets) == 1 {
		return given(sets[0])
	}
	return differing(sets)
}

// given marks the knobs not left to the engine, without degrees of 1 other than tensor_parallel.
func given(k measure.Knobs) []bool {
	return list.Map(measure.KnobTable, func(n measure.Knob) bool {
		v := n.Get(k)
		one := v == 1 && n.Placement && n.Name != "tensor_parallel"
		return v != nil && !one
	})
}

func of(trials []measure.Measurement, k measure.Knobs) (mine []measure.Measurement) {
	for i := range trials { // by index, so that only the few matches are copied
		if trials[i].Trial.Knobs == k {
			mine = append(mine, trials[i])
		}
	}
	return mine
}
