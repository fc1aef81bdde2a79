package report

import "fmt"

// fileWidth is the width of report.txt.
const fileWidth = 120

// Files are the files of a report in a run folder, by name: the document as text,
// Markdown and HTML, its sheets, and its main charts as PNG, SVG and PDF.
func Files(d Document) (map[string][]byte, error) {
	d = shown(d)
	files := map[string][]byte{
		"report.txt":  Text(d, fileWidth, false),
		"report.md":   Markdown(d),
		"report.html": HTML(d),
	}
	for _, s := range d.Sheets {
		files[s.Name+".csv"] = s.Data.CSV()
	}
	number := 0
	for _, chart := range d.Charts() {
		if chart.Low {
			continue
		}
		number++
		name := fmt.Sprintf("plots/%02d-%s", number, chart.Name)
		for ending, draw := range map[string]func() ([]byte, error){".png": chart.PNG, ".svg": chart.SVG, ".pdf": chart.PDF} {
			var err error
			if files[name+ending], err = draw(); err != nil {
				return nil, fmt.Errorf("plot: %w", err)
			}
		}
	}
	return files, nil
}
