package report

import (
	"bytes"
	"encoding/csv"
	"slices"
	"strings"
)

// CSV prints a document's data with a header, for spreadsheets and for reading
// back: full precision, empty where a figure is not known. A text that a
// spreadsheet would take for a formula is led by an apostrophe.
func CSV(d Document) []byte {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	for _, row := range slices.Concat([][]string{d.Data.Header}, d.Data.Rows) {
		safe := slices.Clone(row)
		for i, s := range row {
			if s != "" && strings.ContainsAny(s[:1], "=@\t") {
				safe[i] = "'" + s
			}
		}
		// A bytes.Buffer takes every write, so there is no error to report.
		_ = w.Write(safe)
	}
	w.Flush()
	return b.Bytes()
}
