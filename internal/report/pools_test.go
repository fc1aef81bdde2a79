package report

import (
	"strings"
	"testing"

	"planner/internal/evidence/must"
	"planner/plan"
)

// The command of a pool's instances has its option file and notes beside it, as that of one pool.
func TestStartOfPools(t *testing.T) {
	p := must.Get(plan.Solve(demand(), slo(), []plan.Offer{offer("H100 SXM", 2)}, nil))
	p.Handover.Engine = &plan.Engine{Argv: []string{"trtllm-serve", "m"}, File: &plan.OptionFile{Path: "trtllm.yaml", Content: "kv_cache_config:\n"},
		Notes: []string{"serve a checkpoint in int4"}}
	var d Document
	poolSections(&d, plan.NewPools(demand(), []plan.Pool{{Class: "chat", Share: 1, Plan: p}}, nil), nil)
	text := string(Text(d, 120, false))
	for _, want := range []string{"FLAGS OF AN INSTANCE FOR CHAT", "trtllm-serve m", "trtllm.yaml", "kv_cache_config:", "serve a checkpoint in int4"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}
