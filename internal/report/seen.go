package report

import (
	"fmt"
	"slices"
	"strings"

	"planner/internal/config"
	"planner/sweep"
	"planner/sweep/engine"
)

// SeenEngines is what was seen of the engines of a run, and what they cost by the prices
// of the GPUs that gpu finds.
func SeenEngines(seen []sweep.EngineTelemetry, gpu func(name string) (config.GPU, bool)) *Engines {
	e := &Engines{Spent: SpentOn(seen, gpu)}
	for i := range seen {
		s := &seen[i]
		t := EngineTrial{
			Trial: s.Trial, Knobs: s.Knobs, ClientTTFT: s.ClientTTFT, ServerTTFT: s.Said.TTFT, Queue: s.Said.Queue, Gap: s.Gap,
			PeakKV: s.Said.PeakKV, HitRate: s.Said.HitRate, Preemptions: s.Said.Preemptions, Output: s.Said.OutputRate, GPU: gpuText(s.GPU),
		}
		if s.Engine.Fresh {
			t.Start = startOf(&s.Engine)
		}
		e.Trials = append(e.Trials, t)
	}
	return e
}

// SpentOn sums up what the trials cost by the prices of the GPUs that gpu finds.
func SpentOn(seen []sweep.EngineTelemetry, gpu func(name string) (config.GPU, bool)) Spent {
	var total Spent
	usd, priced := 0.0, true
	for i := range seen {
		s := &seen[i]
		total.Engine += s.EngineTime
		g, known := gpu(s.Knobs.GPU)
		if !known {
			priced = false
			continue
		}
		hours := s.EngineTime.Hours() * float64(s.Knobs.GPUs())
		total.GPUHours += hours
		usd += hours * g.USDPerHour
		priced = priced && g.Priced
	}
	if priced && len(seen) > 0 {
		total.USD = &usd
	}
	return total
}

// startOf is an engine's start as reports print it.
func startOf(s *sweep.Served) *EngineStart {
	start := &EngineStart{
		Engine: strings.TrimSpace(s.Kind + " " + s.Facts.Version), Command: s.Command, Cold: s.Cold, Without: s.Without, Changed: slices.Concat(s.Facts.Changed, s.Facts.Formats),
		KVTokens: s.Facts.KVBlocks * s.Facts.BlockTokens,
	}
	for _, f := range s.Facts.Flags {
		start.Effective = append(start.Effective, f.Name+" = "+f.Value)
	}
	for _, x := range s.Stages {
		start.Stages = append(start.Stages, EngineStage{Name: x.Name, Took: x.Took})
	}
	return start
}

// gpuText sums up what the GPUs did, as far as it is known.
func gpuText(u *engine.GPUUse) string {
	if u == nil {
		return ""
	}
	var parts []string
	add := func(x float64, format string, value float64) {
		if x >= 0 {
			parts = append(parts, fmt.Sprintf(format, value))
		}
	}
	add(u.Busy, "%.0f %% busy", 100*u.Busy)
	add(u.PeakMemory, "%.1f GiB", u.PeakMemory/(1<<30))
	add(u.Watts, "%.0f W", u.Watts)
	add(u.ClockMHz, "%.0f MHz", u.ClockMHz)
	if len(u.Throttled) > 0 {
		parts = append(parts, "throttled: "+strings.Join(u.Throttled, ", "))
	}
	return strings.Join(parts, ", ")
}
