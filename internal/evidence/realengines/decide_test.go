//go:build realengines

package realengines

import (
	"encoding/json"
	"flag"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"planner/plan"
	"planner/sweep/measure"
	"planner/sweep/serve"
)

var (
	runs   = flag.Int("runs", 1, "how often TestDecisions plans on each engine")
	budget = flag.Duration("budget", 20*time.Minute, "the search.budget of each plan of TestDecisions")
)

// decision is an engine on which plans are to come to a decision.
type decision struct {
	subject
	// words are what prompts are written of: one token each; prompt bounds how many.
	words  []string
	prompt [2]int
	// toml is all of the configuration but the budget, name the model's in requests.
	toml, name string
}

// limits are those of both engines, as a user would state them who has an interactive
// service on processors: the first token within a second, and then ten a second.
const limits = `
[demand]
rate = 10
[slo]
ttft = { p90 = "1s" }
tpot = { p90 = "100ms" }
errors = 0.01
`

// TestDecisions plans over two values of two knobs of a real engine, and holds each
// plan against a load generator that is not planner's: `vllm bench serve` meets the
// objective at the safe rate, and misses it at 1.3 times the high end of the interval.
// Four plans of five come to a decision; the others say why not.
//
//	go test -tags realengines -run Decisions -timeout 6h -v ./internal/evidence/realengines -args -runs 5
//
// It is for a machine of two processors that do nothing else.
func TestDecisions(t *testing.T) {
	if testing.Short() {
		t.Skip("a plan on a real engine takes up to 20 minutes")
	}
	for _, name := range []string{"vllm", "llama-server"} {
		t.Run(name, func(t *testing.T) {
			s := subjects()[name]
			need(t, s)
			need(t, vllm()) // whose load generator checks the plans
			timeFor(t, time.Duration(*runs)*(2**budget)+5*time.Minute)
			x := map[string]func(*testing.T, subject) decision{"vllm": vllmDecision, "llama-server": llamaDecision}[name](t, s)
			d := s.desk(t)
			d.write("planner.toml", x.toml+fmt.Sprintf("budget = %q\n", *budget))
			decided := 0
			for run := range *runs {
				if d.decide(x, run+1) {
					decided++
				}
			}
			t.Logf("%d of %d plans came to a decision", decided, *runs)
			if 5*decided < 4**runs {
				t.Errorf("%d of %d plans came to a decision, want four of five", decided, *runs)
			}
		})
	}
}

// decide makes one plan, and checks it where it is one.
func (d *desk) decide(x decision, run int) bool {
	d.t.Helper()
	const undecided = 4
	folder := "plan-" + strconv.Itoa(run)
	began := time.Now()
	out, code := d.must([]int{undecided}, "plan", "planner.toml", "--json", "--output", folder, "--set", "workload.seed="+strconv.Itoa(run))
	d.t.Logf("run %d: exit code %d after %.0f s; %s", run, code, time.Since(began).Seconds(), d.account(folder))
	if code == undecided {
		var why struct{ Reasons []string }
		if err := json.Unmarshal(out, &why); err != nil || len(why.Reasons) == 0 {
			d.t.Errorf("run %d gives no reason: %v in %s", run, err, out)
		}
		d.t.Logf("run %d: undecided: %s", run, strings.Join(why.Reasons, "; "))
		return false
	}
	var p plan.Plan
	if err := json.Unmarshal(out, &p); err != nil {
		d.t.Fatalf("%v in %s", err, out)
	}
	rate := p.Offer.Rate
	d.t.Logf("run %d: %.3g/s [%.3g, %.3g], known to %.0f %% of the value, safe %.3g/s, limited by %v, with %s", run, rate.Value, rate.Low, rate.High,
		50*(rate.High-rate.Low)/rate.Value, rate.Safe, p.Offer.Binding, p.Offer.Knobs.Describe())
	d.check(x, p.Offer.Knobs, folder, rate.Safe, measure.Met)
	d.check(x, p.Offer.Knobs, folder, 1.3*rate.High, measure.Missed)
	return true
}

