package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"planner/internal/config"
	"planner/internal/list"
	"planner/sweep"
	"planner/sweep/engine"
	"planner/sweep/measure"
)

// Engines is what a report says of engines besides an answer; its zero value says nothing.
type Engines struct {
	// Start returns how an instance with given knobs is started; nil if unknown.
	Start func(measure.Knobs) StartCommand
	// Seen is the telemetry of real engines by trial; empty for the simulated one.
	Seen []sweep.EngineTelemetry
	// Timeline returns a trial step by step; nil if that is unknown for all trials.
	Timeline func(measure.Trial) (sweep.Timeline, error)
	// GPU returns the GPU with the name used in knobs, with its price.
	GPU func(name string) (config.GPU, bool)
}

// spent returns the time for which engines were held, starts included; the GPU hours, 0 if no GPUs are known;
// and their cost, nil if a GPU's price is unknown. Interrupted trials are not included.
func (e *Engines) spent() (held time.Duration, gpuHours float64, usd *float64) {
	total, priced := 0.0, len(e.Seen) > 0
	for _, s := range e.Seen {
		held += s.EngineTime
		g, known := e.GPU(s.Knobs.GPU)
		priced = priced && known && g.Priced()
		if known {
			hours := s.EngineTime.Hours() * float64(s.Knobs.GPUs())
			gpuHours += hours
			total += hours * g.PricePerGPUHour
		}
	}
	if !priced {
		return held, gpuHours, nil
	}
	return held, gpuHours, &total
}

// Spent describes what the trials took: "0.70 GPU hours, $2.10".
func (e *Engines) Spent() string {
	held, hours, usd := e.spent()
	return either(hours > 0, number(hours, 2)+" GPU hours", latency(held)+" of engines") + costing(usd, "")
}

func (e *Engines) started() string {
	n, took := 0, time.Duration(0)
	for i := range e.Seen {
		if s := &e.Seen[i].Engine; s.Fresh && s.Command != "" {
			n, took = n+1, took+s.Cold
		}
	}
	return where(n > 0, fmt.Sprintf("%d, %s in all, on top of what a budget counts, the trials", n, latency(took)))
}

// addEngines describes the engines of a live run, with the trials of the chosen settings, or of all for nil.
func addEngines(d *Document, e *Engines, trials []measure.Measurement, chosen *measure.Knobs) {
	if len(e.Seen) == 0 {
		return
	}
	held, hours, _ := e.spent()
	cost := e.Spent() + either(hours > 0, " ("+latency(held)+" with starts)", "; no GPU is named, so nothing is priced")
	mine := e.Seen
	if chosen != nil {
		mine = list.Filter(e.Seen, func(s sweep.EngineTelemetry) bool { return s.Knobs == *chosen })
	}
	d.section("Engines", append(Facts{{"cost of this run", cost, Strong}, {"starts", e.started(), Plain}}, startFacts(mine)...))
	d.add(startTable(e.Seen))
	d.section("Client and server", sidesTable(mine, trials))
}

func startFacts(seen []sweep.EngineTelemetry) Facts {
	fresh, ok := list.Find(seen, func(s sweep.EngineTelemetry) bool { return s.Engine.Fresh })
	if !ok {
		return nil
	}
	s := &fresh.Engine
	flags := list.Map(s.Facts.Flags, func(f engine.Flag) string { return f.Name + " = " + f.Value })
	return Facts{{"engine", s.Facts.Name(s.Kind), Plain}, {"started with", s.Command, Plain}, {"runs with", strings.Join(flags, ", "), Plain},
		{"not applied", where(len(s.Without) > 0, strings.Join(s.Without, ", ")+": the engine has no option for it"), Doubt}}
}

func startTable(seen []sweep.EngineTelemetry) Table {
	starts := list.Filter(seen, func(s sweep.EngineTelemetry) bool { return s.Engine.Fresh })
	var stages []string
	var all []measure.Knobs
	for _, s := range starts {
		all = append(all, s.Knobs)
		stages = append(stages, list.Map(s.Engine.Stages, func(x engine.StartStage) string { return x.Name })...)
	}
	stages = list.Distinct(stages)
	which := differing(all)
	tab := table(wrapped("start for"), right("serves after"), extra(right(stages...)), right("KV tokens"), wrapped("changed by the engine"))
	for i := range starts {
		s := &starts[i].Engine
		name := fmt.Sprintf("trial %d", starts[i].Trial) + behind(": ", values([]measure.Knobs{starts[i].Knobs}, which))
		took := list.Map(stages, func(stage string) Cell {
			if x, ok := list.Find(s.Stages, func(x engine.StartStage) bool { return x.Name == stage }); ok {
				return Cell{Text: latency(x.Took)}
			}
			return Cell{Text: unknown}
		})
		changed := strings.Join(slices.Concat(s.Facts.Changed, s.Facts.Formats), "; ")
		tab.row(name, latency(s.Cold), took, some(s.Facts.KVBlocks*s.Facts.BlockTokens), Cell{changed, Doubt})
	}
	tab.first("starts", "run folder")
	return tab.known()
}

func sidesTable(seen []sweep.EngineTelemetry, trials []measure.Measurement) Table {
	tab := table(left("trial", "load"), right("mean TTFT at client, ms", "at server, ms"), left("gap lies in"),
		right("queued, ms", "KV peak", "preempted"), extra(right("cache hits", "output tok/s")), extra(wrapped("GPU")))
	for i := range seen {
		s, said := &seen[i], &seen[i].Said
		m, ok := list.Find(trials, func(m measure.Measurement) bool { return m.Trial.Number == s.Trial && m.Ran() })
		if !ok {
			continue
		}
		tab.row(s.Trial, load(&m.Trial), inMillis(s.ClientTTFT), inMillis(said.TTFT), gapCell(s), inMillis(said.Queue), percent(said.PeakKV),
			fixed(said.Preemptions, 0), percent(said.HitRate), number(said.OutputRate, 3), gpuText(s.GPU))
	}
	tab.first("trials", "run folder")
	return tab.known()
}

func inMillis(d time.Duration) string { return either(d < 0, unknown, number(millis(d), 3)) }

func gapCell(s *sweep.EngineTelemetry) Cell {
	switch {
	case s.Gap != "":
		return Cell{s.Gap, Doubt}
	case s.ClientTTFT >= 0 && s.Said.TTFT >= 0:
		return Cell{"none", Quiet}
	}
	return Cell{unknown, Quiet}
}

func gpuText(u *engine.GPUUse) string {
	if u == nil {
		return ""
	}
	known := func(x float64, format string, value float64) string { return where(x >= 0, fmt.Sprintf(format, value)) }
	return strings.Join(said(
		known(u.Busy, "%.0f %% busy", 100*u.Busy), known(u.PeakMemory, "%.1f GiB", u.PeakMemory/(1<<30)), known(u.Watts, "%.0f W", u.Watts),
		known(u.ClockMHz, "%.0f MHz", u.ClockMHz), behind("throttled: ", strings.Join(u.Throttled, ", ")),
	), ", ")
}
