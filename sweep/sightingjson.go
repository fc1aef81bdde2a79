package sweep

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"planner/internal/units"
	"planner/sweep/engine"
	"planner/sweep/measure"
)

// SightingName is the file of a run folder that sums up what was seen of the
// engine in a trial.
func SightingName(trial int) string { return engineDir + "/" + fileName(trial) + ".json" }

// SamplesName is the file of a run folder with what an engine and its GPUs said
// in a trial, second by second.
func SamplesName(trial int) string { return engineDir + "/" + fileName(trial) + ".jsonl" }

// HistogramsName is the file of a trial's latencies in a run folder.
func HistogramsName(trial int) string { return "histograms/" + fileName(trial) + ".hlog" }

// WriteHistograms puts the latencies of a trial into the run folder, second by
// second, as a HdrHistogram log.
func (f Folder) WriteHistograms(trial int, log []byte) error {
	return f.Write(HistogramsName(trial), log)
}

// WriteSighting puts what was seen of an engine in a trial into the run folder:
// its summary, its samples, and the client's latencies. Of an engine that never
// got to serve there is only the summary.
func (f Folder) WriteSighting(s Sighting) error {
	if err := f.WriteJSON(SightingName(s.Trial), sightingToWire(&s)); err != nil {
		return err
	}
	if s.Client.Histograms == nil {
		return nil
	}
	if err := f.WriteFrom(SamplesName(s.Trial), func(w io.Writer) error { return writeSamples(w, &s.Said) }); err != nil {
		return err
	}
	return f.WriteHistograms(s.Trial, s.Client.Histograms)
}

// ReadSightings reads the summaries of a run folder in the order of the trials.
// Samples and the client's report are not read back. A run on the simulated
// engine has none.
func (f Folder) ReadSightings() ([]Sighting, error) {
	names, err := fs.Glob(os.DirFS(f.Path), engineDir+"/[0-9][0-9][0-9][0-9]*.json")
	if err != nil {
		return nil, fmt.Errorf("read what engines said: %w", err)
	}
	var all []Sighting
	for _, name := range names {
		data, err := os.ReadFile(f.File(name))
		if err != nil {
			return nil, fmt.Errorf("read what engines said: %w", err)
		}
		var w wireSighting
		if err := json.Unmarshal(data, &w); err != nil {
			return nil, fmt.Errorf("read %s: %w", f.File(name), err)
		}
		all = append(all, w.sighting())
	}
	slices.SortFunc(all, func(a, b Sighting) int { return a.Trial - b.Trial })
	return all, nil
}

// wireSighting is a sighting as its file has it: units in the keys, null for
// what is not known.
type wireSighting struct {
	Trial      int            `json:"trial"`
	Knobs      measure.Knobs  `json:"knobs"`
	EngineTime float64        `json:"engine_time_s"`
	Engine     wireServed     `json:"engine"`
	Failure    *wireFailure   `json:"failure"`
	Trip       *float64       `json:"round_trip_ms"`
	ClientTTFT *float64       `json:"client_ttft_mean_ms"`
	Gap        string         `json:"ttft_gap"`
	Said       wireSaid       `json:"said"`
	Client     *wireClient    `json:"client"`
	GPU        *engine.GPUUse `json:"gpu"`
	Notes      []string       `json:"notes"`
}

// wireClient is what the load generator used, in a file.
type wireClient struct {
	CPU          float64  `json:"cpu_share"`
	Lag99        *float64 `json:"send_lag_p99_ms"`
	PeakInFlight int      `json:"peak_in_flight"`
}

// wireServed is an engine in a file.
type wireServed struct {
	Kind    string       `json:"kind"`
	Command string       `json:"command"`
	Log     string       `json:"log"`
	Fresh   bool         `json:"started_for_this_trial"`
	Without []string     `json:"not_applied"`
	Facts   engine.Facts `json:"facts"`
	Cold    float64      `json:"cold_start_s"`
	Stages  []wireStage  `json:"stages"`
}

// wireStage is one stage of a start in a file.
type wireStage struct {
	Name string  `json:"stage"`
	Took float64 `json:"took_s"`
}

// wireFailure is a failure in a file.
type wireFailure struct {
	Class string `json:"class"`
	Stage string `json:"stage"`
	Cause string `json:"cause"`
	Exit  string `json:"exit"`
	Log   string `json:"log"`
}

// wireSaid is what counters told in a file.
type wireSaid struct {
	TTFT        *float64 `json:"ttft_mean_ms"`
	Queue       *float64 `json:"queue_mean_ms"`
	Started     int      `json:"first_tokens"`
	Preemptions *float64 `json:"preemptions"`
	HitRate     *float64 `json:"prefix_hit_rate"`
	Prompt      *float64 `json:"prompt_tokens_per_s"`
	Generated   *float64 `json:"output_tokens_per_s"`
	PeakKV      *float64 `json:"peak_kv_usage"`
	Samples     int      `json:"samples"`
	Missed      int      `json:"missed"`
}

func sightingToWire(s *Sighting) wireSighting {
	said := sinceToWire(&s.Said.Counters)
	said.PeakKV, said.Samples, said.Missed = units.Known(s.Said.PeakKV), len(s.Said.Snapshots), s.Said.Missed
	w := wireSighting{
		Trial: s.Trial, Knobs: s.Knobs, EngineTime: s.EngineTime.Seconds(), Trip: units.Millis(s.RoundTrip), ClientTTFT: units.Millis(s.ClientTTFT), Gap: s.Gap,
		Said: said, GPU: s.Said.GPU, Notes: s.Notes,
		Engine: wireServed{Kind: s.Engine.Kind, Command: s.Engine.Command, Log: logName(s.Engine.Log), Fresh: s.Engine.Fresh,
			Without: s.Engine.Without, Facts: s.Engine.Facts, Cold: s.Engine.Cold.Seconds()},
	}
	for _, stage := range s.Engine.Stages {
		w.Engine.Stages = append(w.Engine.Stages, wireStage{stage.Name, stage.Took.Seconds()})
	}
	if f := s.Failure; f != nil {
		w.Failure = &wireFailure{string(f.Class), f.Stage, f.Cause, f.Exit, logName(f.Log)}
	}
	if s.Client.Histograms != nil {
		v := &s.Client
		w.Client = &wireClient{CPU: v.CPU, Lag99: units.Millis(v.Lag99), PeakInFlight: v.PeakInFlight}
	}
	return w
}

