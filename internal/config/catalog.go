package config

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"planner/model"
)

// catalogTables are the tables of a user's catalog.
var catalogTables = []model.CatalogTable{model.GPUTable, model.ModelTable}

// ReadCatalog is the built-in catalog with the user's own file on top, if there is
// one: TOML with [[gpu]] and [[model]] tables whose keys are the columns of the
// built-in tables. An entry with the name of a known one overrides the keys that it
// gives and leaves the others. The error is a [Problems] where the file is wrong.
func ReadCatalog(path string) (*model.Catalog, error) {
	catalog, err := model.NewCatalog()
	if err != nil || path == "" {
		return catalog, err
	}
	r := newReader(path, catalog)
	if r.read(nil) {
		r.putCatalog(input{r: r, value: r.tree})
	}
	if len(r.problems) > 0 {
		return nil, r.problems.sorted()
	}
	return catalog, nil
}

// putCatalog puts the rows below a table on top of the catalog. What an earlier file
// gave stays: that is the one of the command line.
func (r *reader) putCatalog(n input) {
	before := r.catalog.Clone()
	if _, ok := n.value.(map[string]any); !ok {
		n.wrong("tables written [[" + join(n.key, "gpu") + "]]")
	}
	for _, c := range n.children() {
		i := slices.IndexFunc(catalogTables, func(t model.CatalogTable) bool { return t.String() == c.name })
		rows, ok := c.value.([]map[string]any)
		switch {
		case i < 0:
			c.refuse("unknown table, allowed are [[gpu]] and [[model]]")
			continue
		case !ok:
			c.refuse("want tables written [[%s]]", c.key)
		}
		t := catalogTables[i]
		for i, cells := range rows {
			entry := input{r: r, path: c.path + index(i), key: c.key, value: cells}
			row, ok := entry.row(t)
			if !ok || len(before.Given(t, row[t.NameColumn()])) > 0 {
				continue
			}
			var wrong *model.CellError
			if errors.As(r.catalog.Put(t, row), &wrong) {
				cell, _ := entry.child(wrong.Column)
				cell.refuse("%s", wrong.Text)
			}
		}
	}
}

// row reads one table of a catalog.
func (n input) row(t model.CatalogTable) (model.Row, bool) {
	before := len(n.r.problems)
	row := model.Row{}
	for _, c := range n.children() {
		col, ok := t.Column(c.name)
		if !ok {
			var names []string
			for _, known := range t.Columns() {
				names = append(names, known.Name)
			}
			c.refuse("unknown key, the nearest is %q", nearest(c.name, names))
			continue
		}
		text, err := cellText(col, c.value)
		if err == nil {
			err = col.Check(text)
		}
		if err != nil {
			c.refuse("%v", err)
		}
		row[c.name] = text
	}
	if row[t.NameColumn()] == "" {
		c, _ := n.child(t.NameColumn())
		c.refuse("missing: every [[%s]] needs it", n.key)
	}
	return row, len(n.r.problems) == before
}

// cellText writes a TOML value as a cell of the column's kind.
func cellText(col model.CatalogColumn, v any) (string, error) {
	number := col.Kind == model.CellNum || col.Kind == model.CellCount
	switch v := v.(type) {
	case string:
		if col.Kind == model.CellText {
			return v, nil
		}
	case int64:
		if number {
			return strconv.FormatInt(v, 10), nil
		}
	case float64:
		if number {
			return strconv.FormatFloat(v, 'g', -1, 64), nil
		}
	case bool:
		if col.Kind == model.CellFlag {
			return strconv.FormatBool(v), nil
		}
	}
	return "", fmt.Errorf("want %s", col.Kind)
}

// printRow prints a row of a user's catalog as [ReadCatalog] reads it.
func printRow(b *bytes.Buffer, section string, t model.CatalogTable, row model.Row) {
	fmt.Fprintf(b, "\n[[%s.%s]]\n", section, t)
	for _, col := range t.Columns() {
		text, ok := row[col.Name]
		if ok && col.Kind == model.CellText {
			text = quote(text)
		}
		if ok {
			fmt.Fprintf(b, "%s = %s\n", col.Name, text)
		}
	}
}
