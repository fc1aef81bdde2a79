package model

import (
	"bytes"
	"cmp"
	"embed"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"planner/internal/list"
)

// CatalogTable names one of the two tables of the catalog.
type CatalogTable int

// The tables of the catalog: [[gpu]] and [[model]] in a user's file.
const (
	GPUTable CatalogTable = iota
	ModelTable
)

// String is the name of the table in a user's file.
func (t CatalogTable) String() string { return [...]string{"gpu", "model"}[t] }

// NameColumn is the column that identifies a row.
func (t CatalogTable) NameColumn() string { return t.Columns()[0].Name }

// Columns lists the table's columns in order.
func (t CatalogTable) Columns() []CatalogColumn {
	return [...][]CatalogColumn{gpuColumns, modelColumns}[t]
}

// CatalogColumn is one column of a catalog table, under the same name in the CSV files and in a user's TOML
// file.
type CatalogColumn struct {
	Name string
	Kind CellKind
}

// CellKind says what a column of the catalog holds.
type CellKind int

// The kinds of cells.
const (
	CellText  CellKind = iota
	CellNum            // number, not negative
	CellCount          // whole number, not negative
	CellFlag           // true or false
)

// String describes what a cell must hold.
func (k CellKind) String() string {
	return [...]string{"a string", "a number", "a whole number", "true or false"}[k]
}

var gpuColumns = []CatalogColumn{
	{"name", CellText}, {"vendor", CellText}, {"generation", CellText}, {"memory_gb", CellNum}, {"memory_bytes_reported", CellNum},
	{"mem_bandwidth_gbs", CellNum}, {"bf16_dense_tflops", CellNum}, {"fp8_dense_tflops", CellNum}, {"fp4_dense_tflops", CellNum},
	{"int8_dense_tops", CellNum}, {"scaleup_link", CellText}, {"scaleup_gbs_per_direction", CellNum}, {"pcie_gbs_per_direction", CellNum},
	{"node_gpus", CellCount}, {"internode_link", CellText}, {"internode_gbs_per_direction", CellNum}, {"internode_source", CellText},
	{"tdp_w", CellNum}, {"measured_bf16_tflops", CellNum}, {"measured_fp8_tflops", CellNum}, {"list_price_usd_per_gpu_hour", CellNum},
	{"price_basis", CellText}, {"price_date", CellText}, {"list_price_low", CellNum}, {"list_price_high", CellNum}, {"tco_owned_hyperscaler_usd_h", CellNum}, {"tco_owned_neocloud_usd_h", CellNum},
	{"tco_rented_3yr_usd_h", CellNum}, {"tco_basis", CellText}, {"all_in_kw_per_gpu", CellNum}, {"source", CellText}, {"notes", CellText},
}

var modelColumns = []CatalogColumn{
	{"model", CellText}, {"hf_repo", CellText}, {"hf_chat_repo", CellText}, {"hf_alike", CellText}, {"trust_remote_code", CellText}, {"config", CellText}, {"arch", CellText}, {"layers", CellCount}, {"hidden", CellCount}, {"heads", CellCount},
	{"kv_heads", CellCount}, {"head_dim", CellCount}, {"intermediate", CellCount}, {"vocab", CellCount}, {"tied_embeddings", CellFlag},
	{"max_position", CellCount}, {"experts_total", CellCount}, {"experts_active", CellCount}, {"n_group", CellCount}, {"topk_group", CellCount}, {"moe_intermediate", CellCount},
	{"shared_experts", CellCount}, {"dense_layers", CellCount}, {"attention", CellText}, {"sliding_window", CellCount},
	{"full_attn_layers", CellCount}, {"sliding_attn_layers", CellCount}, {"q_lora_rank", CellCount}, {"kv_lora_rank", CellCount},
	{"qk_rope_head_dim", CellCount}, {"qk_nope_head_dim", CellCount}, {"v_head_dim", CellCount},
	{"index_topk", CellCount}, {"index_heads", CellCount}, {"index_head_dim", CellCount}, {"total_params", CellNum},
	{"active_params", CellNum}, {"native_dtype", CellText}, {"vision_params", CellNum}, {"vision_hidden", CellCount},
	{"draft_method", CellText}, {"draft_accepted", CellText}, {"draft_source", CellText},
	{"derived_head_dim", CellCount}, {"derived_total_params", CellNum},
	{"derived_active_params", CellNum}, {"derived_kv_bytes_per_token_2B", CellNum}, {"source", CellText}, {"notes", CellText},
}

// Row is one line of a table by column name; an empty cell is an unknown figure.
type Row map[string]string

// CellError says what is wrong with a cell of a row.
type CellError struct{ Column, Text string }

// Error names the column.
func (e *CellError) Error() string { return e.Column + ": " + e.Text }

