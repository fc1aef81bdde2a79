package model

import (
	"fmt"
	"strconv"
	"strings"
)

// span is the range of plausible figures of a column: a decade or more beyond every existing GPU, so that what
// lies outside is a wrong unit. A user's catalog may also hold CPUs, of which one core computes a hundredth of
// a GPU; [checkBalance] finds wrong units there.
type span struct {
	low, high float64
	// unit is the column's; slips are units that data sheets use instead.
	unit  string
	slips []slip
}

// slip is a unit that may have been meant, with the factor that converts its figures.
type slip struct {
	unit   string
	factor float64
}

var (
	memorySpan    = span{1, 4096, "GB", []slip{{"bytes", 1e-9}, {"MB or MiB", 1e-3}, {"TB", 1e3}}}
	reportedSpan  = span{1e9, 4e12, "bytes", []slip{{"MiB", 1 << 20}, {"GB", 1e9}}}
	bandwidthSpan = span{10, 200e3, "GB/s", []slip{{"TB/s", 1e3}, {"bytes/s", 1e-9}, {"MB/s", 1e-3}}}
	computeSpan   = span{0.01, 500e3, "TFLOP/s", []slip{{"PFLOP/s", 1e3}, {"FLOP/s", 1e-12}, {"GFLOP/s", 1e-3}}}
	linkSpan      = span{1, 20e3, "GB/s", []slip{{"TB/s", 1e3}, {"bytes/s", 1e-9}, {"MB/s", 1e-3}}}
	powerSpan     = span{5, 20e3, "W", []slip{{"kW", 1e3}, {"mW", 1e-3}}}
	priceSpan     = span{0.001, 1000, "USD an hour", []slip{{"cents", 0.01}, {"USD a second", 3600}}}
)

// spans are the ranges of some columns.
var spans = map[string]span{
	"memory_gb": memorySpan, "memory_bytes_reported": reportedSpan, "mem_bandwidth_gbs": bandwidthSpan,
	"bf16_dense_tflops": computeSpan, "fp8_dense_tflops": computeSpan, "fp4_dense_tflops": computeSpan, "int8_dense_tops": computeSpan,
	"measured_bf16_tflops": computeSpan, "measured_fp8_tflops": computeSpan,
	"scaleup_gbs_per_direction": linkSpan, "pcie_gbs_per_direction": linkSpan, "internode_gbs_per_direction": linkSpan, "tdp_w": powerSpan, "list_price_usd_per_gpu_hour": priceSpan,
}

// check refuses a figure that no GPU has and suggests the unit that was likely meant. 0 is an unknown figure.
func (s span) check(v float64) error {
	if v == 0 || v >= s.low && v <= s.high {
		return nil
	}
	message := fmt.Sprintf("no GPU has %g %s (allowed: %g to %g)", v, s.unit, s.low, s.high)
	for _, slip := range s.slips {
		if meant := v * slip.factor; meant >= s.low && meant <= s.high {
			return fmt.Errorf("%s; if these are %s, write %s", message, slip.unit, strconv.FormatFloat(meant, 'g', 6, 64))
		}
	}
	return fmt.Errorf("%s", message)
}

// checkBalance refuses a GPU with less than one operation per byte read, which does not exist: CPUs have about
// ten, GPUs hundreds.
func checkBalance(whole Row) error {
	const key = "bf16_dense_tflops"
	tflops, gbs := whole.num(key), whole.num("mem_bandwidth_gbs")
	if tflops == 0 || gbs == 0 || 1e3*tflops >= gbs {
		return nil
	}
	return &CellError{key, fmt.Sprintf("%g TFLOP/s are less than one operation for each byte of %g GB/s; if these are PFLOP/s, write %s",
		tflops, gbs, strconv.FormatFloat(1e3*tflops, 'g', 6, 64))}
}

// faster lists formats in the order in which no GPU becomes slower: fewer bits are never computed more slowly
// if they are supported at all. (INT8 is left out: Blackwell Ultra cut it to a twentieth.)
var faster = []string{"bf16_dense_tflops", "fp8_dense_tflops", "fp4_dense_tflops"}

// checkOrder refuses a GPU that would be slower in a narrower format. The error names the key that the entry
// gives, or the narrower one if it gives both.
func checkOrder(whole, given Row) error {
	for i, narrow := range faster {
		for _, wide := range faster[:i] {
			n, w := whole.num(narrow), whole.num(wide)
			if n == 0 || w == 0 || n >= w {
				continue
			}
			key, than := narrow, fmt.Sprintf("%g is below %s = %g", n, wide, w)
			if given[narrow] == "" {
				key, than = wide, fmt.Sprintf("%g is above %s = %g", w, narrow, n)
			}
			return &CellError{key, fmt.Sprintf("%s, and no GPU computes more slowly with fewer bits; want both dense and in TFLOP/s, and 0 for a format that the GPU has not (it computes with %s then)",
				than, strings.TrimSuffix(wide, "_dense_tflops"))}
		}
	}
	return nil
}
