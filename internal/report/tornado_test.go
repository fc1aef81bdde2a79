package report

import (
	"bytes"
	"fmt"
	"image/png"
	"math"
	"strings"
	"testing"

	"planner/internal/evidence/must"
	"planner/plan/effects"
)

// TestTornado draws the changes of a plan, each with its label and figure as its table has
// them, within the picture.
func TestTornado(t *testing.T) {
	d := Document{}
	p := solved()
	addSensitivity(&d, p.Sensitivity, p.Fleet.GPUs, &p.Cost.Cost)
	files, _, err := Files(d)
	must.OK(err)
	if _, err := png.Decode(bytes.NewReader(files["plots/sensitivity.png"])); err != nil || len(files["plots/sensitivity.pdf"]) == 0 {
		t.Fatal(err)
	}
	image := string(files["plots/sensitivity.svg"])
	tab := d.Blocks[1].Table
	if len(tab.Rows) < 3 || len(tab.Bars.Changes) != len(tab.Rows) {
		t.Fatalf("%d rows, %d bars", len(tab.Rows), len(tab.Bars.Changes))
	}
	for i, row := range tab.Rows {
		if figure := row[len(row)-2].Text; !strings.Contains(image, ">"+row[0].Text+"<") || !strings.Contains(image, ">"+figure+"<") {
			t.Errorf("no bar %q of %s (%v)", row[0].Text, figure, tab.Bars.Changes[i])
		}
	}
	one := Table{Columns: left("if"), Rows: [][]Cell{{{Text: "a"}}, {{Text: "b"}}}, Bars: &Bars{Name: "x", Title: "y"}}
	for _, changes := range [][]float64{{1, 0.5}, {-0.3, -0.1}, {12, -0.4}} {
		one.Bars.Changes = changes
		if svg := string(must.Get(toSVG(one.plot))); strings.Contains(svg, "NaN") || strings.Contains(svg, "Inf") {
			t.Errorf("%v: %s", changes, svg)
		}
	}
}

// TestBarsOnPages: bars of a page go from one line to either side, all on one scale.
func TestBarsOnPages(t *testing.T) {
	for _, c := range []struct {
		changes []float64
		want    string
	}{
		{[]float64{0.5, -0.25}, "33 100 more, 0 33 less"},
		{[]float64{1, 0.5}, "0 100 more, 0 50 more"},
		{[]float64{-0.4, -0.1}, "0 100 less, 75 100 less"},
	} {
		var got []string
		for row := range c.changes {
			from, to, way := (&Bars{Changes: c.changes}).span(row)
			got = append(got, fmt.Sprintf("%.0f %.0f %s", from, to, way))
		}
		if text := strings.Join(got, ", "); text != c.want {
			t.Errorf("%v: %s, want %s", c.changes, text, c.want)
		}
	}
}

// TestHeatMapOfNothing maps knobs of which no set has a rate.
func TestHeatMapOfNothing(t *testing.T) {
	for _, settings := range [][]effects.Setting{nil, {{}}} {
		tab := heatMap(settings, "max_num_seqs", "max_num_batched_tokens")
		if text := fmt.Sprint(tab); strings.Contains(text, fmt.Sprint(math.NaN())) {
			t.Error(text)
		}
	}
}
