package curve

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"planner/internal/list"
	"planner/internal/note"
	"planner/internal/wire"
	"planner/sweep/measure"
)

// curveFile is a curve in a file.
type curveFile struct {
	Metric     string       `json:"metric"` // ttft, tpot, itl or e2e
	Class      string       `json:"class,omitempty"`
	Model      Model        `json:"model"`
	Quality    Quality      `json:"quality"`
	Valid      [2]float64   `json:"valid_per_s"` // the range in which a steady state was measured
	End        float64      `json:"end_per_s"`   // where the range ends in which the curve may be read
	Saturation *Saturation  `json:"saturation_per_s"`
	Knee       *float64     `json:"knee_per_s"`
	KneeOf     *named       `json:"knee_of,omitempty"` // the statistic whose knee it is
	Points     []Point      `json:"points"`
	Whole      *Model       `json:"whole"`
	Candidates []FittedForm `json:"candidates"`
	Band       []BandPoint  `json:"band"`
	note.Warnings
}

// MarshalJSON writes the curve with units in its keys.
func (c *Curve) MarshalJSON() ([]byte, error) {
	w := curveFile{
		Metric: c.Metric.String(), Class: c.Class, Model: c.Model, Quality: c.Quality, Valid: [2]float64{c.Low, c.High}, End: c.End(), Saturation: c.Saturation,
		Whole: c.Whole, Points: append([]Point{}, c.Points...), Candidates: append([]FittedForm{}, c.Candidates...),
		Band: append([]BandPoint{}, c.Band...), Warnings: c.Warnings.Warnings(),
	}
	if c.Knee > 0 {
		w.Knee, w.KneeOf = &c.Knee, new(named(c.KneeOf))
	}
	return wire.Marshal(w)
}

// Written is how a curve is written.
func (c *Curve) Written() any { return curveFile{} }

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
	if !slices.IsSortedFunc(w.Points, func(a, b Point) int { return cmp.Compare(a.Rate, b.Rate) }) {
		return errors.New("read a curve: points: rate_per_s does not rise from point to point")
	}
	*c = Curve{Metric: metric, Class: w.Class, Model: w.Model, Quality: w.Quality, Low: w.Valid[0], High: w.Valid[1], Saturation: w.Saturation,
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

// levels are quantiles that files have by their names.
type levels []float64

// MarshalJSON writes the names.
func (l levels) MarshalJSON() ([]byte, error) {
	return wire.Marshal(list.Map(l, func(q float64) named { return named(q) }))
}

// Written is how levels are written.
func (l levels) Written() any { return []named{} }

// UnmarshalJSON reads names.
func (l *levels) UnmarshalJSON(data []byte) error {
	var names []named
	err := wire.Unmarshal(data, &names)
	*l = nil
	for _, q := range names {
		*l = append(*l, float64(q))
	}
	return err
}

// latencies in seconds are milliseconds in files.
type latencies []float64

// MarshalJSON writes milliseconds.
func (s latencies) MarshalJSON() ([]byte, error) {
	s = slices.Clone(s)
	for i := range s {
		s[i] = wire.Milliseconds(s[i])
	}
	return wire.Marshal([]float64(s))
}

// Written is how latencies are written.
func (s latencies) Written() any { return []float64{} }

// UnmarshalJSON reads milliseconds.
func (s *latencies) UnmarshalJSON(data []byte) error {
	err := wire.Unmarshal(data, (*[]float64)(s))
	for i := range *s {
		(*s)[i] = wire.Seconds((*s)[i])
	}
	return err
}

// UnmarshalJSON refuses a form without the parameters of each statistic.
func (m *Model) UnmarshalJSON(data []byte) error {
	type plain Model
	if err := wire.Unmarshal(data, (*plain)(m)); err != nil {
		return err
	}
	if m.Form != Interpolated && (len(m.Floors) != len(m.Levels) || len(m.Scales) != len(m.Levels) || len(m.Levels) == 0) {
		return fmt.Errorf("%s: %d levels, %d floors, %d scales", m.Form, len(m.Levels), len(m.Floors), len(m.Scales))
	}
	return nil
}

// MarshalJSON writes null for an unknown rate.
func (p Point) MarshalJSON() ([]byte, error) {
	if p.Achieved <= 0 {
		p.Achieved = math.NaN()
	}
	p.Values = append([]Value{}, p.Values...)
	return wire.Marshal(plainPoint(p))
}

type plainPoint Point

// Written is how a point is written.
func (p Point) Written() any { return plainPoint{} }

// UnmarshalJSON reads what MarshalJSON writes.
func (p *Point) UnmarshalJSON(data []byte) error {
	err := wire.Unmarshal(data, (*plainPoint)(p))
	if math.IsNaN(p.Achieved) {
		p.Achieved = 0
	}
	return err
}

// Written is how a point of the band is written.
func (b BandPoint) Written() any { return bandFile{} }

type bandFile struct {
	Rate float64 `json:"rate_per_s"` // requests per second
	Stat named   `json:"stat"`       // mean, p50, p90, p95, p99 or p99.9
	Low  float64 `json:"low_ms"`     // the lower end of 90 %
	High float64 `json:"high_ms"`    // the upper end
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