// num returns a cell as a number, 0 if it is empty. Cells have been checked.
func (r Row) num(name string) float64 {
	v, _ := strconv.ParseFloat(r[name], 64)
	return v
}

// count returns a cell as a whole number, 0 if it is empty.
func (r Row) count(name string) int { return int(r.num(name)) }

// named reports whether a row has a name, ignoring case.
func (r Row) named(t CatalogTable, name string) bool {
	return strings.EqualFold(r[t.NameColumn()], name)
}

// Column returns the column with a name.
func (t CatalogTable) Column(name string) (CatalogColumn, bool) {
	return list.Find(t.Columns(), func(c CatalogColumn) bool { return c.Name == name })
}

// Check returns an error if the text is not valid in the column.
func (c CatalogColumn) Check(text string) error {
	if text == "" {
		return nil
	}
	switch c.Kind {
	case CellNum, CellCount:
		v, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsNaN(v) || math.IsInf(v, 0) || v < 0 {
			return fmt.Errorf("%q is not a number of at least 0", text)
		}
		if c.Kind == CellCount && (v != math.Trunc(v) || v > 1<<31) {
			return fmt.Errorf("%q is not a whole number", text)
		}
		if s, ok := spans[c.Name]; ok {
			return s.check(v)
		}
	case CellFlag:
		if text != "true" && text != "false" {
			return fmt.Errorf("%q is neither true nor false", text)
		}
	case CellText:
	}
	return nil
}

func hardwareOf(r Row) (Hardware, error) {
	const giga, tera = 1e9, 1e12
	h := Hardware{
		Name: r["name"], Vendor: r["vendor"], Generation: Generation(r["generation"]),
		Memory: r.num("memory_bytes_reported"), Bandwidth: r.num("mem_bandwidth_gbs") * giga,
		Flops: Flops{
			BF16: r.num("bf16_dense_tflops") * tera, FP8: r.num("fp8_dense_tflops") * tera,
			FP4: r.num("fp4_dense_tflops") * tera, INT8: r.num("int8_dense_tops") * tera,
			MeasuredBF16: r.num("measured_bf16_tflops") * tera,
		},
		Link: Link{linkOf(r["scaleup_link"]), r.num("scaleup_gbs_per_direction") * giga},
		Node: NodeSpec{GPUs: r.count("node_gpus"), Link: r["internode_link"], Rate: r.num("internode_gbs_per_direction") * giga},
		PCIe: r.num("pcie_gbs_per_direction") * giga, TDP: r.num("tdp_w"),
		Price: Price{USDPerHour: r.num("list_price_usd_per_gpu_hour"), Basis: r["price_basis"], Date: r["price_date"], Low: r.num("list_price_low"), High: r.num("list_price_high"),
			Rented: r.num("tco_rented_3yr_usd_h"), OwnedLow: r.num("tco_owned_hyperscaler_usd_h"), OwnedHigh: r.num("tco_owned_neocloud_usd_h"), TermsBasis: r["tco_basis"]},
		Source: r["source"], Notes: r["notes"],
	}
	if h.Price.USDPerHour > 0 && h.Price.Basis == "" {
		h.Price.Basis = "the user's catalog"
	}
	if h.Memory == 0 {
		// A board sold as 80 "GB" has 80 GiB less what the driver keeps.
		h.Memory = r.num("memory_gb") * gib
	}
	if h.Generation == GenerationUnknown {
		h.Generation = generationOf(h.Name)
	} else if !slices.Contains(generations, h.Generation) {
		return Hardware{}, &CellError{"generation", fmt.Sprintf("%q, allowed are %s", h.Generation, strings.Join(list.Map(generations, func(g Generation) string { return string(g) }), " "))}
	}
	return h, nil
}

// linkOf is the kind of a link by its name on the data sheet.
func linkOf(name string) LinkKind {
	name = strings.ToLower(name)
	switch {
	case strings.HasPrefix(name, "nvlink"):
		return LinkNVLink
	case strings.HasPrefix(name, "infinity fabric"), strings.HasPrefix(name, "xgmi"):
		return LinkInfinityFabric
	case name == "" || name == "none" || strings.HasPrefix(name, "pcie"):
		return LinkPCIe
	}
	return LinkOther
}

//go:embed catalog/configs/*.json
var embeddedConfigs embed.FS

// archOf reads a row: its shape from the published config.json in catalog/configs that it names, or from its
// cells.
func archOf(r Row) (Arch, error) {
	a, err := shapeOf(r)
	if err != nil {
		return a, err
	}
	a.Name, a.Repo, a.Chat, a.Source, a.Notes = r["model"], r["hf_repo"], r["hf_chat_repo"], r["source"], r["notes"]
	a.RemoteCode = r["trust_remote_code"]
	if _, err := ParseVersion(a.RemoteCode); err != nil && a.RemoteCode != always {
		return a, &CellError{"trust_remote_code", fmt.Sprintf("%q, want a release such as 0.24, or %s", a.RemoteCode, always)}
	}
	a.Published, err = publishedDraft(r)
	return a, err
}

