//go:build realengines

package realengines

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"time"

	"planner/sweep/engine"
	"planner/sweep/measure"
)

// A foreign load generator sends each rate for at least checkLength, and at least checkRequests: late requests come in
// clusters, so that of 124 a fifth may be late where in the long run one in twenty is.
const (
	checkLength   = 150 * time.Second
	checkRequests = 400
)

// foreign is what `vllm bench serve` says of a rate, in milliseconds.
type foreign struct {
	Completed int
	Failed    int
	TTFT      float64 `json:"p90_ttft_ms"`
	TPOT      float64 `json:"p90_tpot_ms"`
}

// verdict is that of the limits of these tests.
func (f foreign) verdict() measure.State {
	if f.Completed > 0 && 100*f.Failed <= f.Completed && f.TTFT <= 1000 && f.TPOT <= 100 {
		return measure.Met
	}
	return measure.Missed
}

// check starts the engine with some knobs, lets the foreign load generator send a rate
// as an open loop, and holds its verdict against what is wanted.
func (d *desk) check(x decision, k measure.Knobs, name string, rate float64, want measure.State) {
	d.t.Helper()
	settings := x.settings
	settings.Dir = d.path("check")
	settings.Program = []string{x.program}
	if settings.Kind == "vllm" {
		settings.Program = append(settings.Program, "serve")
	}
	settings.ServedName = x.name
	e, err := engine.Start(d.t.Context(), settings, k, name+"-"+want.String(), nil)
	if err != nil {
		d.t.Errorf("start the engine for the check: %v", err)
		return
	}
	defer e.Stop(0)
	seen, out, err := d.bench(x, e.URL, rate)
	if err != nil {
		d.t.Errorf("vllm bench serve: %v\n%s", err, out)
		return
	}
	d.t.Logf("vllm bench serve at %.3g/s: %d completed, %d failed, p90 TTFT %.0f ms, p90 TPOT %.1f ms: %v", rate, seen.Completed, seen.Failed, seen.TTFT, seen.TPOT, seen.verdict())
	if seen.verdict() != want {
		d.t.Errorf("at %.3g/s vllm bench serve says %v, want %v", rate, seen.verdict(), want)
	}
}

// bench sends a rate with vLLM's load generator.
func (d *desk) bench(x decision, url string, rate float64) (seen foreign, out []byte, err error) {
	d.write("tokenizer/tokenizer.json", tokenizerOf(x.words))
	d.write("tokenizer/tokenizer_config.json", `{"tokenizer_class": "PreTrainedTokenizerFast", "unk_token": "?", "clean_up_tokenization_spaces": false}`)
	d.write("tokenizer/config.json", `{"model_type": "llama"}`)
	result := d.path("bench.json")
	_ = os.Remove(result)
	requests := max(int(rate*checkLength.Seconds()), checkRequests)
	d.write("prompts.json", prompts(x, requests))
	cmd := exec.CommandContext(d.t.Context(), vllm().program, "bench", "serve", "--backend", "openai", "--base-url", url, "--model", x.name,
		"--tokenizer", d.path("tokenizer"), "--dataset-name", "sharegpt", "--dataset-path", d.path("prompts.json"),
		"--sharegpt-output-len", "16", "--ignore-eos", "--temperature", "0", "--request-rate", fmt.Sprint(rate), "--num-prompts", fmt.Sprint(requests),
		"--disable-tqdm", "--percentile-metrics", "ttft,tpot", "--metric-percentiles", "90", "--save-result", "--result-filename", result)
	cmd.Env = append(os.Environ(), "HF_HUB_OFFLINE=1", "VLLM_NO_USAGE_STATS=1")
	if out, err = cmd.CombinedOutput(); err != nil {
		return seen, out, err
	}
	text, err := os.ReadFile(result)
	if err == nil {
		err = json.Unmarshal(text, &seen)
	}
	return seen, out, err
}

// prompts are as many as there are requests, each of words drawn by themselves. The random prompts of
// `vllm bench serve` count through the vocabulary instead: of a small one most begin as one before them
// did, and an engine's prefix cache answers those twice as fast.
func prompts(x decision, requests int) string {
	type turn struct {
		Value string `json:"value"`
	}
	type conversation struct {
		Conversations [2]turn `json:"conversations"`
	}
	out := make([]conversation, requests)
	draw := rand.New(rand.NewPCG(1, uint64(requests)))
	for i := range out {
		prompt := ""
		for range x.prompt[0] + draw.IntN(x.prompt[1]-x.prompt[0]+1) {
			prompt += x.words[draw.IntN(len(x.words))]
		}
		out[i].Conversations = [2]turn{{prompt}, {"answered by the engine"}}
	}
	text, _ := json.Marshal(out) // words have a JSON form
	return string(text)
}

// tokenizerOf is a tokenizer of Hugging Face that knows some words, each with the
// space before it: random tokens of it are texts that the engine's own takes for as
// many.
func tokenizerOf(words []string) string {
	vocabulary := map[string]int{}
	for i, word := range append(words, "?") {
		vocabulary[word] = i
	}
	text, _ := json.Marshal(map[string]any{ // words and numbers always have a JSON form
		"version": "1.0", "added_tokens": []any{}, "decoder": map[string]any{"type": "Fuse"},
		"pre_tokenizer": map[string]any{"type": "Split", "pattern": map[string]any{"Regex": " ?[^ ]+"}, "behavior": "Isolated", "invert": false},
		"model":         map[string]any{"type": "WordLevel", "vocab": vocabulary, "unk_token": "?"},
	})
	return string(text)
}
