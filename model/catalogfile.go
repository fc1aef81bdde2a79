package model

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"
)

// maxCatalogFile bounds what is read of a user's catalog: far more than any needs.
const maxCatalogFile = 4 << 20

// Merge reads a user's catalog, TOML with [[gpu]] and [[model]] tables whose keys are
// the columns of the embedded one, and adds its entries. An entry with the name of a
// known one overrides the keys it gives and leaves the others. Either all entries are
// taken or none. Each problem is one line "file:line: table.key: what is wrong"; several
// are joined.
func (c *Catalog) Merge(r io.Reader, filename string) error {
	data, err := io.ReadAll(io.LimitReader(r, maxCatalogFile))
	if err != nil {
		return fmt.Errorf("read the catalog file %s: %w", filename, err)
	}
	text := string(data)
	var doc map[string]any
	if _, err := toml.Decode(text, &doc); err != nil {
		var parse toml.ParseError
		if errors.As(err, &parse) {
			return fmt.Errorf("%s:%d: %s", filename, parse.Position.Line, parse.Message)
		}
		return fmt.Errorf("%s: %w", filename, err)
	}
	p := catalogParser{filename: filename, lines: strings.Split(text, "\n")}
	gpus := p.table(doc, "gpu", "name", gpuColumns)
	models := p.table(doc, "model", "model", modelColumns)
	for _, key := range sortedKeys(doc) {
		if key != "gpu" && key != "model" {
			p.fail(key, -1, "", "unknown table, allowed are [[gpu]] and [[model]]")
		}
	}
	return p.apply(c, gpus, models)
}

// catalogParser collects the problems of one file.
type catalogParser struct {
	filename string
	lines    []string
	problems []error
}

// fail notes a problem with one key of the n-th table of a kind.
func (p *catalogParser) fail(table string, n int, key, message string) {
	where := table
	if key != "" {
		where += "." + key
	}
	p.problems = append(p.problems, fmt.Errorf("%s:%d: %s: %s", p.filename, p.lineOf(table, n, key), where, message))
}

// lineOf returns the line on which a key of the n-th [[table]] stands, that of the
// table's header if the key is not found, 1 if neither is.
func (p *catalogParser) lineOf(table string, n int, key string) int {
	at, seen, inside := 1, -1, false
	for i, line := range p.lines {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			name := strings.Trim(strings.SplitN(line, "#", 2)[0], "[] \t")
			inside = false
			if name == table || strings.HasPrefix(name, table+".") {
				if name == table {
					seen++
				}
				inside = n < 0 || seen == n
				if inside && name == table {
					at = i + 1
				}
			}
			continue
		}
		name, _, isKey := strings.Cut(line, "=")
		name = strings.Trim(strings.TrimSpace(name), `"'`)
		if isKey && (inside && key != "" && name == key || n < 0 && name == table) {
			return i + 1
		}
	}
	return at
}

// table reads all tables of one kind into rows, noting every problem.
func (p *catalogParser) table(doc map[string]any, table, nameKey string, columns []column) []row {
	value, ok := doc[table]
	if !ok {
		return nil
	}
	entries, ok := value.([]map[string]any)
	if !ok {
		p.fail(table, -1, "", "want tables written [["+table+"]]")
		return nil
	}
	rows := make([]row, 0, len(entries))
	for n, entry := range entries {
		r := row{}
		for _, key := range sortedKeys(entry) {
			col, known := findColumn(columns, key)
			if !known {
				p.fail(table, n, key, "unknown key, the nearest is "+nearestColumn(key, columns))
				continue
			}
			text, err := cellOf(col, entry[key])
			if err == nil {
				err = col.check(text)
			}
			if err != nil {
				p.fail(table, n, key, strings.TrimPrefix(err.Error(), key+": "))
				continue
			}
			r[key] = text
		}
		if r[nameKey] == "" {
			p.fail(table, n, nameKey, "missing: every [["+table+"]] needs it")
		}
		rows = append(rows, r)
	}
	return rows
}

// apply puts the rows into the catalog if there was no problem at all.
func (p *catalogParser) apply(c *Catalog, gpus, models []row) error {
	next := &Catalog{
		gpuRows: slices.Clone(c.gpuRows), modelRows: slices.Clone(c.modelRows),
		gpus: slices.Clone(c.gpus), models: slices.Clone(c.models),
	}
	if len(p.problems) == 0 {
		for n, r := range gpus {
			if err := next.putGPU(r); err != nil {
				key, message, _ := strings.Cut(err.Error(), ": ")
				p.fail("gpu", n, key, message)
			}
		}
		for n, r := range models {
			if err := next.putModel(r); err != nil {
				key, message, _ := strings.Cut(err.Error(), ": ")
				p.fail("model", n, key, message)
			}
		}
	}
	if len(p.problems) > 0 {
		return errors.Join(p.problems...)
	}
	*c = *next
	return nil
}

// cellOf writes a TOML value as a cell of the column's kind.
func cellOf(col column, v any) (string, error) {
	switch v := v.(type) {
	case string:
		if col.kind == cellText {
			return v, nil
		}
	case int64:
		if col.kind == cellNum || col.kind == cellCount {
			return strconv.FormatInt(v, 10), nil
		}
	case float64:
		if col.kind == cellNum || col.kind == cellCount {
			return strconv.FormatFloat(v, 'g', -1, 64), nil
		}
	case bool:
		if col.kind == cellFlag {
			return strconv.FormatBool(v), nil
		}
	}
	want := map[cellKind]string{cellText: "a string", cellNum: "a number", cellCount: "a whole number", cellFlag: "true or false"}
	return "", fmt.Errorf("want %s", want[col.kind])
}

// nearestColumn returns the quoted name of the column with the smallest edit distance.
func nearestColumn(key string, columns []column) string {
	names := make([][]string, len(columns))
	for i, c := range columns {
		names[i] = []string{c.name}
	}
	return quoted(nearest(fold(key), names)[:1])
}

// sortedKeys returns the keys of a table in order, so that problems come in the same
// order each time.
func sortedKeys(m map[string]any) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
