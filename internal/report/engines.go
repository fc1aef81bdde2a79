package report

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"planner/sweep/measure"
)

// Engines is what a run on real engines cost, and what the engines said of
// themselves.
type Engines struct {
	Spent  Spent
	Trials []EngineTrial
}

// Spent is what a run has cost so far. Trials that were interrupted are not in
// it.
type Spent struct {
	// Engine is for how long engines were held, starts included; GPUHours is that
	// times the GPUs of each, 0 where nobody said that there are any.
	Engine   time.Duration
	GPUHours float64
	// USD is nil where a GPU's price is not known.
	USD *float64
}

// EngineTrial is one trial as its engine saw it. Durations and figures that are
// not known are negative.
type EngineTrial struct {
	// Trial is its number.
	Trial int
	Knobs measure.Knobs
	// Start is the engine's start; nil for one that ran already.
	Start *EngineStart
	// ClientTTFT and ServerTTFT are means over the trial's requests from sending
	// to the first token as either side sees it, Queue the mean wait within the
	// engine. Gap says where a difference above the noise lies.
	ClientTTFT, ServerTTFT, Queue time.Duration
	Gap                           string
	// PeakKV and HitRate are shares, Preemptions a count and Output tokens per
	// second; NaN where the engine does not tell.
	PeakKV, HitRate, Preemptions, Output float64
	// GPU sums up the GPUs, "" where none could be asked.
	GPU string
}

// EngineStart is an engine that was started, or reached.
type EngineStart struct {
	// Engine is kind and version, Command how it was started, "" if it ran
	// already.
	Engine, Command string
	Cold            time.Duration
	Stages          []EngineStage
	// KVTokens is the size of the KV cache, 0 where it is not known.
	KVTokens int
	// Effective are the settings that it says it runs with, Changed those among
	// them that were asked for otherwise, Without what it has no option for.
	Effective, Changed, Without []string
}

// EngineStage is a part of a start.
type EngineStage struct {
	Name string
	Took time.Duration
}

// Plus adds two costs; the sum has no price if one of them has none.
func (s Spent) Plus(o Spent) Spent {
	sum := Spent{Engine: s.Engine + o.Engine, GPUHours: s.GPUHours + o.GPUHours}
	if s.USD != nil && o.USD != nil {
		usd := *s.USD + *o.USD
		sum.USD = &usd
	}
	return sum
}

// String says what was spent: "0.70 GPU hours, $2.10".
func (s Spent) String() string {
	text := latency(s.Engine) + " of engines"
	if s.GPUHours > 0 {
		text = number(s.GPUHours, 2) + " GPU hours"
	}
	if s.USD != nil {
		text += ", " + money(*s.USD)
	}
	return text
}

// addEngines tells of the engines of a live run. chosen are the settings whose
// trials are listed, nil for all.
func addEngines(d *Document, e *Engines, trials []measure.Measurement, chosen *measure.Knobs) {
	if e == nil || len(e.Trials) == 0 {
		return
	}
	facts := Facts{{Label: "cost of this run", Text: e.Spent.String() + " (" + latency(e.Spent.Engine) + " with starts)", Tone: Strong}}
	if e.Spent.GPUHours <= 0 {
		facts[0].Text = e.Spent.String() + "; no GPU is named, so nothing is priced"
	}
	d.section("Engines", append(facts, startFacts(e, chosen)...))
	if tab := startTable(e); len(tab.Rows) > 0 {
		d.add(tab)
	}
	if tab := sightTable(e, trials, chosen); len(tab.Rows) > 0 {
		d.section("Client and server", tab)
	}
}

// startFacts describe the engine of the chosen settings, or the first one, in
// full.
func startFacts(e *Engines, chosen *measure.Knobs) Facts {
	for _, t := range e.Trials {
		s := t.Start
		if s == nil || chosen != nil && t.Knobs != *chosen {
			continue
		}
		facts := Facts{{Label: "engine", Text: s.Engine}}
		if s.Command != "" {
			facts = append(facts, Fact{Label: "started with", Text: s.Command})
		}
		if len(s.Effective) > 0 {
			facts = append(facts, Fact{Label: "runs with", Text: strings.Join(s.Effective, ", ")})
		}
		if len(s.Without) > 0 {
			facts = append(facts, Fact{Label: "not applied", Text: strings.Join(s.Without, ", ") + ": the engine has no option for it", Tone: Doubt})
		}
		return facts
	}
	return nil
}

