package report

import (
	"bytes"
	"fmt"
	"image/color"
	"io"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// The size of an image file, and the dots per inch of the PNG.
const (
	plotWidth, plotHeight = 18 * vg.Centimeter, 11.5 * vg.Centimeter
	plotDPI               = 160
	laneHeight            = vg.Length(12)
)

// inks are the colours of the series (Okabe and Ito 2008, told apart by the
// colour-blind); alpha is not premultiplied.
var inks = []color.NRGBA{{0x00, 0x72, 0xb2, 0xff}, {0xd5, 0x5e, 0x00, 0xff}, {0x00, 0x9e, 0x73, 0xff}}

var (
	paper   = color.NRGBA{0xff, 0xff, 0xff, 0xff}
	ink     = color.NRGBA{0x1b, 0x1f, 0x24, 0xff}
	softInk = color.NRGBA{0x57, 0x60, 0x6a, 0xff}
	gridInk = color.NRGBA{0xe1, 0xe5, 0xea, 0xff}
	badInk  = color.NRGBA{0xa4, 0x0e, 0x26, 0xff}
)

// PNG draws the chart as an image. The same chart gives the same bytes.
func (c *Chart) PNG() ([]byte, error) {
	img := vgimg.NewWith(vgimg.UseWH(plotWidth, plotHeight), vgimg.UseDPI(plotDPI))
	if err := c.plot(draw.New(img)); err != nil {
		return nil, err
	}
	return encode(c, vgimg.PngCanvas{Canvas: img})
}

// SVG draws the chart as a vector image. It names its font, Liberation Sans, and
// falls back to the viewer's where that is not installed. The same chart gives
// the same bytes.
func (c *Chart) SVG() ([]byte, error) {
	img := vgsvg.New(plotWidth, plotHeight)
	if err := c.plot(draw.New(img)); err != nil {
		return nil, err
	}
	return encode(c, img)
}

func encode(c *Chart, img io.WriterTo) ([]byte, error) {
	var b bytes.Buffer
	if _, err := img.WriteTo(&b); err != nil {
		return nil, fmt.Errorf("draw chart %q: %w", c.Title, err)
	}
	return b.Bytes(), nil
}

// style is a text style in the report's font. gonum's default font is a variable
// of its package, so every style is given here instead.
func style(size vg.Length, c color.Color, x text.XAlignment, y text.YAlignment) text.Style {
	return text.Style{
		Color:   c,
		Font:    font.Font{Typeface: "Liberation", Variant: "Sans", Size: size},
		XAlign:  x,
		YAlign:  y,
		Handler: plot.DefaultTextHandler,
	}
}

// plot lays the chart out: title and legend in a strip above the axes, the
// labels of marked rates in lanes between, so that nothing covers the data.
func (c *Chart) plot(canvas draw.Canvas) error {
	c = c.drawable()
	canvas.SetColor(paper)
	canvas.Fill(canvas.Rectangle.Path())
	canvas = draw.Crop(canvas, 8, -16, 8, -10)
	p, err := c.axes()
	if err != nil {
		return err
	}
	canvas.FillText(style(13, ink, draw.XLeft, draw.YTop), vg.Point{X: canvas.Min.X, Y: canvas.Max.Y}, c.Title)
	c.plotLegend(draw.Crop(canvas, 0, 0, 0, -21))

	data := p.DataCanvas(canvas)
	label := style(9, softInk, draw.XLeft, draw.YBottom)
	lanes, lines := c.lanes(func(m Reference) (begin, end float64) {
		w := float64(label.Width(m.Label)) + 6
		begin = min(float64(data.X(p.X.Norm(m.At))), float64(canvas.Max.X)-w)
		return begin, begin + w
	})
	canvas.FillText(style(10, ink, draw.XLeft, draw.YTop), vg.Point{X: canvas.Min.X, Y: canvas.Max.Y - 44}, c.YLabel)
	body := draw.Crop(canvas, 0, 0, 0, -58-laneHeight*vg.Length(lines))
	p.Draw(body)
	data = p.DataCanvas(body)
	for _, l := range lanes {
		x := data.X(p.X.Norm(l.mark.At))
		y := data.Max.Y + laneHeight*vg.Length(l.number) + 2
		top := y + laneHeight - 3
		if vg.Length(l.begin) < x { // the label was moved over its own line
			top = y - 1
		}
		canvas.StrokeLine2(draw.LineStyle{Color: softInk, Width: 0.6, Dashes: []vg.Length{2, 2}}, x, data.Min.Y, x, top)
		canvas.FillText(label, vg.Point{X: vg.Length(l.begin) + 3, Y: y}, l.mark.Label)
	}
	for _, m := range c.Limits {
		y := data.Y(p.Y.Norm(m.At))
		canvas.StrokeLine2(draw.LineStyle{Color: badInk, Width: 1.2, Dashes: []vg.Length{6, 3}}, data.Min.X, y, data.Max.X, y)
		canvas.FillText(style(9, badInk, draw.XLeft, draw.YBottom), vg.Point{X: data.Min.X + 5, Y: y + 2}, m.Label)
	}
	return nil
}

// axes makes the plot with its axes, grid, bands, lines and points.
func (c *Chart) axes() (*plot.Plot, error) {
	p, f := plot.New(), c.frame()
	p.X.Label.Text = c.XLabel // that of the other axis stands above it, upright
	for _, a := range []*plot.Axis{&p.X, &p.Y} {
		a.Label.TextStyle.Font = style(11, ink, 0, 0).Font
		a.Tick.Label.Font = style(10, ink, 0, 0).Font
		a.Color, a.Tick.Color, a.Tick.Label.Color = softInk, softInk, ink
		a.Label.Padding = 4
	}
	p.X.Tick.Marker, p.Y.Tick.Marker = constantTicks(linearTicks(f.x0, f.x1, 10)), constantTicks(c.ticksY(f))
	if c.LogY {
		p.Y.Scale = plot.LogScale{}
	}
	grid := plotter.NewGrid()
	grid.Vertical.Color = color.Transparent
	grid.Horizontal.Color = gridInk
	p.Add(grid)
	for i, s := range c.Series {
		if err := addLines(p, s, f, inks[i%len(inks)]); err != nil {
			return nil, err
		}
	}
	for i, s := range c.Series {
		if err := addPoints(p, s, f, i); err != nil {
			return nil, err
		}
	}
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = f.x0, f.x1, f.y0, f.y1
	return p, nil
}

func constantTicks(at []float64) plot.ConstantTicks {
	var ticks plot.ConstantTicks
	for _, v := range at {
		ticks = append(ticks, plot.Tick{Value: v, Label: exact(v)})
	}
	return ticks
}

// xys are points as gonum takes them.
func xys(line []XY) plotter.XYs {
	out := make(plotter.XYs, len(line))
	for i, p := range line {
		out[i] = plotter.XY{X: p.X, Y: p.Y}
	}
	return out
}

func addLines(p *plot.Plot, s Line, f frame, col color.NRGBA) error {
	var upper, lower plotter.XYs
	for _, b := range s.Band {
		if b.Low <= f.y1 {
			upper = append(upper, plotter.XY{X: b.X, Y: min(b.High, f.y1)})
			lower = append(plotter.XYs{{X: b.X, Y: max(b.Low, f.y0)}}, lower...)
		}
	}
	if len(upper) > 1 {
		band, err := plotter.NewPolygon(append(upper, lower...))
		if err != nil {
			return fmt.Errorf("draw the band of %s: %w", s.Name, err)
		}
		band.Color = color.NRGBA{col.R, col.G, col.B, 0x30}
		band.LineStyle.Width = 0
		p.Add(band)
	}
	for i, line := range [][]XY{s.Fit, s.Beyond} {
		for _, part := range stretches(line, f) {
			l, err := plotter.NewLine(xys(part))
			if err != nil {
				return fmt.Errorf("draw the curve of %s: %w", s.Name, err)
			}
			l.LineStyle = draw.LineStyle{Color: col, Width: 1.6}
			if i == 1 {
				l.LineStyle = draw.LineStyle{Color: col, Width: 1.2, Dashes: []vg.Length{4, 4}}
			}
			p.Add(l)
		}
	}
	return nil
}

// addPoints adds the points of the i-th series with their error bars.
func addPoints(p *plot.Plot, s Line, f frame, i int) error {
	col := inks[i%len(inks)]
	var stable, over plotter.XYs
	var bars errorPoints
	for _, q := range s.Points {
		if q.Overload {
			over = append(over, plotter.XY{X: q.X, Y: q.Y})
			continue // the error of a latency that has no steady state means nothing
		}
		stable = append(stable, plotter.XY{X: q.X, Y: q.Y})
		if q.Low < q.High {
			bars.XYs = append(bars.XYs, plotter.XY{X: q.X, Y: q.Y})
			// gonum takes the difference and subtracts it again, which for a far
			// smaller end leaves 0, and 0 has no logarithm.
			low := max(q.Low, f.y0, 1e-6*q.Y)
			bars.YErrors = append(bars.YErrors, struct{ Low, High float64 }{q.Y - low, min(q.High, f.y1) - q.Y})
		}
	}
	if len(bars.XYs) > 0 {
		b, err := plotter.NewYErrorBars(bars)
		if err != nil {
			return fmt.Errorf("draw the errors of %s: %w", s.Name, err)
		}
		b.LineStyle = draw.LineStyle{Color: col, Width: 1}
		b.CapWidth = 4
		p.Add(b)
	}
	for j, points := range []plotter.XYs{stable, over} {
		if len(points) == 0 {
			continue
		}
		sc, err := plotter.NewScatter(points)
		if err != nil {
			return fmt.Errorf("draw the points of %s: %w", s.Name, err)
		}
		sc.GlyphStyle = glyph(i, j == 1)
		p.Add(sc)
	}
	return nil
}

// errorPoints are points with errors in Y.
type errorPoints struct {
	plotter.XYs
	plotter.YErrors
}

// glyph is the sign of a point: its shape tells the series, a hollow one that the
// server was overloaded.
func glyph(series int, overload bool) draw.GlyphStyle {
	g := draw.GlyphStyle{Color: inks[series%len(inks)], Radius: 3, Shape: draw.CircleGlyph{}}
	switch {
	case overload && series%2 == 0:
		g.Shape = draw.RingGlyph{}
	case overload:
		g.Shape = draw.SquareGlyph{}
	case series%2 == 1:
		g.Shape = draw.BoxGlyph{}
	}
	return g
}

// plotLegend writes the legend in one line from the left of the canvas's top.
func (c *Chart) plotLegend(canvas draw.Canvas) {
	x, y := canvas.Min.X, canvas.Max.Y-6
	sty := style(10, ink, draw.XLeft, draw.YCenter)
	put := func(text string) {
		canvas.FillText(sty, vg.Point{X: x, Y: y}, text)
		x += sty.Width(text) + 18
	}
	overload, beyond, band := false, false, false
	for i, s := range c.Series {
		col := inks[i%len(inks)]
		if len(s.Fit) > 0 {
			canvas.StrokeLine2(draw.LineStyle{Color: col, Width: 1.6}, x, y, x+20, y)
		}
		canvas.DrawGlyphNoClip(glyph(i, false), vg.Point{X: x + 10, Y: y})
		x += 25
		put(s.Name)
		for _, p := range s.Points {
			overload = overload || p.Overload
		}
		beyond, band = beyond || len(s.Beyond) > 0, band || len(s.Band) > 0
	}
	if overload {
		for i := range min(len(c.Series), 2) {
			canvas.DrawGlyphNoClip(glyph(i, true), vg.Point{X: x + 3, Y: y})
			x += 10
		}
		x += 2
		put("overloaded")
	}
	if beyond {
		canvas.StrokeLine2(draw.LineStyle{Color: softInk, Width: 1.2, Dashes: []vg.Length{4, 4}}, x, y, x+20, y)
		x += 25
		put("not measured there")
	}
	if band {
		canvas.SetColor(color.NRGBA{softInk.R, softInk.G, softInk.B, 0x30})
		canvas.Fill(vg.Rectangle{Min: vg.Point{X: x, Y: y - 4}, Max: vg.Point{X: x + 20, Y: y + 4}}.Path())
		x += 25
		put("uncertainty of the curve")
	}
}
