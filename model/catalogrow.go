package model

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// cellKind says what a column of the catalog holds.
type cellKind int

const (
	cellText  cellKind = iota
	cellNum            // number, not negative
	cellCount          // whole number, not negative
	cellFlag           // true or false
)

// column is one column of a catalog table, under the same name in the CSV files and
// in a user's TOML file.
type column struct {
	name string
	kind cellKind
}

// gpuColumns are the columns of the GPU table.
var gpuColumns = []column{
	{"name", cellText}, {"vendor", cellText}, {"generation", cellText}, {"memory_gb", cellNum}, {"memory_bytes_reported", cellNum},
	{"mem_bandwidth_gbs", cellNum}, {"bf16_dense_tflops", cellNum}, {"fp8_dense_tflops", cellNum}, {"fp4_dense_tflops", cellNum},
	{"int8_dense_tops", cellNum}, {"scaleup_link", cellText}, {"scaleup_gbs_per_direction", cellNum}, {"pcie_gbs_per_direction", cellNum},
	{"tdp_w", cellNum}, {"measured_bf16_tflops", cellNum}, {"measured_fp8_tflops", cellNum}, {"list_price_usd_per_gpu_hour", cellNum},
	{"price_basis", cellText}, {"price_date", cellText}, {"tco_owned_hyperscaler_usd_h", cellNum}, {"tco_owned_neocloud_usd_h", cellNum},
	{"tco_rented_3yr_usd_h", cellNum}, {"all_in_kw_per_gpu", cellNum}, {"source", cellText}, {"notes", cellText},
}

// modelColumns are the columns of the model table.
var modelColumns = []column{
	{"model", cellText}, {"hf_repo", cellText}, {"arch", cellText}, {"layers", cellCount}, {"hidden", cellCount}, {"heads", cellCount},
	{"kv_heads", cellCount}, {"head_dim", cellCount}, {"intermediate", cellCount}, {"vocab", cellCount}, {"tied_embeddings", cellFlag},
	{"max_position", cellCount}, {"experts_total", cellCount}, {"experts_active", cellCount}, {"moe_intermediate", cellCount},
	{"shared_experts", cellCount}, {"dense_layers", cellCount}, {"attention", cellText}, {"sliding_window", cellCount},
	{"full_attn_layers", cellCount}, {"sliding_attn_layers", cellCount}, {"q_lora_rank", cellCount}, {"kv_lora_rank", cellCount},
	{"qk_rope_head_dim", cellCount}, {"qk_nope_head_dim", cellCount}, {"v_head_dim", cellCount}, {"total_params", cellNum},
	{"active_params", cellNum}, {"native_dtype", cellText}, {"derived_head_dim", cellCount}, {"derived_total_params", cellNum},
	{"derived_active_params", cellNum}, {"derived_kv_bytes_per_token_2B", cellNum}, {"source", cellText}, {"notes", cellText},
}

// row is one line of a table by column name; an empty cell is an unknown figure.
type row map[string]string

// num returns a cell as a number, 0 if it is empty. Cells are checked before.
func (r row) num(name string) float64 {
	v, _ := strconv.ParseFloat(r[name], 64)
	return v
}

// count returns a cell as a whole number, 0 if it is empty.
func (r row) count(name string) int { return int(r.num(name)) }

// findColumn returns the column of a name.
func findColumn(columns []column, name string) (column, bool) {
	for _, c := range columns {
		if c.name == name {
			return c, true
		}
	}
	return column{}, false
}

// check returns an error if the text cannot stand in the column.
func (c column) check(text string) error {
	if text == "" {
		return nil
	}
	switch c.kind {
	case cellNum, cellCount:
		v, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsNaN(v) || math.IsInf(v, 0) || v < 0 {
			return fmt.Errorf("%s: %q is not a number of at least 0", c.name, text)
		}
		if c.kind == cellCount && (v != math.Trunc(v) || v > 1<<31) {
			return fmt.Errorf("%s: %q is not a whole number", c.name, text)
		}
		if s, ok := spanOf(c.name); ok {
			if err := s.check(v); err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
		}
	case cellFlag:
		if text != "true" && text != "false" {
			return fmt.Errorf("%s: %q is neither true nor false", c.name, text)
		}
	case cellText:
	}
	return nil
}

