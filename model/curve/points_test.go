package curve

import (
	"encoding/csv"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"time"

	"planner/internal/evidence/must"
)

// table reads the measured table of Llama-70B on 8 x H100.
func table() []Point {
	f := must.Get(os.Open("../../testdata/llama-70b-8xh100.csv"))
	defer f.Close()
	rows := must.Get(csv.NewReader(f).ReadAll())
	var points []Point
	for _, row := range rows[1:] {
		points = append(points, Point{
			Rate:   number(row[0]),
			Values: []Value{{0.50, millis(number(row[1]))}, {0.99, millis(number(row[2]))}},
		})
	}
	return points
}

func number(s string) float64 {
	return must.Get(strconv.ParseFloat(s, 64))
}

func millis(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// law is a known curve to draw points from.
type law struct {
	Model
	noise float64
}

// stationaryLaw is M/M/1-like: 80 ms idle, mu 33 requests/s.
func stationaryLaw(noise float64) law {
	return law{Model{Form: Stationary, Joint: true, Levels: []float64{0.5, 0.99},
		Floors: []float64{0.08, 0.08}, Scales: []float64{0.035 * math.Ln2, 0.035 * tail(0.99)}, Mu: 33}, noise}
}

// timeDependentLaw has the same stationary part and trials of about a minute.
func timeDependentLaw(noise float64) law {
	const m = 0.004
	l := stationaryLaw(noise)
	l.Form, l.Curvature = TimeDependent, m
	l.Scales = []float64{l.Scales[0] * 2 / m, l.Scales[1] * 2 / m}
	return l
}

// draw takes points of the law at the rates with log-normal noise.
func (l law) draw(seed uint64, rates ...float64) []Point {
	rng := rand.New(rand.NewPCG(seed, 99))
	var points []Point
	for _, r := range rates {
		p := Point{Rate: r}
		for i, q := range l.Levels {
			y := l.at(i, r) * math.Exp(l.noise*rng.NormFloat64())
			p.Values = append(p.Values, Value{named(q), seconds(y)})
		}
		points = append(points, p)
	}
	return points
}
