package engine

import (
	"bufio"
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"planner/internal/evidence/must"
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
			"--no-cache-prompt --load-format dummy", []string{"tensor_parallel", "gpu_memory_utilization"}},
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

// Every kind of engine has its own way to a number format, or none; a format that
// needs another checkpoint is said so, never passed over.
func TestFormats(t *testing.T) {
	const alike = "weights int4 (serve a checkpoint in int4: org/model is bf16)"
	for _, c := range []struct {
		kind    string
		format  Format
		want    string
		without string
	}{
		{"vllm", Format{}, "", ""},
		{"vllm", Format{Weights: "bf16", Stored: "bf16", KV: "auto"}, "", ""},
		{"vllm", Format{Weights: "bf16", KV: "auto"}, "", ""},
		{"vllm", Format{Weights: "fp8", Stored: "bf16", KV: "fp8"}, "--quantization fp8 --kv-cache-dtype fp8", ""},
		{"vllm", Format{Weights: "fp8"}, "--quantization fp8", ""},
		{"vllm", Format{Weights: "fp8", Stored: "fp8", KV: "fp8"}, "--kv-cache-dtype fp8", ""},
		{"vllm", Format{Weights: "fp16", Stored: "bf16"}, "--dtype float16", ""},
		{"vllm", Format{Weights: "fp16"}, "--dtype float16", ""},
		{"vllm", Format{Weights: "bf16", Stored: "fp16"}, "--dtype bfloat16", ""},
		{"vllm", Format{Weights: "int4", Stored: "bf16"}, "", alike},
		{"vllm", Format{Weights: "int4", Stored: "int4"}, "", ""},
		{"vllm", Format{Weights: "mxfp4", Stored: "mxfp4"}, "", ""},
		{"vllm", Format{Weights: "nvfp4"}, "", "weights nvfp4 (serve a checkpoint in nvfp4: org/model is not known to be)"},
		{"vllm", Format{Weights: "fp8", Stored: "mxfp4"}, "", "weights fp8 (serve a checkpoint in fp8: org/model is mxfp4)"},
		{"vllm", Format{Weights: "bf16", Stored: "fp8"}, "", "weights bf16 (serve a checkpoint in bf16: org/model is fp8)"},
		{"sglang", Format{Weights: "fp8", Stored: "bf16", KV: "fp8"}, "--quantization fp8 --kv-cache-dtype fp8_e4m3", ""},
		{"sglang", Format{Weights: "fp16", Stored: "bf16"}, "--dtype float16", ""},
		{"sglang", Format{Weights: "int4", Stored: "bf16"}, "", alike},
		{"tgi", Format{Weights: "fp8", Stored: "bf16", KV: "fp8"}, "--quantize fp8 --kv-cache-dtype fp8_e4m3fn", ""},
		{"tgi", Format{Weights: "fp16", Stored: "bf16"}, "--dtype float16", ""},
		{"trtllm", Format{Weights: "fp8", Stored: "bf16", KV: "fp8"}, "", "weights fp8 (serve a checkpoint in fp8: org/model is bf16)"},
		{"lmdeploy", Format{Weights: "fp16", Stored: "bf16"}, "--dtype float16", ""},
		{"lmdeploy", Format{Weights: "fp8", Stored: "fp8", KV: "fp8"}, "--quant-policy 8", "kv_cache fp8 (integers of 8 bits)"},
		{"lmdeploy", Format{Weights: "int4", Stored: "bf16"}, "", alike},
		{"llama-server", Format{Weights: "bf16", Stored: "bf16", KV: "fp8"}, "-ctk q8_0 -ctv q8_0", "kv_cache fp8 (q8_0, integers of 8 bits with a scale for 32 of them)"},
		{"llama-server", Format{Weights: "fp16", Stored: "bf16"}, "", "weights fp16 (serve a checkpoint in fp16: org/model is bf16)"},
		{"command", Format{Weights: "fp8", Stored: "bf16", KV: "fp8"}, "", ""},
	} {
		s := Settings{Kind: c.kind, Model: "org/model", Format: c.format, Argv: []string{"serve"}}
		whole, err := s.Command(measure.Knobs{TensorParallel: 1}, 1)
		s.Format = Format{}
		bare := must.Get(s.Command(measure.Knobs{TensorParallel: 1}, 1))
		args := strings.TrimSpace(strings.TrimPrefix(strings.Join(whole.Args, " "), strings.Join(bare.Args, " ")))
		if err != nil || args != c.want || strings.Join(whole.Without, "; ") != c.without {
			t.Errorf("%s, %+v: %q, without %q, %v; want %q, without %q", c.kind, c.format, args, whole.Without, err, c.want, c.without)
		}
	}
}

