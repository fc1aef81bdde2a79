package decide

import (
	"testing"

	"planner/internal/config"
	"planner/internal/evidence/must"
	"planner/sweep/measure"
)

// The engine's own settings may be chosen where each list holds them, no options among them.
func TestAllowed(t *testing.T) {
	for list, want := range map[string]bool{`["", "--block-size 32"]`: true, `["--block-size 16", "--block-size 32"]`: false} {
		cfg := must.Get(config.Load("", []config.Override{{Key: "model.name", Value: "llama-3.1-8b"}, {Key: "hardware.gpu", Value: "H100 SXM"}, {Key: "demand.rate", Value: "1"},
			{Key: "slo.ttft", Value: `{p99="1s"}`}, {Key: "engine.kind", Value: "vllm"}, {Key: "knobs.extra_args", Value: list}}, config.For("plan")))
		if got := allowed(cfg, measure.Knobs{PrefixCaching: true}); got != want {
			t.Errorf("%s: allowed %v, want %v", list, got, want)
		}
	}
}
