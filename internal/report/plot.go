package report

import (
	"bytes"
	"errors"
	"fmt"
	"html"
	"image/color"
	"os"
	"regexp"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgpdf"
	"gonum.org/v1/plot/vg/vgsvg"

	"planner/internal/list"
)

// The size of an image file, and the dots per inch of the PNG.
const (
	plotWidth, plotHeight = 18 * vg.Centimeter, 11.5 * vg.Centimeter
	plotDPI               = 120
	laneHeight            = vg.Length(12)
)

// inks are the colours of the series, distinguishable for the colour-blind (Okabe and Ito 2008).
var inks = []color.NRGBA{
	{0x00, 0x72, 0xb2, 0xff}, {0xc0, 0x4a, 0x00, 0xff}, {0x00, 0x79, 0x4f, 0xff},
	{0xa6, 0x4d, 0x86, 0xff}, {0x8c, 0x6d, 0x00, 0xff}, {0x3b, 0x7f, 0xa8, 0xff},
}

var (
	paper   = color.NRGBA{0xff, 0xff, 0xff, 0xff}
	ink     = color.NRGBA{0x1b, 0x1f, 0x24, 0xff}
	softInk = color.NRGBA{0x57, 0x60, 0x6a, 0xff}
	gridInk = color.NRGBA{0xe1, 0xe5, 0xea, 0xff}
	badInk  = color.NRGBA{0xa4, 0x0e, 0x26, 0xff}
)

// styled are the colours by their names in the style sheet, which replaces them on dark pages.
var styled = map[string]color.NRGBA{
	"paper": paper, "ink": ink, "soft": softInk, "rule": gridInk, "bad": badInk,
	"s0": inks[0], "s1": inks[1], "s2": inks[2], "s3": inks[3], "s4": inks[4], "s5": inks[5],
}

func toPNG(plot func(draw.Canvas)) ([]byte, error) {
	img := vgimg.NewWith(vgimg.UseWH(plotWidth, plotHeight), vgimg.UseDPI(plotDPI))
	return image(plot, vgimg.PngCanvas{Canvas: img})
}

// toSVG draws a vector image. It names the font Liberation Sans, and the viewer substitutes its own if
// necessary.
func toSVG(plot func(draw.Canvas)) ([]byte, error) {
	return image(plot, vgsvg.New(plotWidth, plotHeight))
}

// pdfDate matches a date in a PDF file.
var pdfDate = regexp.MustCompile(`\(D:[0-9]{14}`)

// toPDF draws a page of the picture's size with embedded fonts, dated to the beginning of 2000 for
// reproducibility.
func toPDF(plot func(draw.Canvas)) (page []byte, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %v; they need room in %s, which TMPDIR names", errPDF, r, os.TempDir())
		}
	}()
	page, err = image(plot, vgpdf.New(plotWidth, plotHeight))
	return pdfDate.ReplaceAll(page, []byte("(D:20000101000000")), err
}

// errPDF is returned if vgpdf panics, as it does if it cannot write its fonts.
var errPDF = errors.New("no charts as PDF")

func (c *Chart) inline() (string, error) {
	drawn, err := toSVG(c.plot)
	if err != nil {
		return "", err
	}
	var colors []string
	for name, c := range styled {
		for _, c := range []color.NRGBA{c, faint(c)} {
			r, g, b, a := c.RGBA() // the SVG has the colours without alpha
			colors = append(colors, fmt.Sprintf("#%02X%02X%02X", r*0xff/a, g*0xff/a, b*0xff/a), "var(--"+name+")")
		}
	}
	_, body, _ := strings.Cut(string(drawn), "<svg") // without what heads a file of its own
	label := html.EscapeString(c.Title + "; the points stand in the table below")
	return `<svg role="img" aria-label="` + label + `"` + strings.NewReplacer(colors...).Replace(body), nil
}

func image(plot func(draw.Canvas), canvas vg.CanvasWriterTo) ([]byte, error) {
	plot(draw.New(canvas))
	var b bytes.Buffer
	if _, err := canvas.WriteTo(&b); err != nil {
		return nil, fmt.Errorf("plot: %w", err)
	}
	return b.Bytes(), nil
}

