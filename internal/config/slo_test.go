package config

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"planner/internal/evidence/must"
	"planner/internal/list"
	"planner/sweep/measure"
)

// TestLimitsOfClasses checks that a class takes from [slo] what it does not give itself,
// wherever that section stands, and nothing for an empty table.
func TestLimitsOfClasses(t *testing.T) {
	const mix = `
[workload]
mix = [
  { class = "chat", weight = 0.7, slo = { ttft = { p999 = "500ms" } } },
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
		"ttft.p99.9 of chat", "tpot.p99 of chat",
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

// TestFleetLimits: limits that a fleet's requests are not held to are named.
func TestFleetLimits(t *testing.T) {
	for limits, want := range map[string]string{
		`ttft = { p99 = "1s" }` + "\n" + `goodput = { share = 0.9, ttft = "1s", tpot = "40ms" }`: "",
		`ttft = { p50 = "200ms", p99 = "1s" }`:                                                   "slo: ttft.p50 is not what a fleet is held to",
		`ttft = { p99 = "1s" }` + "\n" + `goodput = { share = 0.9, ttft = "3s" }`:                "slo: goodput is not what a fleet is held to",
		`ttft = { mean = "1s", p99 = "2s" }`:                                                     "slo: ttft.mean is no limit on single requests",
	} {
		text := strings.Replace(minimal, `ttft = { p99 = "500ms" }`, limits, 1) + "[fleet]\nreplicas = 2\nstages = [ { rate = 1, duration = \"1m\" } ]\n"
		if told := strings.Join(mustLoad(t, text, For("fleet")).Warnings, "\n"); told != want && (want == "" || !strings.HasPrefix(told, want) || strings.Contains(told, "\n")) {
			t.Errorf("%s: warnings %q, want %q", limits, told, want)
		}
	}
}

// TestJobOfCutRequests: a job of so many tokens has as many requests as these are of, which are
// cut at max_model_len.
func TestJobOfCutRequests(t *testing.T) {
	text := strings.NewReplacer("rate = 100", "tokens_per_day = 1e9", `ttft = { p99 = "500ms" }`, `objective = "throughput"`).Replace(minimal) +
		"[knobs]\nmax_model_len = 2048\n[workload]\nprompt = { dist = \"lognormal\", median = 500, sigma = 2 }\noutput = { dist = \"fixed\", value = 200 }\n"
	// Of 400,000 such draws the means are 853.4 and 150.5 tokens.
	if requests := mustLoad(t, text, For("plan")).Demand.Job.Requests; math.Abs(requests*(853.4+150.5)/1e9-1) > 0.03 {
		t.Errorf("%.0f requests, want those of 1,004 tokens", requests)
	}
}

// TestTokensOfATrace: results are fitted for as many requests a day as a plan is made for.
func TestTokensOfATrace(t *testing.T) {
	trace := must.File(t, "t.csv", "arrival_s,input_tokens,output_tokens\n0,300,100\n1,500,100\n")
	text := strings.NewReplacer("rate = 100", "tokens_per_day = 1e9", `ttft = { p99 = "500ms" }`, `objective = "throughput"`).Replace(minimal) +
		fmt.Sprintf("[workload]\ntrace = %q\n", trace)
	for _, command := range []string{"plan", "fit"} {
		if c := mustLoad(t, text, For(command)); c.Demand.Job == nil || c.Demand.Job.Requests != 2e6 {
			t.Errorf("%s: %+v", command, c.Demand.Job)
		}
	}
}
