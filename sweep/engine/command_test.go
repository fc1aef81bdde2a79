package engine

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"planner/sweep/measure"
)

// Every kind of engine spells the same knobs in its own way.
func TestCommandLines(t *testing.T) {
	full := measure.Knobs{MaxNumSeqs: 64, MaxNumBatchedTokens: 2048, GPUMemoryUtilization: 0.85, MaxModelLen: 4096, TensorParallel: 4, PipelineParallel: 1}
	for _, c := range []struct {
		kind, want string
		without    []string
	}{
		{"vllm", "PYTHONUNBUFFERED=1 VLLM_NO_USAGE_STATS=1 VLLM_SERVER_DEV_MODE=1 vllm serve org/model --host 127.0.0.1 --port 9000 " +
			"--served-model-name tiny --tensor-parallel-size 4 --max-num-seqs 64 --max-num-batched-tokens 2048 " +
			"--gpu-memory-utilization 0.85 --no-enable-prefix-caching --max-model-len 4096 --load-format dummy", nil},
		{"sglang", "PYTHONUNBUFFERED=1 SGLANG_ENABLE_HEALTH_ENDPOINT_GENERATION=false python3 -m sglang.launch_server --model-path org/model " +
			"--host 127.0.0.1 --port 9000 --enable-metrics --served-model-name tiny --tp-size 4 --max-running-requests 64 " +
			"--chunked-prefill-size 2048 --mem-fraction-static 0.85 --disable-radix-cache --context-length 4096 --load-format dummy", nil},
		{"trtllm", "PYTHONUNBUFFERED=1 trtllm-serve org/model --host 127.0.0.1 --port 9000 --tp_size 4 --max_batch_size 64 --max_num_tokens 2048 " +
			"--kv_cache_free_gpu_memory_fraction 0.85 --max_seq_len 4096 --enable_chunked_prefill --extra_llm_api_options /run/trtllm.yaml --load-format dummy", nil},
		{"tgi", "PREFIX_CACHING=0 text-generation-launcher --model-id org/model --hostname 127.0.0.1 --port 9000 --num-shard 4 --max-batch-size 64 " +
			"--max-batch-prefill-tokens 2048 --cuda-memory-fraction 0.85 --max-total-tokens 4096 --max-concurrent-requests 16384 --load-format dummy", nil},
		{"llama-server", "llama-server -m org/model --host 127.0.0.1 --port 9000 --metrics --alias tiny -np 64 -c 262144 -b 2048 -ub 512 " +
			"--no-cache-prompt --load-format dummy", []string{"gpu_memory_utilization", "tensor_parallel"}},
		{"lmdeploy", "PYTHONUNBUFFERED=1 lmdeploy serve api_server org/model --server-name 127.0.0.1 --server-port 9000 --model-name tiny --tp 4 " +
			"--max-batch-size 64 --max-prefill-token-num 2048 --cache-max-entry-count 0.85 --session-len 4096 --load-format dummy", nil},
		{"command", "serve --port=9000 --seqs 64 'a b' org/model --load-format dummy", nil},
	} {
		s := Settings{Kind: c.kind, Model: "org/model", ServedName: "tiny", Dir: "/run", ExtraArgs: []string{"--load-format", "dummy"},
			Argv: []string{"serve", "--port={port}", "--seqs", "{max_num_seqs}", "a b", "{model}"}}
		got, err := s.Command(full, 9000)
		if err != nil {
			t.Errorf("%s: %v", c.kind, err)
			continue
		}
		if got.String() != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.kind, got, c.want)
		}
		if !slices.Equal(got.Without, c.without) {
			t.Errorf("%s: knobs without an option: %v, want %v", c.kind, got.Without, c.without)
		}
	}
}

// What is left to the engine has no option, and the prefix cache is told both
// ways.
func TestDefaultsHaveNoOption(t *testing.T) {
	for kind, want := range map[string]string{
		"vllm":         "vllm serve m --host 127.0.0.1 --port 1 --enable-prefix-caching",
		"sglang":       "python3 -m sglang.launch_server --model-path m --host 127.0.0.1 --port 1 --enable-metrics",
		"llama-server": "llama-server -m m --host 127.0.0.1 --port 1 --metrics --cache-prompt",
		"lmdeploy":     "lmdeploy serve api_server m --server-name 127.0.0.1 --server-port 1 --enable-prefix-caching",
	} {
		s := Settings{Kind: kind, Model: "m"}
		got, err := s.Command(measure.Knobs{PrefixCaching: true, TensorParallel: 1}, 1)
		if err != nil || strings.Join(got.Args, " ") != want {
			t.Errorf("%s: %v, %v; want %s", kind, got.Args, err, want)
		}
	}
}

func TestEveryKindExplainsItself(t *testing.T) {
	for _, kind := range Kinds() {
		if MemoryMeaning(kind) == "" {
			t.Errorf("%s: what does its memory fraction mean?", kind)
		}
		_, err := (&Settings{Kind: kind, Model: "m", Argv: []string{"x"}}).Command(measure.Knobs{}, 1)
		if (err != nil) != (kind == "attach") {
			t.Errorf("%s: %v", kind, err)
		}
	}
	if MemoryMeaning("nothing") != "" {
		t.Error("an unknown kind has a meaning")
	}
}

func TestPlaceholders(t *testing.T) {
	k := measure.Knobs{MaxNumSeqs: 8}
	for _, c := range []struct{ word, want, err string }{
		{"{max_num_seqs}", "8", ""},
		{"--port={port},{prefix_caching}", "--port=1,false", ""},
		{`{"json": 1}`, `{"json": 1}`, ""},
		{"{tensor_parallel}", "1", ""},
		{"{max_model_len}", "", "the configuration leaves it open"},
		{"{served_name}", "", "has no value"},
		{"{colour}", "", "is not known"},
	} {
		s := Settings{Kind: "command", Argv: []string{c.word}}
		got, err := s.Command(k, 1)
		switch {
		case c.err != "":
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s: error %v, want %q", c.word, err, c.err)
			}
		case err != nil || got.Args[0] != c.want:
			t.Errorf("%s: %v, %v; want %s", c.word, got.Args, err, c.want)
		}
	}
	if _, err := (&Settings{Kind: "command"}).Command(k, 1); err == nil {
		t.Error("an empty command is taken")
	}
}

// A shell reads back exactly the words that were quoted.
func FuzzQuote(f *testing.F) {
	for _, s := range []string{"plain", "", "it's", `a "b" $c`, "x\ny", "~", "-n", `\`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if strings.ContainsRune(s, 0) {
			t.Skip("no argument holds a zero byte")
		}
		out, err := exec.Command("sh", "-c", "printf %s "+quote(s)+"; echo .").Output()
		if err != nil || string(out) != s+".\n" {
			t.Errorf("%q comes back as %q, %v", s, out, err)
		}
	})
}

// Secrets that found their way into a configuration are not printed.
func TestSecretsAreNotPrinted(t *testing.T) {
	c := Command{
		Env:  []string{"HF_TOKEN=hunter2", "MY_API_KEY=hunter2", "PLAIN=visible", "ODD=hf_hunter2hunter2"},
		Args: []string{"serve", "--api-key", "hunter2", "--api-key=hunter2", "--hf-token=hunter2", "--max-num-batched-tokens", "512", "--key", "sk-hunter2", "--tokenizer", "visible2"},
	}
	got := c.String()
	if strings.Contains(got, "hunter2") || !strings.Contains(got, "PLAIN=visible") ||
		!strings.Contains(got, "--max-num-batched-tokens 512") || !strings.Contains(got, "--tokenizer visible2") {
		t.Error(got)
	}
}
