package model

import (
	"bytes"
	"cmp"
	_ "embed" // for the catalog's tables
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"

	"planner/internal/list"
)

//go:embed catalog/gpus.csv
var embeddedGPUs []byte

//go:embed catalog/models.csv
var embeddedModels []byte

// embeddedQuantised maps checkpoint ids to their published hf_quant_config.json or, where config.json has one,
// quantization_config, condensed from layers to parts.
//
//go:embed catalog/quantised.json
var embeddedQuantised []byte

// Catalog is what is known of GPUs and models, in the order of its tables. Make it with [NewCatalog].
type Catalog struct {
	rows [2][]Row // by table
	// given are the user's rows as they were put, by table.
	given [2][]Row
}

// NewCatalog returns the embedded catalog. An error means that the tables of this build are broken.
func NewCatalog() (*Catalog, error) {
	c := &Catalog{}
	for _, embedded := range []struct {
		table CatalogTable
		data  []byte
	}{{GPUTable, embeddedGPUs}, {ModelTable, embeddedModels}} {
		var err error
		if c.rows[embedded.table], err = readTable(bytes.NewReader(embedded.data), embedded.table); err != nil {
			return nil, fmt.Errorf("read the catalog's table %s: %w", embedded.table, err)
		}
	}
	return c, nil
}

// readTable reads a CSV table whose header names known columns.
func readTable(r io.Reader, t CatalogTable) ([]Row, error) {
	lines, err := csv.NewReader(r).ReadAll()
	if err != nil {
		return nil, err
	}
	if len(lines) == 0 {
		return nil, fmt.Errorf("the table is empty")
	}
	columns := make([]CatalogColumn, len(lines[0]))
	for i, name := range lines[0] {
		var ok bool
		if columns[i], ok = t.Column(name); !ok {
			return nil, fmt.Errorf("unknown column %q", name)
		}
	}
	var rows []Row
	for n, line := range lines[1:] {
		cells := make(Row, len(line))
		for i, col := range columns {
			if err := col.Check(line[i]); err != nil {
				return nil, fmt.Errorf("line %d: %s: %w", n+2, col.Name, err)
			}
			cells[col.Name] = line[i]
		}
		rows = append(rows, cells)
	}
	return rows, nil
}

// Put adds a user's row, or overrides the given cells of the row with its name. The error is a [CellError]; the
// catalog is then unchanged.
func (c *Catalog) Put(t CatalogTable, given Row) error {
	r, at := given, slices.IndexFunc(c.rows[t], func(r Row) bool { return r.named(t, given[t.NameColumn()]) })
	if at >= 0 {
		r = maps.Clone(c.rows[t][at])
		for column, others := range saidOf {
			if cell := given[column]; cell != "" && !strings.EqualFold(cell, r[column]) {
				for _, other := range others {
					delete(r, other)
				}
			}
		}
		maps.Copy(r, given)
	}
	var err error
	switch t {
	case GPUTable:
		if err = cmp.Or(checkBalance(r), checkOrder(r, given)); err == nil {
			_, err = hardwareOf(r)
		}
	case ModelTable:
		_, err = archOf(r)
	}
	if err != nil {
		return err
	}
	if at < 0 {
		c.rows[t] = append(c.rows[t], r)
	} else {
		c.rows[t][at] = r
	}
	c.given[t] = append(c.given[t], given)
	return nil
}

// saidOf maps a column to those that qualify it, which become unknown where a user's row overrides it.
var saidOf = map[string][]string{
	"hf_repo":                     {"hf_chat_repo", "hf_alike"},
	"memory_gb":                   {"memory_bytes_reported"},
	"bf16_dense_tflops":           {"measured_bf16_tflops"},
	"scaleup_link":                {"scaleup_gbs_per_direction"},
	"internode_link":              {"internode_gbs_per_direction"},
	"list_price_usd_per_gpu_hour": {"price_basis", "price_date", "list_price_low", "list_price_high"},
}

// Given returns the user's rows with one of the names, in the order in which they were put.
func (c *Catalog) Given(t CatalogTable, names ...string) []Row {
	return list.Filter(c.given[t], func(r Row) bool {
		return slices.ContainsFunc(names, func(name string) bool { return r.named(t, name) })
	})
}

