package report

import (
	"encoding/json"
	"fmt"

	"gonum.org/v1/plot/plotter"
)

// chartData is a chart as the script of a page takes it: all of it inside its frame.
type chartData struct {
	Title  string       `json:"title"`
	X      axisData     `json:"x"`
	Y      axisData     `json:"y"`
	Series []lineData   `json:"series"`
	Limits []markerData `json:"limits,omitempty"`
	Rates  []markerData `json:"rates,omitempty"`
}

type axisData struct {
	Label string    `json:"label"`
	Low   float64   `json:"low"`
	High  float64   `json:"high"`
	Log   bool      `json:"log,omitempty"`
	Ticks []float64 `json:"ticks"`
}

type lineData struct {
	Name   string         `json:"name"`
	Points []pointData    `json:"points,omitempty"`
	Fit    [][][2]float64 `json:"fit,omitempty"`
	Beyond [][][2]float64 `json:"beyond,omitempty"`
	Band   [][3]float64   `json:"band,omitempty"`
}

type pointData struct {
	X     float64 `json:"x"`
	Y     float64 `json:"y"`
	Low   float64 `json:"low,omitempty"`
	High  float64 `json:"high,omitempty"`
	Over  bool    `json:"over,omitempty"`
	Trial int     `json:"trial,omitempty"`
	Text  string  `json:"text"`
}

type markerData struct {
	At    float64 `json:"at"`
	Label string  `json:"label"`
}

// script is the chart for the script of a page, as JSON that may stand in an element: the
// encoder escapes what would be markup.
func (c *Chart) script() ([]byte, error) {
	f := c.frame()
	d := chartData{Title: c.Title, X: dataOf(f.x, c.XLabel), Y: dataOf(f.y, c.YLabel), Series: []lineData{}}
	for _, r := range f.limits {
		d.Limits = append(d.Limits, markerData(r))
	}
	for _, r := range f.rates {
		d.Rates = append(d.Rates, markerData(r))
	}
	for _, s := range c.Series {
		l := lineData{Name: s.Name, Fit: places(f.stretches(s.Fit)), Beyond: places(f.stretches(s.Beyond))}
		for i, low := range s.Lower {
			if high := s.Upper[i]; f.holds(low.X, low.Y) && high.Y >= low.Y {
				l.Band = append(l.Band, [3]float64{rounded(low.X), rounded(low.Y), rounded(min(high.Y, f.y.high))})
			}
		}
		for _, p := range s.Points {
			if !f.holds(p.X, p.Y) {
				continue
			}
			at := pointData{X: rounded(p.X), Y: rounded(p.Y), Over: p.Overload, Trial: p.Trial, Text: c.told(s.Name, p)}
			if low, high := f.bar(p); low < high && !p.Overload {
				at.Low, at.High = rounded(low), rounded(high)
			}
			l.Points = append(l.Points, at)
		}
		d.Series = append(d.Series, l)
	}
	return json.Marshal(d)
}

// told is a point in words.
func (c *Chart) told(series string, p ChartPoint) string {
	s := fmt.Sprintf("%s: %s at %s", series, number(p.Y, 3), number(p.X, 3))
	if p.Low < p.Y || p.High > p.Y {
		s += fmt.Sprintf(" (%s to %s)", number(p.Low, 3), number(p.High, 3))
	}
	if p.Trial > 0 {
		s += fmt.Sprintf(", trial %d", p.Trial)
	}
	if p.Note != "" {
		s += "; " + p.Note
	}
	if p.Overload {
		s += "; overloaded"
	}
	return s
}

func dataOf(a axis, label string) axisData {
	return axisData{Label: label, Low: a.low, High: a.high, Log: a.log, Ticks: a.ticks(10)}
}

// rounded is a figure with as many digits as a picture can show.
func rounded(v float64) float64 { return round(v, 5) }

func places(lines []plotter.XYs) [][][2]float64 {
	var out [][][2]float64
	for _, line := range lines {
		var part [][2]float64
		for _, p := range line {
			part = append(part, [2]float64{rounded(p.X), rounded(p.Y)})
		}
		out = append(out, part)
	}
	return out
}
