package report

import (
	"slices"
	"strings"

	"planner/internal/list"
)

// tableGap separates the columns of a text table.
const tableGap = 2

// table writes a table that fits the width: wrappable columns are wrapped first, then extra columns move below
// each row, and then other columns except the first, starting with the last.
func (t *textPrinter) table(tab Table) {
	if tab.Caption != "" {
		t.text(Plain, tab.Caption)
	}
	if len(tab.Rows) == 0 {
		t.WriteString(indent + "none\n")
		return
	}
	room := t.width - len(indent)
	keep := list.Times(len(tab.Columns), func(i int) int { return i })
	var below []int
	widths, ok := tab.fit(keep, room)
	for !ok {
		i := len(keep) - 1
		for i >= 0 && !tab.Columns[keep[i]].Extra {
			i--
		}
		if i < 0 {
			i = len(keep) - 1
		}
		if i == 0 {
			widths = []int{room}
			break
		}
		below = append([]int{keep[i]}, below...)
		keep = slices.Delete(keep, i, i+1)
		widths, ok = tab.fit(keep, room)
	}
	t.row(tab, keep, widths, list.Map(tab.Columns, func(c Column) Cell { return Cell{c.Name, Quiet} }))
	common, below := tab.common(below)
	for _, row := range tab.Rows {
		t.row(tab, keep, widths, row)
		if text := tab.list(row, below); text != "" {
			t.hanging(indent+indent, wrap(text, t.width-2*len(indent)), Quiet)
		}
	}
	if text := tab.list(tab.Rows[0], common); text != "" {
		t.text(Quiet, "(In all rows: "+text+".)")
	}
}

// common separates the columns in which all rows are the same, which are printed once.
func (tab Table) common(columns []int) (same, others []int) {
	for _, k := range columns {
		if len(tab.Rows) > 1 && !slices.ContainsFunc(tab.Rows, func(row []Cell) bool { return row[k].Text != tab.Rows[0][k].Text }) {
			same = append(same, k)
		} else {
			others = append(others, k)
		}
	}
	return same, others
}

// list prints some cells of a row with their column names; a column without a name only illustrates another.
func (tab Table) list(row []Cell, columns []int) string {
	return strings.Join(list.FilterMap(columns, func(k int) (string, bool) {
		name, text := tab.Columns[k].Name, row[k].Text
		return name + " " + text, name != "" && text != "" && text != unknown
	}), "; ")
}

// fit returns widths with which the kept columns fit into room; false if that is impossible. Headers are
// wrapped before cells.
func (tab Table) fit(keep []int, room int) ([]int, bool) {
	widths, total := tab.widths(keep, width)
	if total > room {
		widths, total = tab.widths(keep, longestWord)
	}
	if total <= room {
		return widths, true
	}
	flexible := -1
	for i, k := range keep {
		if tab.Columns[k].Wrap && (flexible < 0 || widths[i] > widths[flexible]) {
			flexible = i
		}
	}
	if flexible < 0 {
		return nil, false
	}
	k := keep[flexible]
	words := list.Largest(tab.Rows, func(row []Cell) int { return longestWord(row[k].Text) })
	least := max(longestWord(tab.Columns[k].Name), min(24, widths[flexible]), words)
	widths[flexible] -= total - room
	return widths, widths[flexible] >= least
}

// widths returns the widths of the kept columns with unwrapped cells and headers as wide as header says, and
// their total.
func (tab Table) widths(keep []int, header func(string) int) (widths []int, total int) {
	total = tableGap * (len(keep) - 1)
	for _, k := range keep {
		w := max(header(tab.Columns[k].Name), list.Largest(tab.Rows, func(row []Cell) int { return width(row[k].Text) }))
		widths = append(widths, w)
		total += w
	}
	return widths, total
}

// longestWord is the narrowest width to which text can be wrapped.
func longestWord(s string) int { return list.Largest(strings.Fields(s), width) }

func (t *textPrinter) row(tab Table, keep, widths []int, row []Cell) {
	cells := make([][]string, len(keep))
	height := 1
	for i, k := range keep {
		cells[i] = wrap(row[k].Text, widths[i])
		height = max(height, len(cells[i]))
	}
	for line := range height {
		var b strings.Builder
		b.WriteString(indent)
		for i, k := range keep {
			text := ""
			if line < len(cells[i]) {
				text = cells[i][line]
			}
			before, after := "", strings.Repeat(" ", widths[i]-width(text))
			if tab.Columns[k].Right {
				before, after = after, before
			}
			b.WriteString(before + t.paint(row[k].Tone, text) + after + strings.Repeat(" ", tableGap))
		}
		t.WriteString(strings.TrimRight(b.String(), " ") + "\n")
	}
}