// hardwareOf makes a data sheet from a row.
func hardwareOf(r row) (Hardware, error) {
	const giga, tera = 1e9, 1e12
	h := Hardware{
		Name: r["name"], Vendor: r["vendor"], Generation: Generation(r["generation"]),
		Memory: r.num("memory_bytes_reported"), Bandwidth: r.num("mem_bandwidth_gbs") * giga,
		Flops: Flops{
			BF16: r.num("bf16_dense_tflops") * tera, FP8: r.num("fp8_dense_tflops") * tera,
			FP4: r.num("fp4_dense_tflops") * tera, INT8: r.num("int8_dense_tops") * tera,
			MeasuredBF16: r.num("measured_bf16_tflops") * tera, MeasuredFP8: r.num("measured_fp8_tflops") * tera,
		},
		Link: linkOf(r["scaleup_link"], r.num("scaleup_gbs_per_direction")*giga),
		PCIe: r.num("pcie_gbs_per_direction") * giga, TDP: r.num("tdp_w"),
		Price:  Price{USDPerHour: r.num("list_price_usd_per_gpu_hour"), Basis: r["price_basis"], Date: r["price_date"]},
		Source: r["source"], Notes: r["notes"],
	}
	if h.Memory == 0 {
		// A board sold with 80 "GB" shows 80 GiB less what the driver keeps.
		h.Memory = r.num("memory_gb") * gib
	}
	if h.Generation == GenerationUnknown {
		h.Generation = generationOf(h.Name)
	} else if !knownGeneration(h.Generation) {
		return Hardware{}, fmt.Errorf("generation: %q, allowed are %s", h.Generation, generationNames())
	}
	return h, nil
}

// knownGeneration reports whether a generation is one of those with constants.
func knownGeneration(g Generation) bool {
	for _, known := range generations {
		if g == known {
			return true
		}
	}
	return false
}

// generationNames lists the generations for messages.
func generationNames() string {
	names := make([]string, len(generations))
	for i, g := range generations {
		names[i] = string(g)
	}
	return strings.Join(names, " ")
}

// linkOf classifies a link by its name on the data sheet.
func linkOf(name string, rate float64) Link {
	lower := strings.ToLower(name)
	switch {
	case strings.HasPrefix(lower, "nvlink"):
		return Link{LinkNVLink, name, rate}
	case strings.HasPrefix(lower, "infinity fabric"), strings.HasPrefix(lower, "xgmi"):
		return Link{LinkInfinityFabric, name, rate}
	case lower == "" || lower == "none" || strings.HasPrefix(lower, "pcie"):
		return Link{LinkPCIe, "PCIe", rate}
	}
	return Link{LinkOther, name, rate}
}

// archOf makes a shape from a row.
func archOf(r row) (Arch, error) {
	f, _ := familyOf(r["arch"])
	a := Arch{
		Name: r["model"], Repo: r["hf_repo"], Family: r["arch"],
		Layers: r.count("layers"), Hidden: r.count("hidden"), Intermediate: r.count("intermediate"),
		Vocab: r.count("vocab"), MaxPosition: r.count("max_position"), Tied: r["tied_embeddings"] == "true",
		Attention: Attention{
			Heads: r.count("heads"), KVHeads: r.count("kv_heads"), HeadDim: r.count("head_dim"),
			MLA: MLA{
				QueryRank: r.count("q_lora_rank"), KVRank: r.count("kv_lora_rank"), RopeDim: r.count("qk_rope_head_dim"),
				NopeDim: r.count("qk_nope_head_dim"), ValueDim: r.count("v_head_dim"),
			},
			Window: r.count("sliding_window"), WindowLayers: r.count("sliding_attn_layers"),
			Chunked: strings.Contains(r["attention"], "chunks"),
		},
		Details: f.details, Source: r["source"], Notes: r["notes"],
	}
	if r["tied_embeddings"] == "" {
		a.Tied = f.tied
	}
	if a.Attention.HeadDim == 0 && a.Attention.Heads > 0 {
		a.Attention.HeadDim = a.Hidden / a.Attention.Heads
	}
	if n := r.count("experts_total"); n > 0 {
		a.MoE = MoE{
			Experts: n, Active: r.count("experts_active"), Intermediate: r.count("moe_intermediate"),
			SharedIntermediate: r.count("shared_experts") * r.count("moe_intermediate"),
			Layers:             a.Layers - r.count("dense_layers"),
		}
	}
	native, err := nativeFormat(r["native_dtype"])
	a.Native = native
	return a, err
}

// nativeFormat reads the catalog's free-form description of what a checkpoint stores.
func nativeFormat(text string) (WeightFormat, error) {
	word, _, _ := strings.Cut(strings.ToLower(text), " ")
	switch word {
	case "":
		return FormatUnset, nil
	case "bfloat16":
		return BF16, nil
	case "float16":
		return FP16, nil
	}
	f, err := ParseWeightFormat(word)
	if err != nil {
		return FormatUnset, fmt.Errorf("native_dtype: %w", err)
	}
	return f, nil
}
