package report

import (
	"math"
	"slices"

	"planner/internal/list"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Bars are relative changes, one per row of a table, drawn as an image with bars to either side of a centre
// line.
type Bars struct {
	// Name is the base name of the image files, Title the text above.
	Name, Title string
	Changes     []float64
}

// span returns the extent of a row's bar, in percent of the range of all bars, and its direction.
func (b *Bars) span(row int) (from, to float64, way string) {
	low := min(slices.Min(b.Changes), 0)
	unit := 100 / max(slices.Max(b.Changes)-low, -low, 1e-9)
	zero, end := (0-low)*unit, (b.Changes[row]-low)*unit
	if end < zero {
		return end, zero, "less"
	}
	return zero, end, "more"
}

func (tab Table) plot(canvas draw.Canvas) {
	canvas = titled(canvas, tab.Bars.Title)
	canvas = draw.Crop(canvas, 0, 0, 0, -26)
	label, figure := style(10, ink, draw.XRight, draw.YCenter), style(9, softInk, draw.XLeft, draw.YCenter)
	labels := list.Largest(tab.Rows, func(row []Cell) vg.Length { return label.Width(row[0].Text) })
	const gap, figures = 6, 34 // beside the labels, and for the figures at each end
	low := min(slices.Min(tab.Bars.Changes), 0)
	left, right := canvas.Min.X+labels+gap+figures, canvas.Max.X-figures
	unit := (right - left) / vg.Length(max(slices.Max(tab.Bars.Changes), 0)-low)
	zero := left - unit*vg.Length(low)
	height := min(canvas.Size().Y/vg.Length(len(tab.Bars.Changes)), 28)
	for i, c := range tab.Bars.Changes {
		y := canvas.Max.Y - height*(vg.Length(i)+0.5)
		end := zero + unit*vg.Length(c)
		canvas.SetColor(either(c > 0, inks[1], inks[0]))
		canvas.Fill(vg.Rectangle{Min: vg.Point{X: min(zero, end), Y: y - 0.35*height}, Max: vg.Point{X: max(zero, end), Y: y + 0.35*height}}.Path())
		canvas.FillText(label, vg.Point{X: canvas.Min.X + labels, Y: y}, tab.Rows[i][0].Text)
		figure.XAlign = either(c < 0, draw.XRight, draw.XLeft)
		canvas.FillText(figure, vg.Point{X: end + vg.Length(math.Copysign(3, c)), Y: y}, signedShare(c))
	}
	bottom := canvas.Max.Y - height*vg.Length(len(tab.Bars.Changes))
	canvas.StrokeLine2(draw.LineStyle{Color: softInk, Width: 0.8}, zero, canvas.Max.Y, zero, bottom)
}
