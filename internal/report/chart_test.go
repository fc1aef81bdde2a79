package report

import (
	"bytes"
	"encoding/xml"
	"errors"
	"image/png"
	"io"
	"math"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"gonum.org/v1/plot/plotter"

	"planner/internal/evidence/must"
	"planner/search"
)

// charts are those of all documents.
func charts() []*Chart {
	var out []*Chart
	for _, name := range []string{"plan", "table-only", "search", "blocks"} {
		for _, b := range documents()[name].Blocks {
			if b.Chart != nil {
				out = append(out, b.Chart)
			}
		}
	}
	return out
}

func TestImagesRepeatAndNothingIsCut(t *testing.T) {
	others := charts()
	for i, c := range charts() {
		a := must.Get(toPNG(c.plot))
		b, err := toPNG(others[i].plot)
		if err != nil || !bytes.Equal(a, b) {
			t.Errorf("%s: the bytes differ (%v)", c.Title, err)
		}
		page, err := toPDF(c.plot)
		again, err2 := toPDF(others[i].plot)
		if err := errors.Join(err, err2); err != nil || !bytes.HasPrefix(page, []byte("%PDF-")) || !bytes.Equal(page, again) {
			t.Errorf("%s: the PDF's bytes differ (%v)", c.Title, err)
		}
		img := must.Get(png.Decode(bytes.NewReader(a)))
		// What is cut touches the edge.
		r := img.Bounds()
		for x := r.Min.X; x < r.Max.X; x++ {
			for y := r.Min.Y; y < r.Max.Y; y++ {
				if x > r.Min.X+2 && x < r.Max.X-3 && y > r.Min.Y+2 && y < r.Max.Y-3 {
					y = r.Max.Y - 4 // jump over the inside
					continue
				}
				if red, green, blue, _ := img.At(x, y).RGBA(); red != 0xffff || green != 0xffff || blue != 0xffff {
					t.Fatalf("%s: ink at the edge, %d, %d", c.Title, x, y)
				}
			}
		}
	}
}

func TestSVGIsWellFormedAndLabelled(t *testing.T) {
	for _, c := range charts() {
		a := must.Get(toSVG(c.plot))
		var texts []string
		r := xml.NewDecoder(bytes.NewReader(a))
		for {
			tok, err := r.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", c.Title, err)
			}
			if chars, ok := tok.(xml.CharData); ok {
				texts = append(texts, strings.TrimSpace(string(chars)))
			}
		}
		all := strings.Join(texts, "\n")
		want := []string{c.Title, c.XLabel, c.YLabel}
		for _, m := range append(append([]Reference(nil), c.Limits...), c.Rates...) {
			want = append(want, m.Label)
		}
		for _, s := range want {
			if c.Title != "Nothing" && !strings.Contains(all, s) {
				t.Errorf("%s: %q is not in the image", c.Title, s)
			}
		}
		if !bytes.Contains(a, []byte("Liberation Sans")) && c.Title != "Nothing" {
			t.Errorf("%s: another font", c.Title)
		}
	}
}

// A chart in a page takes the colours of the page, also of a dark one.
func TestInlineChartsHaveNoColoursOfTheirOwn(t *testing.T) {
	for _, c := range charts() {
		image, err := c.inline()
		if err != nil || regexp.MustCompile(`(fill|stroke):#`).MatchString(image) {
			t.Errorf("%s: a colour that no style sheet names (%v)", c.Title, err)
		}
	}
	styleSheet := must.Get(assets.ReadFile("report.css"))
	for name := range styled {
		if strings.Count(string(styleSheet), "--"+name+":") != 3 { // light, dark and on paper
			t.Errorf("the style sheet does not say what --%s is everywhere", name)
		}
	}
}

// Whatever figures come, drawing neither panics nor fails.
func TestAnyFiguresCanBeDrawn(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	odd := []float64{0, -1, math.NaN(), math.Inf(1), math.Inf(-1), 1e-300, 1e300, 1, 3, 1e-9, 1e12}
	pick := func() float64 {
		if rng.IntN(3) == 0 {
			return odd[rng.IntN(len(odd))]
		}
		return rng.ExpFloat64() * 100
	}
	for i := range 150 {
		c := &Chart{Title: "t", LogX: i%3 == 0, LinearY: i%4 == 0, Low: i%5 == 0}
		for range rng.IntN(3) {
			var s Line
			for range rng.IntN(5) {
				s.Points = append(s.Points, ChartPoint{X: pick(), Y: pick(), Low: pick(), High: pick(), Overload: rng.IntN(2) == 0})
				for _, line := range []*plotter.XYs{&s.Fit, &s.Beyond, &s.Lower, &s.Upper} {
					*line = append(*line, plotter.XY{X: pick(), Y: pick()})
				}
			}
			c.Series = append(c.Series, s)
		}
		for range rng.IntN(3) {
			c.Limits, c.Rates = append(c.Limits, Reference{pick(), "limit"}), append(c.Rates, Reference{pick(), "rate"})
		}
		d := Document{Blocks: []Block{{Chart: c}}}
		for _, out := range [][]byte{Text(d, 80, false), ownParts.ReplaceAll(HTML(d), nil), Markdown(d)} {
			if bytes.Contains(out, []byte("NaN")) || bytes.Contains(out, []byte("Inf")) {
				t.Fatalf("chart %d: %+v:\n%s", i, c, out)
			}
		}
		if i%10 < 2 {
			if _, err := toSVG(c.plot); err != nil {
				t.Fatalf("chart %d: %+v: %v", i, c, err)
			}
		}
	}
}

func TestTicks(t *testing.T) {
	got := logTicks(50, 5000)
	want := []float64{50, 100, 200, 500, 1000, 2000, 5000}
	if len(got) != len(want) {
		t.Fatalf("%v, want %v", got, want)
	}
	for i := range want {
		if math.Abs(got[i]/want[i]-1) > 1e-12 {
			t.Errorf("%v, want %v", got, want)
		}
	}
	for _, hi := range []float64{1e-6, 0.7, 1, 41.6, 999, 1e9} {
		if n := len(linearTicks(hi, 10)); n < 4 || n > 11 {
			t.Errorf("%d ticks up to %v", n, hi)
		}
	}
}

func TestExceedancePointsAreTheCounts(t *testing.T) {
	b := result().Bounds[0]
	c := exceedanceChart(b, trials()[:6])
	if n := len(c.Series[0].Points); n != 6 {
		t.Fatalf("%d points of 6 trials", n)
	}
	for i, p := range c.Series[0].Points {
		if m := trials()[i]; p.X != m.Trial.Rate || p.Y != 100*m.Counts[0].Value {
			t.Errorf("%+v is not %v at %v", p, m.Counts[0].Value, m.Trial.Rate)
		}
	}
	for _, q := range c.Series[0].Fit {
		if q.X == b.Rate && math.Abs(q.Y-1) > 1e-9 {
			t.Errorf("the curve is %v %% at the crossing", q.Y)
		}
	}
	none := exceedanceChart(search.BoundResult{Bound: "itl.p99"}, trials())
	if !none.Empty() {
		t.Error("a bound that no trial counted has points")
	}
}