// startTable lists the starts by stage.
func startTable(e *Engines) Table {
	var stages []string
	var all []measure.Knobs
	for _, t := range e.Trials {
		if t.Start == nil {
			continue
		}
		all = append(all, t.Knobs)
		for _, s := range t.Start.Stages {
			if !slices.Contains(stages, s.Name) {
				stages = append(stages, s.Name)
			}
		}
	}
	which := differing(all)
	tab := Table{Columns: []Column{{Name: "start for", Wrap: true}, {Name: "serves after", Right: true}}}
	for _, s := range stages {
		tab.Columns = append(tab.Columns, Column{Name: s, Right: true, Extra: true})
	}
	tab.Columns = append(tab.Columns, Column{Name: "KV tokens", Right: true}, Column{Name: "changed by the engine", Wrap: true})
	for _, t := range e.Trials {
		s := t.Start
		if s == nil {
			continue
		}
		if len(tab.Rows) == mostRows {
			tab.Caption = fmt.Sprintf("The first %d of %d starts; all stand in the run folder.", mostRows, len(all))
			break
		}
		name := fmt.Sprintf("trial %d", t.Trial)
		if slices.Contains(which, true) {
			name += ": " + describe(t.Knobs, which)
		}
		row := []Cell{{Text: name}, {Text: latency(s.Cold)}}
		for _, name := range stages {
			row = append(row, Cell{Text: stageText(s, name)})
		}
		tokens := unknown
		if s.KVTokens > 0 {
			tokens = count(s.KVTokens)
		}
		tab.Rows = append(tab.Rows, append(row, Cell{Text: tokens}, Cell{Text: strings.Join(s.Changed, "; "), Tone: Doubt}))
	}
	return tab.known()
}

// stageText is how long a stage of a start took.
func stageText(s *EngineStart, name string) string {
	for _, x := range s.Stages {
		if x.Name == name {
			return latency(x.Took)
		}
	}
	return unknown
}

// sightTable puts what the client saw beside what the server said, by trial.
func sightTable(e *Engines, trials []measure.Measurement, chosen *measure.Knobs) Table {
	tab := Table{Columns: []Column{
		{Name: "trial"}, {Name: "load"}, {Name: "mean TTFT at client, ms", Right: true}, {Name: "at server, ms", Right: true}, {Name: "gap lies in"},
		{Name: "queued, ms", Right: true}, {Name: "KV peak", Right: true}, {Name: "preempted", Right: true}, {Name: "cache hits", Right: true, Extra: true},
		{Name: "output tok/s", Right: true, Extra: true}, {Name: "GPU", Wrap: true, Extra: true},
	}}
	left := 0
	for _, t := range e.Trials {
		i := slices.IndexFunc(trials, func(m measure.Measurement) bool { return m.Trial.Number == t.Trial && m.Rejected == "" })
		if i < 0 || chosen != nil && t.Knobs != *chosen {
			continue
		}
		if len(tab.Rows) == mostRows {
			left++
			continue
		}
		tab.Rows = append(tab.Rows, []Cell{{Text: count(t.Trial)}, {Text: load(&trials[i].Trial)}, msCell(t.ClientTTFT), msCell(t.ServerTTFT),
			gapCell(&t), msCell(t.Queue), knownCell(t.PeakKV, portion), knownCell(t.Preemptions, func(x float64) string { return count(int(x)) }),
			knownCell(t.HitRate, portion), knownCell(t.Output, func(x float64) string { return number(x, 3) }), {Text: t.GPU}})
	}
	if left > 0 {
		tab.Caption = fmt.Sprintf("The first %d trials; %d more stand in the run folder.", mostRows, left)
	}
	return tab.known()
}

// msCell is a duration in milliseconds, where it is known.
func msCell(d time.Duration) Cell {
	if d < 0 {
		return Cell{Text: unknown}
	}
	return Cell{Text: number(millis(d), 3)}
}

// knownCell prints a figure that is negative where it is not known.
func knownCell(x float64, print func(float64) string) Cell {
	if math.IsNaN(x) {
		return Cell{Text: unknown}
	}
	return Cell{Text: print(x)}
}

// gapCell says where the gap between client and server lies.
func gapCell(t *EngineTrial) Cell {
	switch {
	case t.Gap != "":
		return Cell{Text: t.Gap, Tone: Doubt}
	case t.ClientTTFT >= 0 && t.ServerTTFT >= 0:
		return Cell{Text: "none", Tone: Quiet}
	}
	return Cell{Text: unknown, Tone: Quiet}
}