// besideConfig lists the columns that a row with a config.json may also have.
var besideConfig = []string{"model", "hf_repo", "hf_chat_repo", "hf_alike", "trust_remote_code", "config", "draft_method", "draft_accepted", "draft_source", "source", "notes"}

func shapeOf(r Row) (Arch, error) {
	if r["config"] == "" {
		return r.shape()
	}
	for _, col := range modelColumns {
		if r[col.Name] != "" && !slices.Contains(besideConfig, col.Name) {
			return Arch{}, &CellError{col.Name, fmt.Sprintf("the shape of %s is that of its published config.json, want an entry with a name and all figures of its own, or a config.json of your own in model.config", r["model"])}
		}
	}
	data, err := embeddedConfigs.ReadFile("catalog/configs/" + r["config"] + ".json")
	if err != nil {
		return Arch{}, &CellError{"config", fmt.Sprintf("%q is none of the published files that this build holds; a file of your own is given by model.config", r["config"])}
	}
	a, err := ParseConfig(bytes.NewReader(data))
	if err != nil {
		return Arch{}, &CellError{"config", err.Error()}
	}
	a.Native = cmp.Or(a.Native, BF16)
	return a, nil
}

// hfKeys maps columns to their keys in config.json where these differ.
var hfKeys = map[string]string{
	"layers": "num_hidden_layers", "hidden": "hidden_size", "heads": "num_attention_heads", "kv_heads": "num_key_value_heads",
	"intermediate": "intermediate_size", "vocab": "vocab_size", "max_position": "max_position_embeddings",
	"experts_total": "num_experts", "experts_active": "num_experts_per_tok", "moe_intermediate": "moe_intermediate_size",
	"shared_experts": "n_shared_experts", "dense_layers": "first_k_dense_replace", "index_heads": "index_n_heads",
}

// shape converts the cells back to the config.json that they were taken from and reads that. Missing figures
// are left to [Arch.Check].
func (r Row) shape() (Arch, error) {
	values := map[string]any{
		"architectures": []any{r["arch"]},
		"layer_types":   slices.Repeat([]any{"sliding_attention"}, r.count("sliding_attn_layers")),
	}
	for _, col := range modelColumns {
		if col.Kind == CellCount && r[col.Name] != "" {
			values[cmp.Or(hfKeys[col.Name], col.Name)] = r.num(col.Name)
		}
	}
	if r["tied_embeddings"] != "" {
		values["tie_word_embeddings"] = r["tied_embeddings"] == "true"
	}
	c := newHFConfig(values)
	a, err := c.arch()
	if err != nil && (c.hybrid() || !errors.Is(err, ErrNoFigure)) {
		return a, &CellError{"arch", err.Error()}
	}
	a.Details.Vision = Vision{Params: r.num("vision_params"), Hidden: r.count("vision_hidden")}
	a.Native, err = nativeFormat(r["native_dtype"])
	return a, err
}

// publishedDraft reads what is known of speculative decoding: acceptance shares by position, separated by
// spaces.
func publishedDraft(r Row) (PublishedDraft, error) {
	var p PublishedDraft
	if r["draft_method"] == "" {
		return p, nil
	}
	var err error
	if p.Method, err = Parse[DraftMethod](r["draft_method"]); err != nil {
		return p, &CellError{"draft_method", err.Error()}
	}
	before := 1.0
	for word := range strings.FieldsSeq(r["draft_accepted"]) {
		x, err := strconv.ParseFloat(word, 64)
		if err != nil || !(x >= 0 && x <= before) {
			return p, &CellError{"draft_accepted", fmt.Sprintf("%q is no share from 0 to %g, that of the position before", word, before)}
		}
		p.Accepted, before = append(p.Accepted, x), x
	}
	if len(p.Accepted) == 0 {
		return p, &CellError{"draft_accepted", "is empty, where draft_method is not"}
	}
	p.Source = r["draft_source"]
	return p, nil
}

// nativeFormat reads the catalog's free-form description of what a checkpoint stores.
func nativeFormat(text string) (WeightFormat, error) {
	word, _, _ := strings.Cut(strings.ToLower(text), " ")
	f, err := Parse[WeightFormat](strings.NewReplacer("bfloat16", "bf16", "float16", "fp16").Replace(word))
	if err != nil && word != "" {
		return FormatUnset, &CellError{"native_dtype", err.Error()}
	}
	return f, nil
}