func titled(canvas draw.Canvas, title string) draw.Canvas {
	canvas.SetColor(paper)
	canvas.Fill(canvas.Rectangle.Path())
	canvas = draw.Crop(canvas, 8, -16, 8, -10)
	canvas.FillText(style(13, ink, draw.XLeft, draw.YTop), vg.Point{X: canvas.Min.X, Y: canvas.Max.Y}, title)
	return canvas
}

// style returns a text style in the report's font. gonum's default font is a package variable, so every style
// is given here instead.
func style(size vg.Length, c color.Color, x text.XAlignment, y text.YAlignment) text.Style {
	return text.Style{
		Color:   c,
		Font:    font.Font{Typeface: "Liberation", Variant: "Sans", Size: size},
		XAlign:  x,
		YAlign:  y,
		Handler: plot.DefaultTextHandler,
	}
}

// plot lays out the chart: title and legend above the axes, and between them the rate labels, each on its own
// line with the rightmost in the lowest, so that nothing covers the data and no mark crosses a label.
func (c *Chart) plot(canvas draw.Canvas) {
	canvas = titled(canvas, c.Title)
	f := c.drawing()
	p := c.axes(f)
	c.plotLegend(draw.Crop(canvas, 0, 0, 0, -21))

	label := style(9, softInk, draw.XLeft, draw.YBottom)
	canvas.FillText(style(10, ink, draw.XLeft, draw.YTop), vg.Point{X: canvas.Min.X, Y: canvas.Max.Y - 44}, c.YLabel)
	body := draw.Crop(canvas, 0, 0, 0, -58-laneHeight*vg.Length(len(f.Rates)))
	p.Draw(body)
	data := p.DataCanvas(body)
	for i, r := range f.Rates {
		x := data.X(p.X.Norm(r.At))
		begin := min(x, canvas.Max.X-label.Width(r.Label)-6)
		y := data.Max.Y + laneHeight*vg.Length(len(f.Rates)-1-i) + 2
		top := either(begin < x, y-1, y+laneHeight-3) // a label may have been moved over its mark
		canvas.StrokeLine2(draw.LineStyle{Color: softInk, Width: 0.6, Dashes: []vg.Length{2, 2}}, x, data.Min.Y, x, top)
		canvas.FillText(label, vg.Point{X: begin + 3, Y: y}, r.Label)
	}
	for _, r := range f.Limits {
		y := data.Y(p.Y.Norm(r.At))
		canvas.StrokeLine2(draw.LineStyle{Color: badInk, Width: 1.2, Dashes: []vg.Length{6, 3}}, data.Min.X, y, data.Max.X, y)
		canvas.FillText(style(9, badInk, draw.XLeft, draw.YBottom), vg.Point{X: data.Min.X + 5, Y: y + 2}, r.Label)
	}
}

func (c *Chart) axes(f drawing) *plot.Plot {
	p := plot.New()
	p.X.Label.Text = c.XLabel // the other axis has its label above it, horizontally
	for _, a := range []*plot.Axis{&p.X, &p.Y} {
		a.Label.TextStyle.Font = style(11, ink, 0, 0).Font
		a.Tick.Label.Font = style(10, ink, 0, 0).Font
		a.Color, a.Tick.Color, a.Tick.Label.Color = softInk, softInk, ink
		a.Label.Padding = 4
	}
	p.X.Tick.Marker, p.Y.Tick.Marker = constantTicks(f.X.ticks(10)), constantTicks(f.Y.ticks(8))
	scales := map[bool]plot.Normalizer{false: plot.LinearScale{}, true: plot.LogScale{}}
	p.X.Scale, p.Y.Scale = scales[f.X.Log], scales[f.Y.Log]
	grid := plotter.NewGrid()
	grid.Vertical.Color = nil
	grid.Horizontal.Color = gridInk
	p.Add(grid)
	for _, l := range f.Series {
		addLines(p, l)
	}
	for i, l := range f.Series {
		addPoints(p, l.Points, i)
	}
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = f.X.Low, f.X.High, f.Y.Low, f.Y.High
	return p
}

