package curve

import (
	"planner/internal/list"
	"planner/internal/note"
	"planner/internal/wire"
	"planner/sweep/measure"
)

// curveFile is the JSON form of a curve.
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

// Written is the curve's JSON form, with units in its keys.
func (c *Curve) Written() any {
	w := curveFile{
		Metric: c.Metric.String(), Class: c.Class, Model: c.Model, Quality: c.Quality, Valid: [2]float64{c.Low, c.High}, End: c.End(), Saturation: c.Saturation,
		Whole: c.Whole, Points: c.Points, Candidates: c.Candidates, Band: c.Band, Warnings: c.Warnings.Warnings(),
	}
	if c.Knee > 0 {
		w.Knee, w.KneeOf = &c.Knee, new(named(c.KneeOf))
	}
	return w
}

// named is a quantile, 0 for the mean, that files give by its name.
type named float64

// MarshalText writes the name.
func (s named) MarshalText() ([]byte, error) { return []byte(measure.StatName(float64(s))), nil }

// modelFile is the JSON form of a model: statistics by name, times in milliseconds.
type modelFile struct {
	plainModel
	Levels []named   `json:"levels"`   // the statistics that the parameters belong to
	Floors []float64 `json:"floor_ms"` // the latencies of an idle server
	Scales []float64 `json:"scale_ms"` // the sizes of the load-dependent part
}

type plainModel Model

// Written is the model's JSON form.
func (m Model) Written() any {
	return modelFile{plainModel(m), list.Map(m.Levels, func(q float64) named { return named(q) }),
		list.Map(m.Floors, wire.Milliseconds), list.Map(m.Scales, wire.Milliseconds)}
}

// bandFile is the JSON form of a point of the band.
type bandFile struct {
	Rate float64 `json:"rate_per_s"` // requests per second
	Stat named   `json:"stat"`       // mean, p50, p90, p95, p99 or p99.9
	Low  float64 `json:"low_ms"`     // the lower end of the 90 % band
	High float64 `json:"high_ms"`    // the upper end
}

// Written is the point's JSON form.
func (b BandPoint) Written() any {
	return bandFile{b.Rate, named(b.Quantile), wire.Milliseconds(b.Low), wire.Milliseconds(b.High)}
}