// Clone returns a catalog that can be changed without changing this one.
func (c *Catalog) Clone() *Catalog {
	d := &Catalog{}
	for t := range c.rows {
		d.rows[t], d.given[t] = slices.Clone(c.rows[t]), slices.Clone(c.given[t])
	}
	return d
}

// GPUs returns every GPU in catalog order, including those with incomplete figures, see [Hardware.Check].
func (c *Catalog) GPUs() []Hardware { return readRows(c.rows[GPUTable], hardwareOf) }

// Models returns every model in catalog order, including those with incomplete figures, see [Arch.Check].
func (c *Catalog) Models() []Arch { return readRows(c.rows[ModelTable], archOf) }

// readRows reads all rows of a table. None fails: those of users were read when they were put, the others by
// this package's tests.
func readRows[T any](rows []Row, read func(Row) (T, error)) []T {
	return list.Map(rows, func(r Row) T {
		x, _ := read(r)
		return x
	})
}

// GPU returns the GPU with a name, ignoring case, spaces, dashes and underscores. An exact match wins; a part
// of exactly one name is enough; a part of several is refused with the candidates, an unknown name with the
// nearest ones.
func (c *Catalog) GPU(name string) (Hardware, error) {
	rows := c.rows[GPUTable]
	i, err := find("gpu", name, list.Map(rows, func(r Row) []string { return []string{r[GPUTable.NameColumn()]} }))
	if err != nil {
		return Hardware{}, err
	}
	return hardwareOf(rows[i])
}

// tunedName matches the ends of names of instruction-tuned variants.
var tunedName = regexp.MustCompile("(?i)-(instruct|chat|it)$")

// ChatCheckpoint is the id of the instruction-tuned checkpoint, if there is one.
func (a Arch) ChatCheckpoint() string { return cmp.Or(a.Chat, a.Repo) }

// Model returns the model with a catalog name or a Hugging Face id, matched as by [Catalog.GPU]. Failing that,
// it matches published variants of the same shape: those with a suffix (Instruct, Chat, it, hf), those listed
// in hf_alike, and ids that end in a quantisation (FP8, AWQ, NVFP4 and the like), which becomes the native
// format. Repo is then the id that was asked for or, for a name without an owner, the listed or the
// instruction-tuned checkpoint's.
func (c *Catalog) Model(name string) (Arch, error) {
	rows := c.rows[ModelTable]
	names := list.Map(rows, func(r Row) []string { return []string{r["model"], r["hf_repo"]} })
	i, err := find("model", name, names)
	if err == nil {
		return archOf(rows[i])
	}
	for i, r := range rows {
		names[i] = append(names[i], append(strings.Fields(r["hf_alike"]), r["hf_chat_repo"])...)
	}
	if i := findVariant(name, names); i >= 0 {
		a, err := archOf(rows[i])
		others := strings.Fields(rows[i]["hf_alike"])
		other := slices.IndexFunc(others, func(id string) bool { return bareName(id) == bareName(name) })
		switch {
		case strings.Contains(name, "/"):
			a.Repo, a.Chat = name, ""
		case other >= 0:
			a.Repo, a.Chat = others[other], ""
		case tunedName.MatchString(name):
			a.Repo = a.ChatCheckpoint()
		}
		return a, err
	}
	if rest, format, ok := cutFormat(name); ok {
		if i := findVariant(rest, names); i >= 0 {
			a, err := archOf(rows[i])
			// Only the model's own publisher scales blocks; NVIDIA and Red Hat scale whole matrices or
			// channels.
			theirs, _, named := strings.Cut(name, "/")
			own, _, _ := strings.Cut(a.Repo, "/")
			a.Details.BlockFP8 = a.Details.BlockFP8 && !strings.HasSuffix(strings.ToLower(name), "-dynamic") && (!named || strings.EqualFold(theirs, own))
			a.Native, a.Repo, a.Chat = format, name, ""
			a.Details.WeightOnly = weightOnlyMark.MatchString(name)
			var published map[string]any // by id in lower case
			if err := cmp.Or(err, json.Unmarshal(bytes.ToLower(embeddedQuantised), &published)); err != nil {
				return a, fmt.Errorf("embedded quantised.json: %w", err)
			}
			file := hfConfig{class: a.Family, values: map[string]any{"quantization_config": published[strings.ToLower(name)]}}
			if file.has("quantization_config") {
				file.formats(&a)
			}
			return a, file.err
		}
	}
	return Arch{}, cmp.Or(checkModelled(name), err)
}