// account sums up the trials of a run: how many, of how many knob sets, how many that
// cannot be trusted, and why.
func (d *desk) account(folder string) string {
	trials := d.journal(folder)
	sets := map[measure.Knobs]bool{}
	for i := range trials {
		m := &trials[i]
		sets[m.Trial.Knobs] = true
		late, _ := m.Count("ttft.p90")
		d.t.Logf("  trial %d, %s: %.3g/s for %v: %d requests, %d late, %v, aborted %q, valid %v: %.300q", m.Trial.Number, m.Trial.Knobs.Describe(), m.Trial.Rate,
			m.Trial.Window, m.Requests, late.K, m.Verdict.State, m.Aborted.Text, m.Valid, m.Warnings.Texts())
	}
	var engineTime time.Duration
	for _, seen := range d.telemetry(folder) {
		engineTime += seen.EngineTime
	}
	o := measure.OverviewOf(trials)
	return fmt.Sprintf("%d trials of %d knob sets, %.0f s of engines, %d trials not to be trusted: %v", o.Trials, len(sets), engineTime.Seconds(), o.Invalid, o.Doubts.Texts())
}

// vllmDecision is vLLM with a model of eight layers, whose arithmetic outweighs what the client on the same processors
// costs, and a tokenizer. Its numbers have 32 bits: on processors without instructions for bf16 a prompt of 128 tokens
// takes six times as long in it (.73 s), and an idle engine is at the limit.
func vllmDecision(t *testing.T, s subject) decision {
	folder := t.TempDir()
	if err := (&serve.Simulator{MaxModelLen: 1024}).WriteTokenizer(folder); err != nil {
		t.Fatal(err)
	}
	d := &desk{t: t, dir: folder}
	d.write("config.json", `{
  "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu", "torch_dtype": "float32", "hidden_size": 512,
  "intermediate_size": 1408, "num_hidden_layers": 8, "num_attention_heads": 8, "num_key_value_heads": 8, "head_dim": 64, "vocab_size": 17580,
  "max_position_embeddings": 1024, "rms_norm_eps": 1e-05, "rope_theta": 10000.0, "bos_token_id": 17576, "eos_token_id": 17576, "tie_word_embeddings": false
}`)
	s.settings.Model, s.settings.ExtraArgs = folder, []string{"--load-format", "dummy", "--enforce-eager", "--dtype", "float32"}
	x := decision{subject: s, name: "tiny", prompt: [2]int{64, 192}, toml: fmt.Sprintf(limits+`
[model]
config = %q
[engine]
kind = "vllm"
served_name = "tiny"
extra_args = ["--load-format", "dummy", "--enforce-eager", "--dtype", "float32"]
env = { HF_HUB_OFFLINE = "1" }
[knobs]
max_num_seqs = [4, 16]
max_num_batched_tokens = [256, 1024]
gpu_memory_utilization = 0.3
[workload]
prompt = { dist = "uniform", min = 64, max = 192 }
output = { dist = "fixed", value = 16 }
timeout = "60s"
[search]
precision = 0.2
`, filepath.Join(folder, "config.json"))}
	for i := range 512 {
		x.words = append(x.words, fmt.Sprintf(" %c%c%c", 'a'+i%26, 'a'+i/26, 'q'))
	}
	return x
}

// llamaWords are one token each for SmolLM2.
var llamaWords = []string{" the", " of", " and", " to", " in", " is", " that", " for", " was", " on", " with", " as", " by", " at", " from", " his"}

// llamaDecision is llama-server with SmolLM2-135M.
func llamaDecision(_ *testing.T, s subject) decision {
	return decision{subject: s, name: "smol", prompt: [2]int{16, 48}, words: llamaWords, toml: fmt.Sprintf(limits+`
[model]
name = %q
[engine]
kind = "llama-server"
served_name = "smol"
extra_args = ["-t", "1"]
[knobs]
max_num_seqs = [2, 4]
max_num_batched_tokens = [64, 512]
gpu_memory_utilization = 0.9
[workload]
prompt = { dist = "uniform", min = 16, max = 48 }
output = { dist = "fixed", value = 16 }
timeout = "60s"
[search]
precision = 0.2
`, s.settings.Model)}
}
