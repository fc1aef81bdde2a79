package config

import (
	"slices"
	"testing"

	"planner/internal/list"
	"planner/sweep/measure"
)

// TestLimitsOfClasses checks that a class takes from [slo] what it does not give itself,
// wherever that section stands, and nothing for an empty table.
func TestLimitsOfClasses(t *testing.T) {
	const mix = `
[workload]
mix = [
  { class = "chat", weight = 0.7, slo = { ttft = { p99 = "500ms" } } },
  { class = "code", weight = 0.2, slo = { tpot = {}, goodput = { share = 0.9, e2e = "1m" } } },
  { class = "summarization", weight = 0.1 },
]
`
	c := mustLoad(t, mix+`
[demand]
rate = 100
[slo]
ttft = { p50 = "2s", p99 = "9s" }
tpot = { p99 = "50ms" }
itl = { p99 = "80ms" }
[model]
name = "llama-3.1-8b"
[hardware]
gpu = "H100 SXM"
`, For("plan"))
	got := list.Map(c.Objective.Bounds, measure.Bound.String)
	want := []string{
		"itl.p99",
		"ttft.p99 of chat", "tpot.p99 of chat",
		"ttft.p50 of code", "ttft.p99 of code", "goodput of code",
		"ttft.p50 of summarization", "ttft.p99 of summarization", "tpot.p99 of summarization",
	}
	if !slices.Equal(got, want) {
		t.Errorf("bounds %q, want %q", got, want)
	}
	again := mustLoad(t, string(c.TOML()), For("plan"))
	if !slices.Equal(again.Objective.Bounds, c.Objective.Bounds) {
		t.Errorf("printed and read again: %q", again.Objective.Bounds)
	}
}