func constantTicks(at []float64) plot.ConstantTicks {
	return list.Map(at, func(v float64) plot.Tick { return plot.Tick{Value: v, Label: exact(v)} })
}

func addLines(p *plot.Plot, l drawnLine) {
	col := styled[l.Color]
	if len(l.Upper) > 1 {
		slices.Reverse(l.Lower)
		p.Add(&plotter.Polygon{XYs: []plotter.XYs{append(l.Upper, l.Lower...)}, Color: faint(col)})
	}
	for _, part := range l.Fit {
		p.Add(&plotter.Line{XYs: part, LineStyle: draw.LineStyle{Color: col, Width: 1.6}})
	}
	for _, part := range l.Beyond {
		p.Add(&plotter.Line{XYs: part, LineStyle: beyondStyle(col)})
	}
}

// beyondStyle is the style of an extrapolated line, faint the colour of a band.
func beyondStyle(c color.NRGBA) draw.LineStyle {
	return draw.LineStyle{Color: c, Width: 1.2, Dashes: []vg.Length{4, 4}}
}

func faint(c color.NRGBA) color.NRGBA { return color.NRGBA{c.R, c.G, c.B, 0x30} }

func addPoints(p *plot.Plot, points []ChartPoint, i int) {
	stable, over := &plotter.Scatter{GlyphStyle: glyph(i, false)}, &plotter.Scatter{GlyphStyle: glyph(i, true)}
	bars := &plotter.YErrorBars{LineStyle: draw.LineStyle{Color: inks[i%len(inks)], Width: 1}, CapWidth: 4}
	for _, q := range points {
		at := plotter.XY{X: q.X, Y: q.Y}
		if q.Overload {
			over.XYs = append(over.XYs, at)
			continue
		}
		stable.XYs = append(stable.XYs, at)
		if q.Low < q.High {
			bars.XYs = append(bars.XYs, at)
			bars.YErrors = append(bars.YErrors, struct{ Low, High float64 }{q.Y - q.Low, q.High - q.Y})
		}
	}
	p.Add(bars, stable, over)
}

// glyph returns the symbol of a point: its shape tells the series, a hollow one an overload.
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

func (c *Chart) plotLegend(canvas draw.Canvas) {
	x, y := canvas.Min.X, canvas.Max.Y-6
	sty := style(10, ink, draw.XLeft, draw.YCenter)
	put := func(text string, sign func()) {
		sign()
		canvas.FillText(sty, vg.Point{X: x + 25, Y: y}, text)
		x += 25 + sty.Width(text) + 18
	}
	line := func(style draw.LineStyle) { canvas.StrokeLine2(style, x, y, x+20, y) }
	for i, s := range c.Series {
		put(s.Name, func() {
			if len(s.Fit) > 0 {
				line(draw.LineStyle{Color: styled[c.color(i)], Width: 1.6})
			}
			if len(s.Points) > 0 {
				canvas.DrawGlyphNoClip(glyph(i, false), vg.Point{X: x + 10, Y: y})
			}
		})
	}
	if slices.ContainsFunc(c.Series, Line.overloaded) {
		put("overloaded", func() { canvas.DrawGlyphNoClip(glyph(0, true), vg.Point{X: x + 10, Y: y}) })
	}
	if slices.ContainsFunc(c.Series, func(s Line) bool { return len(s.Beyond) > 0 }) {
		put("not measured there", func() { line(beyondStyle(softInk)) })
	}
	if slices.ContainsFunc(c.Series, func(s Line) bool { return len(s.Lower) > 0 }) {
		put("uncertainty of the curve", func() {
			canvas.SetColor(faint(softInk))
			canvas.Fill(vg.Rectangle{Min: vg.Point{X: x, Y: y - 4}, Max: vg.Point{X: x + 20, Y: y + 4}}.Path())
		})
	}
}
