package curve

import (
	"fmt"
	"math"
	"time"

	"planner/internal/note"
	"planner/internal/wire"
	"planner/sweep/measure"
)

// curveFile is a curve in a file.
type curveFile struct {
	Metric     string       `json:"metric"`
	Model      Model        `json:"model"`
	Quality    Quality      `json:"quality"`
	Valid      [2]float64   `json:"valid_per_s"`
	End        float64      `json:"end_per_s"`
	Saturation *Saturation  `json:"saturation_per_s"`
	Knee       *float64     `json:"knee_per_s"`
	KneeOf     *named       `json:"knee_of,omitempty"`
	Points     []Point      `json:"points"`
	Whole      *Model       `json:"whole"`
	Candidates []FittedForm `json:"candidates"`
	Band       []BandPoint  `json:"band"`
	note.Warnings
}

// MarshalJSON writes the curve with units in its keys.
func (c *Curve) MarshalJSON() ([]byte, error) {
	w := curveFile{
		Metric: c.Metric.String(), Model: c.Model, Quality: c.Quality, Valid: [2]float64{c.Low, c.High}, End: c.End(), Saturation: c.Saturation,
		Whole: c.Whole, Points: append([]Point{}, c.Points...), Candidates: append([]FittedForm{}, c.Candidates...),
		Band: append([]BandPoint{}, c.Band...), Warnings: c.Warnings.Warnings(),
	}
	if c.Knee > 0 {
		w.Knee, w.KneeOf = &c.Knee, new(named(c.KneeOf))
	}
	return wire.Marshal(w)
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (c *Curve) UnmarshalJSON(data []byte) error {
	var w curveFile
	if err := wire.Unmarshal(data, &w); err != nil {
		return fmt.Errorf("read a curve: %w", err)
	}
	metric, err := measure.ParseMetric(w.Metric)
	if err != nil {
		return fmt.Errorf("read a curve: %w", err)
	}
	*c = Curve{Metric: metric, Model: w.Model, Quality: w.Quality, Low: w.Valid[0], High: w.Valid[1], Saturation: w.Saturation,
		Whole: w.Whole, Points: w.Points, Candidates: w.Candidates, Band: w.Band, Warnings: w.Warnings.Read()}
	if w.Knee != nil && w.KneeOf != nil {
		c.Knee, c.KneeOf = *w.Knee, float64(*w.KneeOf)
	}
	return nil
}

// named is a quantile, 0 for the mean, that files have by its name.
type named float64

// MarshalText writes the name.
func (s named) MarshalText() ([]byte, error) { return []byte(Name(float64(s))), nil }

// UnmarshalText reads a name.
func (s *named) UnmarshalText(text []byte) error {
	q, err := measure.ParseStat(string(text))
	*s = named(q)
	return err
}

// scaled is a copy of values by which is multiplied or divided: seconds in memory are
// milliseconds in files.
func scaled(values []float64, convert func(float64) float64) []float64 {
	if values == nil {
		return nil
	}
	out := make([]float64, len(values))
	for i, v := range values {
		out[i] = convert(v)
	}
	return out
}

// plainModel is a model without methods, modelFile one with names for its statistics.
type (
	plainModel Model
	modelFile  struct {
		Form   Form    `json:"form"`
		Joint  bool    `json:"joint"`
		Levels []named `json:"levels"`
		plainModel
	}
)

// MarshalJSON writes milliseconds.
func (m Model) MarshalJSON() ([]byte, error) {
	w := modelFile{Form: m.Form, Joint: m.Joint, Levels: []named{}, plainModel: plainModel(m)}
	for _, q := range m.Levels {
		w.Levels = append(w.Levels, named(q))
	}
	w.Floors, w.Scales, w.Slopes = scaled(m.Floors, wire.Milliseconds), scaled(m.Scales, wire.Milliseconds), scaled(m.Slopes, wire.Milliseconds)
	return wire.Marshal(w)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (m *Model) UnmarshalJSON(data []byte) error {
	var w modelFile
	if err := wire.Unmarshal(data, &w); err != nil {
		return err
	}
	*m = Model(w.plainModel)
	m.Form, m.Joint = w.Form, w.Joint
	m.Floors, m.Scales, m.Slopes = scaled(w.Floors, wire.Seconds), scaled(w.Scales, wire.Seconds), scaled(w.Slopes, wire.Seconds)
	for _, q := range w.Levels {
		m.Levels = append(m.Levels, float64(q))
	}
	if m.Form != Interpolated && (len(m.Floors) != len(m.Levels) || len(m.Scales) != len(m.Levels) || len(m.Levels) == 0) {
		return fmt.Errorf("%s: %d levels, %d floors, %d scales", m.Form, len(m.Levels), len(m.Floors), len(m.Scales))
	}
	return nil
}

// MarshalJSON writes null for an unknown rate.
func (p Point) MarshalJSON() ([]byte, error) {
	type plain Point
	if p.Achieved <= 0 {
		p.Achieved = math.NaN()
	}
	p.Values = append([]Value{}, p.Values...)
	return wire.Marshal(plain(p))
}

// UnmarshalJSON reads what MarshalJSON writes.
func (p *Point) UnmarshalJSON(data []byte) error {
	type plain Point
	err := wire.Unmarshal(data, (*plain)(p))
	if math.IsNaN(p.Achieved) {
		p.Achieved = 0
	}
	return err
}

type bandFile struct {
	Rate float64 `json:"rate_per_s"`
	Stat named   `json:"stat"`
	Low  float64 `json:"low_ms"`
	High float64 `json:"high_ms"`
}

// MarshalJSON writes the name of the statistic and milliseconds.
func (b BandPoint) MarshalJSON() ([]byte, error) {
	return wire.Marshal(bandFile{b.Rate, named(b.Quantile), wire.Milliseconds(b.Low), wire.Milliseconds(b.High)})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (b *BandPoint) UnmarshalJSON(data []byte) error {
	var w bandFile
	err := wire.Unmarshal(data, &w)
	*b = BandPoint{w.Rate, float64(w.Stat), wire.Seconds(w.Low), wire.Seconds(w.High)}
	return err
}

// allPoints says whether a form was fitted to all points, or to those in a steady state.
type allPoints bool

// MarshalText writes "all" or "steady".
func (a allPoints) MarshalText() ([]byte, error) {
	if a {
		return []byte("all"), nil
	}
	return []byte("steady"), nil
}

// UnmarshalText reads what MarshalText writes.
func (a *allPoints) UnmarshalText(text []byte) error {
	*a = string(text) == "all"
	return nil
}

// MarshalJSON writes the crossing with units in its keys.
func (x Crossing) MarshalJSON() ([]byte, error) {
	return wire.Marshal(struct {
		Bound   string        `json:"bound"`
		Limit   time.Duration `json:"limit_ms"`
		Outcome string        `json:"outcome"`
		Value   float64       `json:"value_per_s"`
		Low     float64       `json:"low_per_s"`
		High    float64       `json:"high_per_s"`
		By      []FormRate    `json:"by"`
		Idle    time.Duration `json:"idle_ms"`
		Note    string        `json:"note,omitempty"`
	}{x.Bound.String(), x.Bound.Limit, string(x.Outcome), x.Value, x.Low, x.High, append([]FormRate{}, x.By...), x.Idle, x.Note})
}
