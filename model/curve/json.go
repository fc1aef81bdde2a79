package curve

import (
	"encoding/json"
	"fmt"
	"math"
	"time"

	"planner/internal/units"
	"planner/sweep/measure"
)

// The types below are the curve in a file: latencies in milliseconds, rates per
// second, and null for a figure that is not known.

type curveJSON struct {
	Metric     string          `json:"metric"`
	Model      modelJSON       `json:"model"`
	Quality    qualityJSON     `json:"quality"`
	Valid      [2]float64      `json:"valid_per_s"`
	End        float64         `json:"end_per_s"`
	Saturation *Saturation     `json:"saturation_per_s"`
	Knee       *float64        `json:"knee_per_s"`
	KneeOf     string          `json:"knee_of,omitempty"`
	Points     []pointJSON     `json:"points"`
	Whole      *modelJSON      `json:"whole"`
	Candidates []candidateJSON `json:"candidates"`
	Band       []bandJSON      `json:"band"`
	Warnings   []string        `json:"warnings"`
}

type modelJSON struct {
	Form      Form      `json:"form"`
	Joint     bool      `json:"joint"`
	Levels    []string  `json:"levels"`
	Floors    []float64 `json:"floor_ms"`
	Scales    []float64 `json:"scale_ms"`
	Mu        float64   `json:"mu_per_s"`
	Power     float64   `json:"power,omitempty"`
	Curvature float64   `json:"curvature,omitempty"`
	Slopes    []float64 `json:"slope_ms_s,omitempty"`
}

type qualityJSON struct {
	RMSE        *float64 `json:"rmse_ln"`
	AICc        *float64 `json:"aicc"`
	LeaveOneOut *float64 `json:"leave_one_out_ln"`
}

type pointJSON struct {
	Rate       float64     `json:"rate_per_s"`
	Sent       float64     `json:"sent_per_s,omitempty"`
	Achieved   *float64    `json:"achieved_per_s"`
	Window     float64     `json:"window_s,omitempty"`
	Requests   int         `json:"requests,omitempty"`
	Overloaded bool        `json:"overloaded,omitempty"`
	Regime     Regime      `json:"regime"`
	Why        string      `json:"why,omitempty"`
	Latency    []valueJSON `json:"latency"`
}

type valueJSON struct {
	Stat string  `json:"stat"`
	MS   float64 `json:"ms"`
}

type candidateJSON struct {
	Model      modelJSON   `json:"model"`
	Points     string      `json:"points"`
	Parameters int         `json:"parameters"`
	Quality    qualityJSON `json:"quality"`
	Chosen     bool        `json:"chosen"`
}

type bandJSON struct {
	Rate float64 `json:"rate_per_s"`
	Stat string  `json:"stat"`
	Low  float64 `json:"low_ms"`
	High float64 `json:"high_ms"`
}

