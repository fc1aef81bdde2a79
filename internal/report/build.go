package report

import (
	"errors"
	"fmt"

	"gonum.org/v1/plot/vg/draw"

	"planner/plan/decide"
	"planner/plan/fleet"
	"planner/sweep/design"
	"planner/sweep/measure"
)

// Build makes the report of an answer, such as a plan, the lack of one, or a maximum rate.
func Build(answer any, e Engines) (Document, error) {
	switch a := answer.(type) {
	case *decide.Planned:
		return planDocument(a.Plan, a.Background, e), nil
	case *decide.PoolsPlanned:
		return poolsDocument(a, e), nil
	case *decide.NoPlan:
		return noPlanDocument(a, e), nil
	case *decide.FoundRate:
		return searchDocument(a, e), nil
	case *design.Swept:
		return sweepDocument(a, e), nil
	case *design.Probed:
		return probeDocument(a, e), nil
	case *design.Compared:
		return comparisonDocument(a, e), nil
	case *fleet.Answer:
		return fleetDocument(a), nil
	case measure.Measurement:
		return measurementDocument(a, e), nil
	}
	return Document{}, fmt.Errorf("report: nothing is known of answers of type %T", answer)
}

// fileWidth is the width of report.txt.
const fileWidth = 120

// Files returns the files of a report in a run folder, by name: the document as text, Markdown and HTML, its
// sheets, and its main charts as PNG, SVG and PDF. Without a usable temporary folder there are no PDFs, which
// the warnings say.
func Files(d Document) (files map[string][]byte, warnings []string, err error) {
	d = shown(d)
	files = map[string][]byte{
		"report.txt":  Text(d, fileWidth, false),
		"report.md":   Markdown(d),
		"report.html": HTML(d),
	}
	for _, s := range d.Sheets {
		files[s.Name+".csv"] = s.Data.CSV()
	}
	for name, p := range pictures(d) {
		for ending, write := range map[string]func(func(draw.Canvas)) ([]byte, error){".png": toPNG, ".svg": toSVG, ".pdf": toPDF} {
			picture, err := write(p)
			if errors.Is(err, errPDF) {
				warnings = []string{err.Error()}
			} else if err != nil {
				return nil, nil, err
			} else {
				files["plots/"+name+ending] = picture
			}
		}
	}
	return files, warnings, nil
}

// pictures returns functions that draw a document's main charts, by file name: charts numbered in reading
// order, tables with bars by their name. The same document gives the same bytes.
func pictures(d Document) map[string]func(draw.Canvas) {
	all, number := map[string]func(draw.Canvas){}, 0
	for _, b := range d.Blocks {
		if c := b.Chart; c != nil && !c.Low {
			number++
			all[fmt.Sprintf("%02d-%s", number, c.Name)] = c.plot
		}
		if tab := b.Table; tab != nil && tab.Bars != nil {
			all[tab.Bars.Name] = tab.plot
		}
	}
	return all
}
