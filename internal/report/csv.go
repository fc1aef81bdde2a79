package report

import (
	"bytes"
	"encoding/csv"
	"strings"
)

// CSV prints a document's data with a header, for spreadsheets and for reading
// back: full precision, empty where a figure is not known. A text that a
// spreadsheet would take for a formula is led by an apostrophe.
func CSV(d Document) []byte {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	rows := append([][]string{d.Data.Header}, d.Data.Rows...)
	for _, row := range rows {
		safe := make([]string, len(row))
		for i, s := range row {
			safe[i] = guard(s)
		}
		// A bytes.Buffer takes every write, so there is no error to report.
		_ = w.Write(safe)
	}
	w.Flush()
	return b.Bytes()
}

// guard keeps a spreadsheet from running a text as a formula.
func guard(s string) string {
	if strings.HasPrefix(s, "=") || strings.HasPrefix(s, "@") || strings.HasPrefix(s, "\t") {
		return "'" + s
	}
	return s
}