// sighting is what a file tells.
func (w *wireSighting) sighting() Sighting {
	s := Sighting{Trial: w.Trial, Knobs: w.Knobs, EngineTime: units.Duration(w.EngineTime, time.Second), RoundTrip: units.FromMillis(w.Trip), ClientTTFT: units.FromMillis(w.ClientTTFT),
		Gap: w.Gap, Notes: w.Notes}
	e := &w.Engine
	s.Engine = Served{Kind: e.Kind, Command: e.Command, Log: e.Log, Fresh: e.Fresh, Without: e.Without, Facts: e.Facts, Cold: units.Duration(e.Cold, time.Second)}
	for _, stage := range e.Stages {
		s.Engine.Stages = append(s.Engine.Stages, engine.Stage{Name: stage.Name, Took: units.Duration(stage.Took, time.Second)})
	}
	if f := w.Failure; f != nil {
		s.Failure = &engine.Failure{Class: engine.Class(f.Class), Knobs: w.Knobs, Stage: f.Stage, Cause: f.Cause, Exit: f.Exit, Log: f.Log}
	}
	orMinus := func(x *float64) float64 {
		if x == nil {
			return -1
		}
		return *x
	}
	said := &w.Said
	s.Said = engine.Metrics{Missed: said.Missed, PeakKV: orMinus(said.PeakKV), GPU: w.GPU, Counters: engine.Counters{
		Preemptions: orMinus(said.Preemptions), HitRate: orMinus(said.HitRate), PromptRate: orMinus(said.Prompt), OutputRate: orMinus(said.Generated),
		TTFT: units.FromMillis(said.TTFT), Queue: units.FromMillis(said.Queue), FirstTokens: said.Started,
	}}
	return s
}

func sinceToWire(s *engine.Counters) wireSaid {
	return wireSaid{
		TTFT: units.Millis(s.TTFT), Queue: units.Millis(s.Queue), Started: s.FirstTokens, Preemptions: units.Known(s.Preemptions), HitRate: units.Known(s.HitRate),
		Prompt: units.Known(s.PromptRate), Generated: units.Known(s.OutputRate),
	}
}

// logName is a log within the run folder.
func logName(path string) string {
	if path == "" {
		return ""
	}
	return engineDir + "/" + filepath.Base(path)
}

// wireSample is one line of a file of samples: of the engine at a moment, with
// what its counters tell of the time since the line before, or of one GPU.
type wireSample struct {
	At      float64  `json:"at_s"`
	Running *float64 `json:"running,omitempty"`
	Waiting *float64 `json:"waiting,omitempty"`
	KV      *float64 `json:"kv_usage,omitempty"`
	HitRate *float64 `json:"prefix_hit_rate,omitempty"`
	// Preempted counts since the line before, as FirstTokens does.
	Preempted   *float64 `json:"preemptions,omitempty"`
	Prompt      *float64 `json:"prompt_tokens_per_s,omitempty"`
	Generated   *float64 `json:"output_tokens_per_s,omitempty"`
	FirstTokens int      `json:"first_tokens,omitempty"`
	TTFT        *float64 `json:"ttft_mean_ms,omitempty"`
	Queue       *float64 `json:"queue_mean_ms,omitempty"`
	GPU         *wireGPU `json:"gpu,omitempty"`
}

// wireGPU is one GPU at a moment in a file.
type wireGPU struct {
	Index     string   `json:"index"`
	Busy      *float64 `json:"busy_share"`
	Memory    *float64 `json:"memory_bytes"`
	Watts     *float64 `json:"watts"`
	Clock     *float64 `json:"clock_mhz"`
	Throttled []string `json:"throttled,omitempty"`
}

// writeSamples writes the samples of an engine and its GPUs in the order of
// time, one line of JSON each.
func writeSamples(w io.Writer, said *engine.Metrics) error {
	lines := make([]wireSample, 0, len(said.Snapshots)+len(said.GPUs))
	for _, s := range said.Snapshots {
		x := sinceToWire(&s.Counters)
		lines = append(lines, wireSample{At: s.At.Seconds(), Running: units.Known(s.Running), Waiting: units.Known(s.Waiting), KV: units.Known(s.KV),
			HitRate: x.HitRate, Preempted: x.Preemptions, Prompt: x.Prompt, Generated: x.Generated, FirstTokens: x.Started, TTFT: x.TTFT, Queue: x.Queue})
	}
	for _, g := range said.GPUs {
		lines = append(lines, wireSample{At: g.At.Seconds(), GPU: &wireGPU{Index: g.Index, Busy: units.Known(g.Busy), Memory: units.Known(g.Memory),
			Watts: units.Known(g.Watts), Clock: units.Known(g.ClockMHz), Throttled: g.Throttled}})
	}
	slices.SortStableFunc(lines, func(a, b wireSample) int { return cmp.Compare(a.At, b.At) })
	out := json.NewEncoder(w)
	for i := range lines {
		if err := out.Encode(&lines[i]); err != nil {
			return err
		}
	}
	return nil
}