// TensorRT-LLM reads the format of its cache from its file, under its section.
func TestFormatsInFile(t *testing.T) {
	s := Settings{Kind: "trtllm", Model: "m", Format: Format{Weights: "fp16", Stored: "bf16", KV: "fp8"}}
	got, err := s.Command(measure.Knobs{PrefixCaching: true}, 1)
	want := "enable_iter_perf_stats: true\nkv_cache_config:\n  enable_block_reuse: true\n  dtype: fp8\ndtype: float16\n"
	if err != nil || got.Content != want {
		t.Errorf("%q, %v; want %q", got.Content, err, want)
	}
}

// All degrees of parallelism stand in the command line, or in what it is without.
func TestDegreesOfParallelism(t *testing.T) {
	k := measure.Knobs{PrefixCaching: true, TensorParallel: 4, PipelineParallel: 2, DataParallel: 3, ExpertParallel: true}
	for kind, want := range map[string]struct{ args, without string }{
		"vllm":         {"--tensor-parallel-size 4 --pipeline-parallel-size 2 --data-parallel-size 3 --enable-expert-parallel", ""},
		"sglang":       {"--tp-size 4 --pp-size 2 --dp-size 3 --ep-size 4", ""},
		"trtllm":       {"--tp_size 4 --pp_size 2 --ep_size 4", "data_parallel"},
		"tgi":          {"--num-shard 4", "pipeline_parallel data_parallel expert_parallel"},
		"lmdeploy":     {"--tp 4 --dp 3 --ep 4", "pipeline_parallel"},
		"llama-server": {"", "tensor_parallel pipeline_parallel data_parallel expert_parallel"},
	} {
		got, err := (&Settings{Kind: kind, Model: "m"}).Command(k, 1)
		if err != nil || !strings.Contains(strings.Join(got.Args, " "), want.args) || strings.Join(got.Without, " ") != want.without {
			t.Errorf("%s: %q, without %q, %v; want %q, without %q", kind, got.Args, got.Without, err, want.args, want.without)
		}
	}
}

// The way to the experts is told to engines that know it, each in its own words.
func TestWayToExperts(t *testing.T) {
	for _, c := range []struct{ kind, backend, args, without string }{
		{"vllm", "deepep_low_latency", "--all2all-backend deepep_low_latency --enable-dbo --enable-eplb", ""},
		{"sglang", "deepep_low_latency", "--moe-a2a-backend deepep --deepep-mode low_latency --enable-two-batch-overlap --enable-eplb", ""},
		{"sglang", "deepep_high_throughput", "--moe-a2a-backend deepep --deepep-mode normal --enable-two-batch-overlap", ""},
		{"sglang", "flashinfer_all2allv", "--moe-a2a-backend flashinfer --enable-two-batch-overlap", ""},
		{"sglang", "allgather_reducescatter", "--enable-two-batch-overlap", ""}, {"tgi", "deepep_low_latency", "", "all2all_backend dbo eplb"},
	} {
		s := Settings{Kind: c.kind, Model: "m", Options: map[string]string{"all2all_backend": c.backend, "dbo": "true", "eplb": "true"}}
		got, err := s.Command(measure.Knobs{PrefixCaching: true}, 1)
		if args := strings.Join(got.Args, " "); err != nil || !strings.Contains(args, c.args) || strings.Contains(args, "{") || strings.Join(got.Without, " ") != c.without {
			t.Errorf("%s, %s: %q, without %q, %v; want %q, without %q", c.kind, c.backend, args, got.Without, err, c.args, c.without)
		}
	}
	s := Settings{Kind: "command", Argv: []string{"serve", "--all2all-backend", "{all2all_backend}"}, Options: map[string]string{"all2all_backend": "pplx"}}
	if got, err := s.Command(measure.Knobs{}, 1); err != nil || strings.Join(got.Args, " ") != "serve --all2all-backend pplx" {
		t.Errorf("%q, %v", got.Args, err)
	}
}

