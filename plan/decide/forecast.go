package decide

import (
	"context"
	"fmt"
	"time"

	"planner/sweep"
	"planner/sweep/measure"
)

// startTime is the time that an engine takes to start: 60 to 120 s for vLLM with weights on a local disk.
const startTime = 90 * time.Second

// Forecast says in words what a decision's searches on real engines would take according to the simulated
// engine; "" if nothing predicts it.
func (d *Decision) Forecast(ctx context.Context) (string, error) {
	if d.ground.Predict == nil || d.ground.Virtual {
		return "", nil
	}
	trials, starts := 0, 0
	var load time.Duration
	hours, usd, priced := 0.0, 0.0, true
	tried := map[measure.Knobs]bool{}
	for _, i := range d.instances {
		race := newRace(d.cfg, d.ground, i)
		var last measure.Knobs
		before, begun := load, starts
		loop := sweep.Loop{Source: race, Run: d.ground.Predict.Run, See: func(event any) {
			m, ok := event.(measure.Measurement)
			if !ok {
				return
			}
			if k := m.Trial.Knobs; k != last {
				last, tried[k] = k, true
				starts++
			}
			trials++
			load += m.Trial.Warmup + m.Duration + m.Trial.Cooldown
		}}
		if err := loop.Drive(ctx); err != nil {
			return "", err
		}
		held := (load - before + time.Duration(starts-begun)*startTime).Hours() * float64(i.priors[0].Knobs.GPUs())
		hours, usd, priced = hours+held, usd+held*i.gpu.PricePerGPUHour, priced && i.gpu.Priced()
	}
	text := fmt.Sprintf("about %d trials of %d knob sets: %v of load, %d starts of %v, %.2f GPU hours",
		trials, len(tried), load.Round(time.Second), starts, startTime, hours)
	if priced {
		text += fmt.Sprintf(", $%.2f", usd)
	}
	return text, nil
}
