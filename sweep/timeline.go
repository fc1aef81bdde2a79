package sweep

import (
	"bufio"
	"bytes"
	"fmt"
	"math"
	"slices"
	"time"

	"planner/internal/list"
	"planner/internal/note"
	"planner/internal/stat"
	"planner/internal/wire"
	"planner/model/sim"
	"planner/sweep/engine"
	"planner/sweep/measure"
)

// Timeline is a trial step by step, from its start.
type Timeline struct {
	Trial measure.Trial
	Step  time.Duration
	// Moments are the steps, each at its middle.
	Moments []Moment
}

// Moment is what went on in one step of a trial. What is not known is NaN.
type Moment struct {
	At time.Duration
	// Arrived and Ended are requests per second, InFlight the requests in the server at the
	// end of the step, KV the largest share of the KV cache in use.
	Arrived, Ended, InFlight, KV float64
	// TTFT is the median over the requests due in the step, in seconds.
	TTFT float64
}

// timelineSteps is about how many steps a timeline has.
const timelineSteps = 120

// timelineOf cuts the records of a trial into steps; usage is the share of the KV cache in use, by
// time.
func timelineOf(t measure.Trial, records []measure.Record, usage map[time.Duration]float64) Timeline {
	end := list.Largest(records, func(r measure.Record) time.Duration { return max(r.Due, r.Last) })
	if span := t.Warmup + t.Window + t.Cooldown; !t.Closed() && span > 0 {
		end = min(end, span)
	}
	line := Timeline{Trial: t, Step: max((end / timelineSteps).Round(time.Second), time.Second)}
	ttft := make([][]time.Duration, int(end/line.Step)+1)
	change := make([]float64, len(ttft)+1)
	for i := range ttft {
		line.Moments = append(line.Moments, Moment{At: line.Step*time.Duration(i) + line.Step/2, KV: math.NaN(), TTFT: math.NaN()})
	}
	step := func(at time.Duration) int { return min(max(int(at/line.Step), 0), len(ttft)) }
	for i := range records {
		r := &records[i]
		at := step(r.Due)
		if at == len(ttft) || r.Sent < 0 {
			continue
		}
		line.Moments[at].Arrived++
		change[step(r.Sent)]++
		if r.First >= 0 {
			ttft[at] = append(ttft[at], r.First-r.Due)
		}
		if r.Last >= 0 && r.Outcome != measure.InFlight {
			change[step(r.Last)]--
			if left := step(r.Last); left < len(ttft) {
				line.Moments[left].Ended++
			}
		}
	}
	flight := 0.0
	for i := range line.Moments {
		m := &line.Moments[i]
		flight += change[i]
		m.InFlight, m.Arrived, m.Ended = flight, m.Arrived/line.Step.Seconds(), m.Ended/line.Step.Seconds()
		if slices.Sort(ttft[i]); len(ttft[i]) > 0 {
			m.TTFT = stat.Quantile(ttft[i], 0.5).Seconds()
		}
	}
	for at, share := range usage {
		if i := step(at); i < len(line.Moments) && !(line.Moments[i].KV >= share) {
			line.Moments[i].KV = share
		}
	}
	return line
}

// Timeline runs a trial again, which gives the same to the byte, and watches it.
func (s *Simulated) Timeline(t measure.Trial) (Timeline, error) {
	engine, err := s.Engine(t.Knobs)
	if err != nil {
		return Timeline{}, err
	}
	usage := map[time.Duration]float64{}
	load := sim.Load{Requests: t.Schedule(), Slots: t.Concurrency, Timeout: t.Workload.Timeout, Every: time.Second}
	load.Watch = func(p sim.Progress) note.Reason {
		usage[p.Now] = p.KV
		return note.Reason{}
	}
	return timelineOf(t, engine.Run(load).Records, usage), nil
}

// Timeline reads what was kept of a trial on a real engine. Its clock begins with the trial, and
// that of the engine's samples with the sampling, a moment apart.
func (f Folder) Timeline(t measure.Trial) (Timeline, error) {
	records, err := f.Records(t.Number)
	if err != nil {
		return Timeline{}, err
	}
	usage := map[time.Duration]float64{}
	if samples, err := f.Read(SamplesName(t.Number)); err == nil {
		lines := bufio.NewScanner(bytes.NewReader(samples))
		for lines.Scan() {
			line := engine.Snapshot{KV: math.NaN()}
			if err := wire.Unmarshal(lines.Bytes(), &line); err != nil {
				return Timeline{}, fmt.Errorf("%s: %w", f.File(SamplesName(t.Number)), err)
			}
			if line.KV >= 0 {
				usage[line.At] = line.KV
			}
		}
	}
	return timelineOf(t, records, usage), nil
}
