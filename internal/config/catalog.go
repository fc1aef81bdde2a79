package config

import (
	"errors"
	"fmt"

	"planner/internal/list"
	"planner/internal/spelling"
	"planner/model"
)

var catalogTables = []model.CatalogTable{model.GPUTable, model.ModelTable}

// ReadCatalog returns the built-in catalog overlaid with the user's file, if there is one: TOML with [[gpu]]
// and [[model]] tables whose keys are the columns of the built-in tables. An entry with a known name overrides
// the keys that it gives and leaves the others. The error is a [Problems] if the file is wrong.
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

// putCatalog overlays the catalog with the rows in a table. Entries from an earlier file, that of the command
// line, take precedence.
func (r *reader) putCatalog(n input) {
	before := r.catalog.Clone()
	if _, ok := n.value.(map[string]any); !ok {
		n.wrong("tables written [[" + join(n.key, "gpu") + "]]")
	}
	for _, c := range n.children() {
		t, known := list.Find(catalogTables, func(t model.CatalogTable) bool { return t.String() == c.name })
		rows, ok := c.value.([]map[string]any)
		switch {
		case !known:
			c.refuse("unknown table, allowed are [[gpu]] and [[model]]")
			continue
		case !ok:
			c.refuse("want tables written [[%s]]", c.key)
		}
		for i, cells := range rows {
			entry := input{r: r, path: c.path + index(i), key: c.key, value: cells}
			row, ok := entry.row(t)
			if !ok || len(before.Given(t, row[t.NameColumn()])) > 0 {
				continue
			}
			if wrong, ok := errors.AsType[*model.CellError](r.catalog.Put(t, row)); ok {
				cell, _ := entry.child(wrong.Column)
				cell.refuse("%s", wrong.Text)
			}
		}
	}
}

func (n input) row(t model.CatalogTable) (model.Row, bool) {
	before := len(n.r.problems)
	cells := model.Row{}
	rows := cellRows(t, cells)
	for _, c := range n.takeRows(rows, t.NameColumn()) {
		c.refuse("is no key, the nearest valid key is %s", join(n.key, spelling.Nearest(c.name, names(rows))))
	}
	return cells, len(n.r.problems) == before
}

// cellRows are the keys of a catalog table, one per column.
func cellRows(t model.CatalogTable, cells model.Row) []tomlKey {
	var rows []tomlKey
	for _, col := range t.Columns() {
		take := func(c input) {
			text := fmt.Sprint(c.value)
			if !fits(col.Kind, c.value) {
				c.wrong(col.Kind.String())
			} else if err := col.Check(text); err != nil {
				c.refuse("%v", err)
			}
			cells[col.Name] = text
		}
		rows = append(rows, tomlKey{col.Name, "", binding{take, func() string {
			text, ok := cells[col.Name]
			if ok && col.Kind == model.CellText {
				return quote(text)
			}
			return text
		}, nil}})
	}
	return rows
}

// fits reports whether a value of TOML is of the kind of a column.
func fits(kind model.CellKind, v any) bool {
	switch v.(type) {
	case string:
		return kind == model.CellText
	case bool:
		return kind == model.CellFlag
	case int64, float64:
		return kind == model.CellNum || kind == model.CellCount
	}
	return false
}
