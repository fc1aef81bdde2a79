package model

import (
	"bytes"
	_ "embed" // for the catalog's tables
	"encoding/csv"
	"fmt"
	"io"
	"maps"
	"strings"
)

//go:embed catalog/gpus.csv
var embeddedGPUs []byte

//go:embed catalog/models.csv
var embeddedModels []byte

// Catalog is what is known of GPUs and models, in the order of its tables. Make it
// with [NewCatalog].
type Catalog struct {
	gpuRows   []row
	modelRows []row
	gpus      []Hardware
	models    []Arch
}

// NewCatalog returns the embedded catalog. The error would say that the tables of this
// build are broken.
func NewCatalog() (*Catalog, error) {
	c := &Catalog{}
	gpus, err := readTable(bytes.NewReader(embeddedGPUs), gpuColumns)
	if err != nil {
		return nil, fmt.Errorf("read the catalog of GPUs: %w", err)
	}
	models, err := readTable(bytes.NewReader(embeddedModels), modelColumns)
	if err != nil {
		return nil, fmt.Errorf("read the catalog of models: %w", err)
	}
	for _, r := range gpus {
		if err := c.putGPU(r); err != nil {
			return nil, fmt.Errorf("read the catalog of GPUs: %s: %w", r["name"], err)
		}
	}
	for _, r := range models {
		if err := c.putModel(r); err != nil {
			return nil, fmt.Errorf("read the catalog of models: %s: %w", r["model"], err)
		}
	}
	return c, nil
}

// readTable reads a CSV table whose header names known columns.
func readTable(r io.Reader, columns []column) ([]row, error) {
	lines, err := csv.NewReader(r).ReadAll()
	if err != nil {
		return nil, err
	}
	if len(lines) == 0 {
		return nil, fmt.Errorf("the table is empty")
	}
	var rows []row
	for n, line := range lines[1:] {
		cells := row{}
		for i, name := range lines[0] {
			col, ok := findColumn(columns, name)
			if !ok {
				return nil, fmt.Errorf("unknown column %q", name)
			}
			if err := col.check(line[i]); err != nil {
				return nil, fmt.Errorf("line %d: %w", n+2, err)
			}
			cells[name] = line[i]
		}
		rows = append(rows, cells)
	}
	return rows, nil
}

// putGPU adds a GPU, or overrides the given cells of the one that has its name.
func (c *Catalog) putGPU(r row) error {
	given := r
	at := indexRow(c.gpuRows, "name", r["name"])
	if at >= 0 {
		r = overlay(c.gpuRows[at], r)
	}
	if err := checkOrder(r, given); err != nil {
		return err
	}
	hw, err := hardwareOf(r)
	if err != nil {
		return err
	}
	if at < 0 {
		c.gpuRows, c.gpus = append(c.gpuRows, r), append(c.gpus, hw)
	} else {
		c.gpuRows[at], c.gpus[at] = r, hw
	}
	return nil
}

// putModel adds a model, or overrides the given cells of the one that has its name.
func (c *Catalog) putModel(r row) error {
	at := indexRow(c.modelRows, "model", r["model"])
	if at >= 0 {
		r = overlay(c.modelRows[at], r)
	}
	a, err := archOf(r)
	if err != nil {
		return err
	}
	if at < 0 {
		c.modelRows, c.models = append(c.modelRows, r), append(c.models, a)
	} else {
		c.modelRows[at], c.models[at] = r, a
	}
	return nil
}

// indexRow returns the index of the row with a name, -1 if there is none.
func indexRow(rows []row, column, name string) int {
	for i, r := range rows {
		if strings.EqualFold(r[column], name) {
			return i
		}
	}
	return -1
}

// overlay returns a row with the cells of another laid over it.
func overlay(under, over row) row {
	r := maps.Clone(under)
	maps.Copy(r, over)
	return r
}

// GPUs returns every GPU in catalog order, also those whose figures are incomplete,
// see [Hardware.Check].
func (c *Catalog) GPUs() []Hardware { return append([]Hardware(nil), c.gpus...) }

// Models returns every model in catalog order, also those whose figures are
// incomplete, see [Arch.Check].
func (c *Catalog) Models() []Arch { return append([]Arch(nil), c.models...) }

// GPU returns the GPU of a name, without regard to case, spaces, dashes and
// underscores. An exact match wins; a part of exactly one name is enough; a part of
// several is refused with the candidates, an unknown name with the nearest ones.
func (c *Catalog) GPU(name string) (Hardware, error) {
	names := make([][]string, len(c.gpus))
	for i, g := range c.gpus {
		names[i] = []string{g.Name}
	}
	i, err := find("gpu", name, names)
	if err != nil {
		return Hardware{}, err
	}
	return c.gpus[i], nil
}

// Model returns the model of a catalog name or a Hugging Face id, found as
// [Catalog.GPU] finds GPUs. The published variants of one shape (Instruct, Chat, it,
// hf) are found by the shape's name; one that is quantised by its name (FP8, AWQ, NVFP4
// and the like at its end) comes back with that as its own format. Either has the id
// that was asked for, not that of the shape's own checkpoint.
func (c *Catalog) Model(name string) (Arch, error) {
	names := make([][]string, len(c.models))
	for i, m := range c.models {
		names[i] = []string{m.Name, m.Repo}
	}
	i, err := find("model", name, names)
	if err == nil {
		return c.models[i], nil
	}
	if i := findVariant(name, names); i >= 0 {
		a := c.models[i]
		if strings.Contains(name, "/") {
			a.Repo = name
		}
		return a, nil
	}
	if rest, format, ok := cutFormat(name); ok {
		if i := findVariant(rest, names); i >= 0 {
			a := c.models[i]
			a.Native, a.Repo = format, name
			a.Details.BlockFP8 = a.Details.BlockFP8 && !strings.HasSuffix(strings.ToLower(name), "-dynamic")
			return a, nil
		}
	}
	return Arch{}, err
}