// What an engine says of its formats is held against what was asked for.
func TestOtherFormats(t *testing.T) {
	for _, c := range []struct {
		format Format
		said   map[string]string
		want   string
	}{
		{Format{Weights: "fp8", KV: "fp8"}, nil, ""},
		{Format{Weights: "fp8", KV: "fp8"}, map[string]string{"quantization": "fp8", "kv_cache_dtype": "fp8_e4m3", "dtype": "torch.bfloat16"}, ""},
		{Format{Weights: "fp8"}, map[string]string{"quantization": "compressed-tensors"}, ""},
		{Format{Weights: "fp8"}, map[string]string{"quantization": "none"}, "quantization is none, asked for weights in fp8"},
		{Format{Weights: "int4"}, map[string]string{"quantization": "awq_marlin"}, ""},
		{Format{Weights: "int4"}, map[string]string{"quantization": "fp8"}, "quantization is fp8, asked for weights in int4"},
		{Format{Weights: "bf16"}, map[string]string{"quantization": "none", "kv_cache_dtype": "auto"}, ""},
		{Format{Weights: "bf16"}, map[string]string{"quantization": "modelopt"}, "quantization is modelopt, asked for weights in bf16"},
		{Format{Weights: "bf16", KV: "fp8"}, map[string]string{"kv_cache_dtype": "auto"}, "kv_cache_dtype is auto, asked for fp8"},
		{Format{Weights: "bf16", KV: "auto"}, map[string]string{"kv_cache_dtype": "fp8_e5m2"}, "kv_cache_dtype is fp8_e5m2, asked for auto"},
		{Format{Weights: "bf16", KV: "auto"}, map[string]string{"kv_cache_dtype": "bfloat16"}, ""},
		{Format{Weights: "fp8", Stored: "fp8", KV: "auto", StoredKV: "fp8"}, map[string]string{"kv_cache_dtype": "fp8_e4m3"}, ""},
		{Format{Weights: "fp8", Stored: "fp8", KV: "auto", StoredKV: "fp8"}, map[string]string{"kv_cache_dtype": "auto"}, ""},
		{Format{Weights: "fp16", Stored: "bf16"}, map[string]string{"dtype": "torch.bfloat16"}, "dtype is bfloat16, asked for float16"},
		{Format{Weights: "fp16", Stored: "bf16"}, map[string]string{"dtype": "torch.float16"}, ""},
		{Format{KV: "auto"}, map[string]string{"quantization": "fp8", "kv_cache_dtype": "fp8"}, ""},
	} {
		if got := strings.Join(c.format.otherFormats(c.said), "; "); got != c.want {
			t.Errorf("%+v told %v: %q, want %q", c.format, c.said, got, c.want)
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

// The slots that llama-server has by itself share one cache, which must hold a longest
// request of each.
func TestContextOfTheUsualSlots(t *testing.T) {
	s := Settings{Kind: "llama-server", Model: "m"}
	got, err := s.Command(measure.Knobs{MaxModelLen: 1000, TensorParallel: 1}, 1)
	if err != nil || !strings.Contains(strings.Join(got.Args, " "), "-c 4000") {
		t.Errorf("%v, %v", got.Args, err)
	}
}

// Further options that a shell would drop are refused, as servers with and without would be the same.
func TestOptionsReachAShellsCommand(t *testing.T) {
	k := measure.Knobs{ExtraArgs: "--block-size 32"}
	for text, want := range map[string]bool{"serve": false, `serve "$@"`: true} {
		c, err := (&Settings{Kind: "command", Argv: []string{"sh", "-c", text, "engine"}}).Command(k, 1)
		if (err == nil) != want || want && !slices.Equal(c.Args, []string{"sh", "-c", text, "engine", "--block-size", "32"}) {
			t.Errorf("%s: %q, %v", text, c.Args, err)
		}
	}
	if _, err := (&Settings{Kind: "command", Argv: []string{"sh", "-c", "serve"}}).Command(measure.Knobs{}, 1); err != nil {
		t.Error(err)
	}
}

// Every knob is one that a kind of engine has an option for, or one that it lacks.
func TestSupported(t *testing.T) {
	for _, s := range Supported() {
		want := len(slices.DeleteFunc(slices.Clone(measure.KnobTable), func(n measure.Knob) bool { return n.Name == "gpu" || n.Format }))
		if s.Program == nil {
			want = 0
		}
		if len(s.Knobs)+len(s.Without) != want || s.Releases == "" {
			t.Errorf("%+v", s)
		}
	}
}

func TestEveryKindStartsACommand(t *testing.T) {
	for _, kind := range Kinds() {
		_, err := (&Settings{Kind: kind, Model: "m", Argv: []string{"x"}}).Command(measure.Knobs{}, 1)
		if (err != nil) != (kind == "attach") {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

func TestPlaceholders(t *testing.T) {
	k := measure.Knobs{MaxNumSeqs: 8}
	for _, c := range []struct{ word, want, err string }{
		{"{max_num_seqs}", "8", ""},
		{"--port={port},{prefix_caching}", "--port=1,false", ""},
		{`{"json": 1}`, `{"json": 1}`, ""},
		{"{tensor_parallel}", "1", ""},
		{"{weights}/{kv_cache}", "fp8/auto", ""},
		{"{max_model_len}", "", "the configuration leaves it open"},
		{"{served_name}", "", "has no value"},
		{"{colour}", "", "is not known"},
	} {
		s := Settings{Kind: "command", Argv: []string{c.word}, Format: Format{Weights: "fp8"}}
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

// A shell reads back exactly the words that were quoted. It is one for all of them, until it
// misreads one: starting it takes a millisecond.
func FuzzQuote(f *testing.F) {
	for _, s := range []string{"plain", "", "it's", `a "b" $c`, "x\ny", "~", "-n", `\`} {
		f.Add(s)
	}
	read := shell()
	f.Fuzz(func(t *testing.T, s string) {
		if strings.ContainsRune(s, 0) {
			t.Skip("no argument holds a zero byte")
		}
		if got, err := read(Quote(s)); err != nil || got != s+"\x00" {
			read = shell()
			t.Errorf("%q comes back as %q, %v", s, got, err)
		}
	})
}

// shell starts one that says the words it is given, each with a zero byte behind it. It ends
// with the test.
func shell() (read func(quoted string) (string, error)) {
	cmd := exec.Command("sh")
	in, out := must.Get(cmd.StdinPipe()), must.Get(cmd.StdoutPipe()).(*os.File)
	must.OK(cmd.Start())
	said := bufio.NewReader(out)
	return func(quoted string) (string, error) {
		_, err := fmt.Fprintf(in, "printf '%%s\\000' %s\n", quoted)
		late := out.SetReadDeadline(time.Now().Add(10 * time.Second)) // of a quotation without an end
		got, lost := said.ReadString(0)
		return got, cmp.Or(err, late, lost)
	}
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
