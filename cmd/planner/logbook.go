package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"planner/internal/config"
	"planner/internal/report"
	"planner/sweep"
	"planner/sweep/engine"
	"planner/sweep/measure"
)

// logbook is what was seen of the engines of a run, and what they cost. It is
// kept in the run folder, so that a report needs nothing but that.
type logbook struct {
	cfg    *config.Config
	folder sweep.Folder
	seen   []sweep.Sighting
}

// add writes down what was seen in a trial, in the place of what was seen when
// the same trial was cut short before.
func (l *logbook) add(s sweep.Sighting) error {
	l.seen = slices.DeleteFunc(l.seen, func(old sweep.Sighting) bool { return old.Trial == s.Trial })
	l.seen = append(l.seen, s)
	if err := l.folder.WriteSighting(s); err != nil {
		return fmt.Errorf("keep what the engine said in trial %d: %w", s.Trial, err)
	}
	return nil
}

// read takes up what the run folder holds.
func (l *logbook) read() (err error) {
	l.seen, err = l.folder.ReadSightings()
	return err
}

// spent sums up what the run cost so far.
func (l *logbook) spent() report.Spent {
	var total report.Spent
	usd, priced := 0.0, len(l.cfg.GPUs) > 0
	for i := range l.seen {
		s := &l.seen[i]
		total.Engine += s.EngineTime
		gpu, known := l.cfg.GPU(s.Knobs.GPU)
		if !known {
			priced = false
			continue
		}
		hours := s.EngineTime.Hours() * float64(s.Knobs.GPUs())
		total.GPUHours += hours
		usd += hours * gpu.USDPerHour
		priced = priced && gpu.Priced
	}
	if priced {
		total.USD = &usd
	}
	return total
}

// engines puts it the way that reports print.
func (l *logbook) engines() *report.Engines {
	e := &report.Engines{Spent: l.spent()}
	for i := range l.seen {
		s := &l.seen[i]
		t := report.EngineTrial{
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

// startOf is an engine's start as reports print it.
func startOf(s *sweep.Served) *report.EngineStart {
	start := &report.EngineStart{
		Engine: strings.TrimSpace(s.Kind + " " + s.Facts.Version), Command: s.Command, Cold: s.Cold, Without: s.Without, Changed: slices.Concat(s.Facts.Changed, s.Facts.Formats),
		KVTokens: s.Facts.KVBlocks * s.Facts.BlockTokens,
	}
	for _, f := range s.Facts.Flags {
		start.Effective = append(start.Effective, f.Name+" = "+f.Value)
	}
	for _, x := range s.Stages {
		start.Stages = append(start.Stages, report.EngineStage{Name: x.Name, Took: x.Took})
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

// readLogbook is what a run folder tells of the engines of a run; nil for one on
// the simulated engine.
func readLogbook(cfg *config.Config, folder sweep.Folder) (*report.Engines, error) {
	if cfg.Simulated() {
		return nil, nil
	}
	l := &logbook{cfg: cfg, folder: folder}
	if err := l.read(); err != nil {
		return nil, err
	}
	return l.engines(), nil
}

// budgetOf is the engine time that all searches of a run may take together, 0
// where nothing bounds it.
func budgetOf(cfg *config.Config, searches int) time.Duration {
	if cfg.Simulated() && !cfg.Search.BudgetGiven {
		return 0
	}
	return time.Duration(searches) * cfg.Search.Budget
}

// untrusted warns of trials of the knobs that could not be trusted, such as
// those whose load generator had too little of the machine: an answer stands on
// the others.
func untrusted(trials []measure.Measurement, k measure.Knobs) []string {
	all, doubtful, why := 0, 0, ""
	for i := range trials {
		m := &trials[i]
		if m.Trial.Knobs != k || m.Rejected != "" {
			continue
		}
		all++
		if !m.Valid && m.Aborted == "" {
			doubtful++
			if why == "" && len(m.Warnings) > 0 {
				why = ", first " + m.Warnings[0]
			}
		}
	}
	switch {
	case doubtful == 0:
		return nil
	case all == 1:
		return []string{"the only trial of the chosen settings could not be trusted" + why + ": the rate is a guess"}
	case doubtful == all:
		return []string{fmt.Sprintf("none of the %d trials of the chosen settings could be trusted%s: the rate is a guess", all, why)}
	}
	return []string{fmt.Sprintf("%d of the %d trials of the chosen settings could not be trusted%s", doubtful, all, why)}
}
