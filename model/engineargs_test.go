package model

import (
	"slices"
	"testing"
)

// Options change what they set in vLLM, the last one winning, and those that are not modelled are named.
func TestFeaturesWithOptions(t *testing.T) {
	got, rest := EngineFeatures{}.With([]string{"--no-async-scheduling", "--long-prefill-token-threshold=512", "--block-size", "32", "--enforce-eager",
		"--max-cudagraph-capture-size", "64", "--no-enable-chunked-prefill", "--async-scheduling", "--cuda-graph-sizes", "1", "2", "-O0",
		"--enable-chunked-prefill=False", "--enforce-eager", "8", "-asc", "3", "--all2all-backend", "deepep_low_latency", "--enable-dbo", "--enable-eplb", "--all2all-backend=mori"})
	want := EngineFeatures{Kernels: Kernels{Async: On, Graphs: GraphsNone, GraphTokens: 64}, LongPrefill: 512, WholePrefill: true, FrontEnds: 3,
		Exchange: Exchange{Backend: All2AllLowLatency, DBO: true, EPLB: true}}
	if got.Kernels != want.Kernels || got.LongPrefill != want.LongPrefill || got.WholePrefill != want.WholePrefill || got.FrontEnds != want.FrontEnds || got.Exchange != want.Exchange || !slices.Equal(rest, []string{"--block-size", "--cuda-graph-sizes", "-O0", "--enable-chunked-prefill", "--enforce-eager", "--all2all-backend"}) {
		t.Errorf("%+v, not modelled %q", got, rest)
	}
}
