package report

import (
	"bytes"
	"encoding/csv"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// CSV prints the data of a document's trials, as [Data.CSV] does.
func CSV(d Document) []byte { return d.Data.CSV() }

// CSV prints data with a header, for spreadsheets and for reading back: full precision,
// empty where a figure is not known. A text that a spreadsheet would take for a formula is
// led by an apostrophe.
func (d Data) CSV() []byte {
	d = shown(d)
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	for _, row := range slices.Concat([][]string{d.Header}, d.Rows) {
		safe := slices.Clone(row)
		for i, s := range row {
			if isFormula(s) {
				safe[i] = "'" + s
			}
		}
		// A bytes.Buffer takes every write, so there is no error to report.
		_ = w.Write(safe)
	}
	w.Flush()
	return b.Bytes()
}

// isFormula reports whether a spreadsheet takes a cell for a formula: also behind blanks,
// and behind a sign unless the cell is a number.
func isFormula(cell string) bool {
	text := strings.TrimLeftFunc(cell, unicode.IsSpace)
	_, err := strconv.ParseFloat(text, 64)
	return text != "" && strings.ContainsAny(text[:1], "=@+-") && err != nil
}
