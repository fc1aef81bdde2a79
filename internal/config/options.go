package config

import (
	"fmt"
	"slices"
	"strings"

	"planner/sweep/measure"
)

// optionKeys are the keys that set what an option of vLLM does, beside those of the knobs.
var optionKeys = map[string]string{
	"--enforce-eager": `engine.graphs = "eager"`, "--async-scheduling": "engine.async_scheduling", "--no-async-scheduling": "engine.async_scheduling",
	"--kv-cache-dtype": "model.kv_cache", "--quantization": "model.weights", "--dtype": "model.weights", "--moe-backend": "engine.moe_backend",
	"--speculative-config": "engine.speculative", "--enable-lora": "engine.lora", "--max-loras": "engine.lora", "--max-lora-rank": "engine.lora",
}

// unmodelled are options of vLLM that change how fast it is, and of which the simulated
// engine knows the default alone.
var unmodelled = []string{
	"--all2all-backend", "--attention-backend", "--block-size", "--compilation-config", "--cpu-offload-gb", "--decode-context-parallel-size",
	"--disable-sliding-window", "--enable-chunked-prefill", "--enable-dbo", "--enable-eplb", "--kv-offloading-size", "--kv-transfer-config",
	"--long-prefill-token-threshold", "--max-long-partial-prefills", "--max-num-partial-prefills", "--prefill-context-parallel-size",
	"--scheduling-policy", "--stream-interval", "--swap-space",
}

// KeyOfOption is the key that sets what an option of vLLM does, and its value where one does;
// "" if there is none.
func KeyOfOption(option string) string {
	if i := slices.IndexFunc(measure.KnobTable, func(n measure.Knob) bool { return n.Option == option }); i >= 0 {
		return KeyOf(measure.KnobTable[i])
	}
	return optionKeys[option]
}

// instead says what may be meant by a key that is none: what sets an option of vLLM, that
// such an option is not modelled, or the nearest key.
func instead(within, name string, all []section) string {
	option := "--" + strings.ReplaceAll(name, "_", "-")
	if key := KeyOfOption(option); key != "" {
		return fmt.Sprintf("what vLLM's %s sets is %s here", option, key)
	}
	if slices.Contains(unmodelled, option) {
		return fmt.Sprintf(`of vLLM's %s planner models the default alone; engine.extra_args = ["%s", ...] passes it to a real engine`, option, option)
	}
	return "the nearest valid key is " + nearestKey(within, name, all)
}