// MarshalJSON writes the curve with units in its keys.
func (c *Curve) MarshalJSON() ([]byte, error) {
	w := curveJSON{
		Metric: c.Metric.String(), Model: c.Model.wire(), Quality: c.Quality.wire(),
		Valid: [2]float64{c.Low, c.High}, End: c.End(), Saturation: c.Saturation,
		Points: make([]pointJSON, len(c.Points)), Candidates: make([]candidateJSON, len(c.Candidates)),
		Band: make([]bandJSON, len(c.Band)), Warnings: append([]string{}, c.Warnings...),
	}
	if c.Knee > 0 {
		w.Knee, w.KneeOf = &c.Knee, Name(c.KneeOf)
	}
	if c.Whole != nil {
		m := c.Whole.wire()
		w.Whole = &m
	}
	for i := range c.Points {
		w.Points[i] = c.Points[i].wire()
	}
	for i, k := range c.Candidates {
		points := "steady"
		if k.All {
			points = "all"
		}
		w.Candidates[i] = candidateJSON{k.Model.wire(), points, k.Parameters, k.Quality.wire(), k.Chosen}
	}
	for i, b := range c.Band {
		w.Band[i] = bandJSON{b.Rate, Name(b.Quantile), units.Milliseconds(b.Low), units.Milliseconds(b.High)}
	}
	return json.Marshal(w)
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (c *Curve) UnmarshalJSON(data []byte) error {
	var w curveJSON
	if err := json.Unmarshal(data, &w); err != nil {
		return fmt.Errorf("read a curve: %w", err)
	}
	metric, err := measure.ParseMetric(w.Metric)
	if err != nil {
		return fmt.Errorf("read a curve: %w", err)
	}
	out := Curve{Metric: metric, Quality: w.Quality.quality(), Low: w.Valid[0], High: w.Valid[1], Saturation: w.Saturation, Warnings: w.Warnings}
	if out.Model, err = w.Model.model(); err != nil {
		return fmt.Errorf("read a curve: model: %w", err)
	}
	if w.Whole != nil {
		m, err := w.Whole.model()
		if err != nil {
			return fmt.Errorf("read a curve: whole: %w", err)
		}
		out.Whole = &m
	}
	if w.Knee != nil {
		out.Knee = *w.Knee
		if out.KneeOf, err = measure.ParseStat(w.KneeOf); err != nil {
			return fmt.Errorf("read a curve: knee: %w", err)
		}
	}
	if err := out.readLists(&w); err != nil {
		return fmt.Errorf("read a curve: %w", err)
	}
	*c = out
	return nil
}

func (c *Curve) readLists(w *curveJSON) error {
	for i, p := range w.Points {
		a, err := p.point()
		if err != nil {
			return fmt.Errorf("point %d: %w", i+1, err)
		}
		c.Points = append(c.Points, a)
	}
	for i, k := range w.Candidates {
		m, err := k.Model.model()
		if err != nil {
			return fmt.Errorf("candidate %d: %w", i+1, err)
		}
		c.Candidates = append(c.Candidates, FittedForm{m, k.Points == "all", k.Parameters, k.Quality.quality(), k.Chosen})
	}
	for i, b := range w.Band {
		q, err := measure.ParseStat(b.Stat)
		if err != nil {
			return fmt.Errorf("band %d: %w", i+1, err)
		}
		c.Band = append(c.Band, BandPoint{b.Rate, q, units.Seconds(b.Low), units.Seconds(b.High)})
	}
	return nil
}

func (m *Model) wire() modelJSON {
	w := modelJSON{Form: m.Form, Joint: m.Joint, Mu: m.Mu, Power: m.Power, Curvature: m.Curvature,
		Floors: each(m.Floors, units.Milliseconds), Scales: each(m.Scales, units.Milliseconds), Slopes: each(m.Slopes, units.Milliseconds), Levels: []string{}}
	for _, q := range m.Levels {
		w.Levels = append(w.Levels, Name(q))
	}
	return w
}

func (w *modelJSON) model() (Model, error) {
	m := Model{Form: w.Form, Joint: w.Joint, Mu: w.Mu, Power: w.Power, Curvature: w.Curvature,
		Floors: each(w.Floors, units.Seconds), Scales: each(w.Scales, units.Seconds), Slopes: each(w.Slopes, units.Seconds)}
	for _, name := range w.Levels {
		q, err := measure.ParseStat(name)
		if err != nil {
			return m, err
		}
		m.Levels = append(m.Levels, q)
	}
	if m.Form != Interpolated && (len(m.Floors) != len(m.Levels) || len(m.Scales) != len(m.Levels) || len(m.Levels) == 0) {
		return m, fmt.Errorf("%s: %d levels, %d floors, %d scales", m.Form, len(m.Levels), len(m.Floors), len(m.Scales))
	}
	return m, nil
}

// each applies a conversion to every value.
func each(values []float64, convert func(float64) float64) []float64 {
	if values == nil {
		return nil
	}
	out := make([]float64, len(values))
	for i, v := range values {
		out[i] = convert(v)
	}
	return out
}

func (q Quality) wire() qualityJSON {
	return qualityJSON{units.Finite(q.RMSE), units.Finite(q.AICc), units.Finite(q.LeaveOneOut)}
}

func (w qualityJSON) quality() Quality {
	return Quality{orInf(w.RMSE), orInf(w.AICc), orInf(w.LeaveOneOut)}
}

func orInf(v *float64) float64 {
	if v == nil {
		return math.Inf(1)
	}
	return *v
}

func (a *Point) wire() pointJSON {
	w := pointJSON{Rate: a.Rate, Sent: a.Sent, Window: a.Window.Seconds(), Requests: a.Requests, Overloaded: a.Overloaded, Regime: a.Regime, Why: a.Why, Latency: []valueJSON{}}
	if a.Achieved > 0 {
		w.Achieved = &a.Achieved
	}
	for _, v := range a.Values {
		w.Latency = append(w.Latency, valueJSON{Name(v.Quantile), float64(v.Latency) / float64(time.Millisecond)})
	}
	return w
}

func (w *pointJSON) point() (Point, error) {
	a := Point{Rate: w.Rate, Sent: w.Sent, Requests: w.Requests, Overloaded: w.Overloaded, Regime: w.Regime, Why: w.Why,
		Window: units.Duration(w.Window, time.Second)}
	if w.Achieved != nil {
		a.Achieved = *w.Achieved
	}
	for _, v := range w.Latency {
		q, err := measure.ParseStat(v.Stat)
		if err != nil {
			return a, err
		}
		a.Values = append(a.Values, Value{q, units.Duration(v.MS, time.Millisecond)})
	}
	return a, nil
}

// MarshalJSON writes the crossing with units in its keys.
func (x Crossing) MarshalJSON() ([]byte, error) {
	by := x.By
	if by == nil {
		by = []FormRate{}
	}
	return json.Marshal(struct {
		Bound   string     `json:"bound"`
		Limit   float64    `json:"limit_ms"`
		Outcome string     `json:"outcome"`
		Value   float64    `json:"value_per_s"`
		Low     float64    `json:"low_per_s"`
		High    float64    `json:"high_per_s"`
		By      []FormRate `json:"by"`
		Idle    float64    `json:"idle_ms"`
		Note    string     `json:"note,omitempty"`
	}{x.Bound.String(), float64(x.Bound.Limit) / float64(time.Millisecond), string(x.Outcome), x.Value, x.Low, x.High, by,
		float64(x.Idle) / float64(time.Millisecond), x.Note})
}
