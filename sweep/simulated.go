package sweep

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"planner/internal/note"
	"planner/model"
	"planner/model/sim"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

// Simulated runs trials on the simulated engine: each on an idle one of its own
// with a cold prefix cache. Trials may run side by side.
type Simulated struct {
	// Deployment is the model on the GPUs that a trial's knobs name.
	Deployment func(measure.Knobs) model.Deployment
	// Version is the release of vLLM that is simulated; "" is the newest known.
	Version string
	// Settings are its other configured features.
	Settings model.EngineFeatures
	// Constants replaces those of the hardware's generation, as a calibration
	// does; nil leaves them.
	Constants func(model.Deployment, model.Constants) model.Constants
	// Known, if set, narrows or widens how far constants may be off, as a calibration does.
	Known func(model.Deployment, model.Spread) model.Spread
	// Gaps records the times between tokens, which a bound on ITL needs.
	Gaps bool
}

// Args are the engine's settings under knobs.
func (s *Simulated) Args(k measure.Knobs) model.EngineArgs { return sim.Args(k, s.Version, s.Settings) }

// Captures reports whether a CUDA graph holds as many tokens as a step may have.
func (s *Simulated) Captures(k measure.Knobs) bool {
	return s.Args(k).LargestGraph(s.Deployment(k).Hardware) >= k.MaxNumBatchedTokens
}

// Fit divides the memory of the deployment and says with a *measure.Rejection whether the
// knobs leave room for the model and one request.
func (s *Simulated) Fit(k measure.Knobs) (model.Memory, error) {
	m, err := model.MemoryPlan(s.Deployment(k), s.Args(k))
	if err != nil {
		return m, &measure.Rejection{Knobs: k, Reason: note.ReasonOf(err)}
	}
	return m, nil
}

// Roofline is the step time of the deployment with these knobs.
func (s *Simulated) Roofline(k measure.Knobs) (*model.Roofline, error) {
	dep := s.Deployment(k)
	c := model.ConstantsFor(dep.Hardware, s.Args(k))
	if s.Constants != nil {
		c = s.Constants(dep, c)
	}
	return model.NewRoofline(dep, c, s.Args(k))
}

// Model returns what is computed of an instance with these knobs: its step time and its memory. It
// is an error of type *[measure.Rejection] if they do not run.
func (s *Simulated) Model(k measure.Knobs) (*model.Roofline, model.Memory, error) {
	memory, err := s.Fit(k)
	if err != nil {
		return nil, memory, err
	}
	roofline, err := s.Roofline(k)
	if err != nil {
		err = &measure.Rejection{Knobs: k, Reason: note.ReasonOf(err)}
	}
	return roofline, memory, err
}

// Spread returns how far the constants may be off with these knobs.
func (s *Simulated) Spread(k measure.Knobs) model.Spread {
	dep := s.Deployment(k)
	spread := model.SpreadFor(dep, s.Args(k))
	if s.Known != nil {
		spread = s.Known(dep, spread)
	}
	return spread
}

// Capacity returns about the load of mean requests that knobs carry within the latency limits of an
// objective, by arithmetic without queueing. It is an error of type *[measure.Rejection] if the
// knobs do not run.
func (s *Simulated) Capacity(k measure.Knobs, q model.MeanRequest, objective measure.SLO) (model.Capacity, error) {
	roofline, memory, err := s.Model(k)
	if err != nil {
		return model.Capacity{}, err
	}
	return roofline.Capacity(q, memory, targets(objective)), nil
}

// MeanRequest returns the mean request of a workload.
func MeanRequest(w *workload.Workload) model.MeanRequest {
	prompt, output := w.MeanTokens()
	return model.MeanRequest{Prompt: prompt, Output: output}
}

// targets returns the tightest limits of an objective on TTFT and, ITL included, on TPOT.
func targets(o measure.SLO) model.Targets {
	var t model.Targets
	tighten := func(x *float64, limit time.Duration) {
		if s := limit.Seconds(); *x == 0 || s < *x {
			*x = s
		}
	}
	for _, b := range o.Latencies() {
		switch b.Metric {
		case measure.TTFT:
			tighten(&t.TTFT, b.Limit)
		case measure.TPOT, measure.ITL:
			tighten(&t.TPOT, b.Limit)
		}
	}
	return t
}

// Parts returns what an engine is made of: its step time and its scheduling.
func (s *Simulated) Parts(k measure.Knobs) (*model.Roofline, sim.Config, error) {
	roofline, memory, err := s.Model(k)
	if err != nil {
		return nil, sim.Config{}, err
	}
	config, err := sim.Configure(roofline, memory, k.PrefixCaching)
	if err != nil {
		return nil, sim.Config{}, &measure.Rejection{Knobs: k, Reason: note.ReasonOf(err)}
	}
	return roofline, config, nil
}

// Engine builds an idle engine.
func (s *Simulated) Engine(k measure.Knobs) (*sim.Engine, error) {
	timer, config, err := s.Parts(k)
	if err != nil {
		return nil, err
	}
	return sim.NewEngine(timer, config), nil
}

// watchEvery is how often, in virtual time, a trial is looked at; Trial.NextLook decides whether
// there is anything to see.
const watchEvery = 5 * time.Second

// Observe runs a trial that nobody interrupts.
func (s *Simulated) Observe(t measure.Trial) (measure.Observation, error) {
	return s.Run(context.Background(), t)
}

// Run is a [Runner].
func (s *Simulated) Run(ctx context.Context, t measure.Trial) (measure.Observation, error) {
	engine, err := s.Engine(t.Knobs)
	if err != nil {
		return measure.Observation{}, err
	}
	load := sim.Load{
		Requests: t.Schedule(), Slots: t.Concurrency, Timeout: t.Workload.Timeout,
		Gaps: s.Gaps || slices.Contains(t.Objective.Metrics(), measure.ITL), GapsFrom: t.Warmup, GapsTo: t.Warmup + t.Window,
		Every: watchEvery,
	}
	if t.Closed() {
		// All its requests count, whenever they come.
		load.GapsTo = math.MaxInt64
	}
	look := t.NextLook(0)
	load.Watch = func(p sim.Progress) note.Reason {
		if ctx.Err() != nil {
			return note.Text("interrupted").Reason()
		}
		if t.Objective.Empty() || p.Now < look || p.Now > t.Warmup+t.Window {
			return note.Reason{}
		}
		look = t.NextLook(p.Now)
		return measure.Hopeless(&t, p.Records, p.Now)
	}
	o := engine.Run(load)
	if err := ctx.Err(); err != nil {
		return measure.Observation{}, fmt.Errorf("simulate: %w", err)
	}
	if o.Server.Engine.Version = s.Version; s.Version == "" {
		o.Server.Engine.Version = NewestKnown
	}
	return o, nil
}

// NewestKnown is the release of vLLM that an empty version stands for: the last
// one whose scheduler was recorded and compared.
const NewestKnown = "0.33.0"

// ReleaseOf returns the release of vLLM that stands for a measured engine: its own, the newest known for other
// engines, which the simulated one does not follow release by release, and "" for one that does not say.
func ReleaseOf(e measure.Software) string {
	switch e.Kind {
	case "vllm", "simulated", "attach", "":
		if v, err := model.ParseVersion(e.Version); err != nil || v == (model.Version{}) {
			return ""
		}
		return e.Version
	}
	return NewestKnown
}
