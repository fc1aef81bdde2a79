package report

import "fmt"

// fileWidth is the width of report.txt.
const fileWidth = 120

// Files are the files of a report in a run folder, by name: the document as text,
// Markdown and HTML, and its plots.
func Files(d Document) (map[string][]byte, error) {
	d = d.shown()
	files := map[string][]byte{
		"report.txt":  Text(d, fileWidth, false),
		"report.md":   Markdown(d),
		"report.html": HTML(d),
	}
	for i, chart := range d.Charts() {
		name := fmt.Sprintf("plots/%02d-%s", i+1, chart.Name)
		var err error
		if files[name+".png"], err = chart.PNG(); err != nil {
			return nil, fmt.Errorf("plot: %w", err)
		}
		if files[name+".svg"], err = chart.SVG(); err != nil {
			return nil, fmt.Errorf("plot: %w", err)
		}
	}
	return files, nil
}
