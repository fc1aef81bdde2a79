package main

import (
	"fmt"

	"planner/internal/report"
	"planner/model/curve"
	"planner/plan"
	"planner/sweep"
)

// reportWidth is the width of report.txt.
const reportWidth = 120

// writeRun puts the plan, its report in every format, and its plots into the
// run folder.
func writeRun(f sweep.Folder, p *plan.Plan, b report.Background) error {
	if err := f.WriteJSON(sweep.PlanFile, p); err != nil {
		return err
	}
	if err := f.WriteJSON(sweep.CurvesFile, curves(p)); err != nil {
		return err
	}
	return writeReport(f, report.Plan(p, b))
}

// curves lists the fitted curves of a plan, the binding metric's first.
func curves(p *plan.Plan) []*curve.Curve {
	if p.Evidence.Curve == nil {
		return []*curve.Curve{}
	}
	return append([]*curve.Curve{p.Evidence.Curve}, p.Evidence.Curves...)
}

// writeReport writes a document as text, Markdown, HTML and plots.
func writeReport(f sweep.Folder, d report.Document) error {
	files := []struct {
		name string
		data []byte
	}{
		{"report.txt", report.Text{Width: reportWidth}.Print(d)},
		{"report.md", report.Markdown{}.Print(d)},
		{"report.html", report.HTML{}.Print(d)},
	}
	for _, file := range files {
		if err := f.Write(file.name, file.data); err != nil {
			return err
		}
	}
	for i, chart := range d.Charts() {
		png, err := chart.PNG()
		if err != nil {
			return fmt.Errorf("plot: %w", err)
		}
		svg, err := chart.SVG()
		if err != nil {
			return fmt.Errorf("plot: %w", err)
		}
		name := fmt.Sprintf("plots/%02d-%s", i+1, chart.Name)
		if err := f.Write(name+".png", png); err != nil {
			return err
		}
		if err := f.Write(name+".svg", svg); err != nil {
			return err
		}
	}
	return nil
}
