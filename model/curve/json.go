package curve

import (
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

// Written is the curve in a file, with units in its keys.
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

// named is a quantile, 0 for the mean, that files have by its name.
type named float64

// MarshalText writes the name.
func (s named) MarshalText() ([]byte, error) { return []byte(measure.StatName(float64(s))), nil }

// modelFile is a model in a file: with the statistics by their names, and times in milliseconds.
type modelFile struct {
	plainModel
	Levels []named   `json:"levels"`   // the statistics that the parameters belong to
	Floors []float64 `json:"floor_ms"` // the latencies of an idle server
	Scales []float64 `json:"scale_ms"` // the sizes of the part that the load makes
}

type plainModel Model

// Written is the model in a file.
func (m Model) Written() any {
	return modelFile{plainModel(m), list.Map(m.Levels, func(q float64) named { return named(q) }),
		list.Map(m.Floors, wire.Milliseconds), list.Map(m.Scales, wire.Milliseconds)}
}

// bandFile is a point of the band in a file.
type bandFile struct {
	Rate float64 `json:"rate_per_s"` // requests per second
	Stat named   `json:"stat"`       // mean, p50, p90, p95, p99 or p99.9
	Low  float64 `json:"low_ms"`     // the lower end of 90 %
	High float64 `json:"high_ms"`    // the upper end
}

// Written is the point in a file.
func (b BandPoint) Written() any {
	return bandFile{b.Rate, named(b.Quantile), wire.Milliseconds(b.Low), wire.Milliseconds(b.High)}
}
