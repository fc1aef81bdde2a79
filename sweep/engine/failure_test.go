package engine

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"

	"planner/internal/endpoint"
	"planner/internal/printable"
	"planner/sweep/measure"
)

// classify reads a whole log at once.
func classify(log string, exit *syscall.WaitStatus, a *adapter) *Failure {
	s := newLogState(a)
	return s.classify(log, exit)
}

func (s *logState) classify(log string, exit *syscall.WaitStatus) *Failure {
	for line := range strings.Lines(log) {
		s.add([]byte(line))
	}
	return s.failure(someKnobs(), exit)
}

// exited and signalled are statuses of a process that ended.
func exited(code int) *syscall.WaitStatus {
	status := syscall.WaitStatus(code & 0xff << 8)
	return &status
}

func signalled(signal int) *syscall.WaitStatus {
	status := syscall.WaitStatus(signal)
	return &status
}

// inStage is a log in which a stage is under way.
func inStage(name string) logState {
	s := newLogState(&vllm)
	s.stage = slices.Index(stageOrder, name)
	return s
}

// Every line that releases of vLLM and other engines end with finds its class,
// however many wrappers stand around it.
func TestClasses(t *testing.T) {
	for _, c := range []struct {
		line  string
		class Class
	}{
		{"ValueError: Free memory on device (10.2/79.11 GiB) on startup is less than desired GPU memory utilization (0.9, 71.2 GiB).", "mem.busy"},
		{"ValueError: Free memory on device cuda:0 (10.2/79.11 GiB) on startup is less than desired GPU memory utilization (0.92, 72.8 GiB).", "mem.busy"},
		{"ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.", "mem.no_kv"},
		{"ValueError: To serve at least one request with the models's max seq len (131072), (16.00 GiB KV cache is needed, which is larger than the available KV cache memory (7.10 GiB). the estimated maximum model length is 58160.", "mem.len"},
		{"ValueError: Cannot auto-fit max_model_len: not enough GPU memory", "mem.autofit"},
		{"ValueError: Failed to load model - not enough GPU memory. Try lowering --gpu-memory-utilization", "mem.weights"},
		{"RuntimeError: CUDA out of memory occurred when warming up sampler with 1024 dummy requests. Please try lowering `max_num_seqs`", "mem.sampler"},
		{"AssertionError: Error in memory profiling. Initial free memory 10.0 GiB, current free memory 12.0 GiB.", "mem.race"},
		{"ValueError: Available memory on node 0 (9.1/23.5 GiB) on startup is less than desired CPU memory utilization (0.98, 23.0 GiB).", "mem.cpu"},
		{"ValueError: User-specified max_model_len (8192) is greater than the derived max_model_len (max_position_embeddings=4096 or model_max_length=None in model's config.json).", "args.len"},
		{"ValueError: max_num_batched_tokens (2048) is smaller than max_model_len (4096). This effectively limits the maximum sequence length", "args.tokens"},
		{"ValueError: max_num_batched_tokens (128) must be greater than or equal to max_num_seqs (256).", "args.seqs"},
		{"ValueError: Total number of attention heads (28) must be divisible by tensor parallel size (8).", "args.tp"},
		{"ValueError: Quantization method specified in the model config (awq) does not match the quantization method specified in the `quantization` argument (gptq).", "args.quant"},
		{"ValueError: The model type 'gemma3' does not support float16. Reason: numerical instability", "args.dtype"},
		{"NotImplementedError: Concurrent Partial Prefill is not supported.", "args.unsupported"},
		{"OSError: [Errno 98] Address already in use", portTaken},
		{"srv    main: couldn't bind HTTP server socket, hostname: 127.0.0.1, port: 8080", portTaken},
		{"OSError: You are trying to access a gated repo.", "net.hub"},
		{"TimeoutError: Timed out waiting for engine core processes to start.", Slow},
		{"RuntimeError: Not enough memory. Please try to increase --mem-fraction-static. Current value: self.server_args.mem_fraction_static=0.5", "mem.no_kv"},
		{"OSError: [Errno 28] No space left on device", "disk.full"},
		{"llama_model_load: error loading model: tensor 'blk.0' not found", "model.load"},
		{"error: invalid argument: --frobnicate", "args.parse"},
		{"pydantic_core._pydantic_core.ValidationError: 1 validation error for SchedulerConfig", "args.parse"},
	} {
		log := "INFO Starting to load model x\nModel loading took 1 GiB memory and 2 seconds\nERROR EngineCore failed to start.\n" +
			"Traceback (most recent call last):\n(EngineCore pid=7) \x1b[31mERROR\x1b[0m " + c.line + "\n" +
			"RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}\nNotImplementedError: on the way out\n"
		f := classify(log, exited(1), &vllm)
		if f.Class != c.class {
			t.Errorf("class %s, want %s: %s", f.Class, c.class, c.line)
		}
		if want := printable.Line(c.line, mostWords); !strings.Contains(f.Cause, want[:min(40, len(want))]) {
			t.Errorf("cause %q, want the line %q", f.Cause, c.line)
		}
	}
}

// The stage of a failed allocation decides what it says.
func TestOutOfMemoryByStage(t *testing.T) {
	const oom = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
	stages := []string{"Starting to load model x\n", "Model loading took 1 GiB memory and 2 seconds\n", "GPU KV cache size: 100 tokens\n"}
	for n, want := range []Class{"mem.weights", "mem.weights", memOOM, memOOM} {
		f := classify(strings.Join(stages[:n], "")+oom, exited(1), &vllm)
		if f.Class != want {
			t.Errorf("behind %d stages: %s in %s, want %s", n, f.Class, f.Stage, want)
		}
		lower := someKnobs()
		lower.GPUMemoryUtilization = 0.5
		// Less for the cache helps only where the cache was there already.
		if got := f.Condemns(lower); got != (n < 3) {
			t.Errorf("behind %d stages: condemns a lower share: %t", n, got)
		}
	}
}

// How a process ended without a known line decides.
func TestClassesWithoutACause(t *testing.T) {
	for _, c := range []struct {
		log   string
		exit  *syscall.WaitStatus
		class Class
		cause string
	}{
		{"all is well\n", signalled(9), killed, "all is well"},
		{"all is well\n", exited(137), killed, "all is well"},
		{"all is well\n", signalled(11), crashed, "all is well"},
		{"all is well\n", exited(0), ended, "all is well"},
		{"KeyError: 'x'\nbye\n", exited(1), unknownCause, "KeyError: 'x'"},
		{"vllm serve: error: argument --max-num-seqs: invalid int value\n", exited(2), "args.parse", "invalid int value"},
		{"request failed with error: no\nbye\n", exited(1), unknownCause, "error: no"},
		// As vLLM 0.26 ends: the last exception but for that of a process that only watched, and no line of source code.
		{"(EngineCore pid=8) ERROR 11-27 13:48:17 [core.py:1330]     raise ValueError(\n(EngineCore pid=8) ModuleNotFoundError: No module named 'flashinfer'\n" +
			"(APIServer pid=7) Traceback (most recent call last):\n(APIServer pid=7)     raise RuntimeError(\n    raise SystemError(\n" +
			"(APIServer pid=7) RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}\n", exited(1), unknownCause, "No module named 'flashinfer'"},
		{"", nil, unknownCause, ""},
	} {
		f := classify(c.log, c.exit, &vllm)
		if f.Class != c.class || !strings.Contains(f.Cause, c.cause) {
			t.Errorf("%q, %v: %s, %q", c.log, c.exit, f.Class, f.Cause)
		}
	}
}

// A message about a request does not explain why a serving engine ended.
func TestRequestErrorsAreNoCause(t *testing.T) {
	s := inStage(stageServing)
	s.add([]byte("1 validation error for CompletionRequest"))
	s.add([]byte("RuntimeError: the real one"))
	if f := s.failure(someKnobs(), exited(1)); f.Class != unknownCause || !strings.Contains(f.Cause, "the real one") {
		t.Errorf("%s: %s", f.Class, f.Cause)
	}
}

// A failure condemns what needs no less, and nothing else.
func TestCondemns(t *testing.T) {
	base := measure.Knobs{MaxNumSeqs: 128, MaxNumBatchedTokens: 4096, GPUMemoryUtilization: 0.9, MaxModelLen: 8192, TensorParallel: 2}
	with := func(change func(*measure.Knobs)) measure.Knobs {
		k := base
		change(&k)
		return k
	}
	more := with(func(k *measure.Knobs) { k.MaxNumSeqs, k.MaxNumBatchedTokens = 256, 8192 })
	less := with(func(k *measure.Knobs) { k.MaxNumSeqs, k.MaxNumBatchedTokens = 64, 2048 })
	higher := with(func(k *measure.Knobs) { k.GPUMemoryUtilization = 0.95 })
	lower := with(func(k *measure.Knobs) { k.GPUMemoryUtilization = 0.85 })
	shorter := with(func(k *measure.Knobs) { k.MaxModelLen = 4096 })
	shortest := with(func(k *measure.Knobs) { k.MaxModelLen = 2048 })
	wider := with(func(k *measure.Knobs) { k.TensorParallel = 4 })
	open := with(func(k *measure.Knobs) { k.MaxNumSeqs = 0 })
	others := []measure.Knobs{with(func(k *measure.Knobs) { k.GPU = "L4" }), with(func(k *measure.Knobs) { k.Weights = "fp8" }),
		with(func(k *measure.Knobs) { k.ExpertParallel = true }), with(func(k *measure.Knobs) { k.ExtraArgs = "--block-size 32" })}
	for _, c := range []struct {
		line string
		yes  []measure.Knobs
		no   []measure.Knobs
	}{
		{"No available memory for the cache blocks", []measure.Knobs{base, more, lower, shorter}, []measure.Knobs{less, higher, wider, open}},
		{"Free memory on device cuda:0 is less than desired GPU memory utilization", []measure.Knobs{base, more, less, higher, open}, []measure.Knobs{lower, wider}},
		{"Failed to load model - not enough GPU memory", []measure.Knobs{base, more, less, higher, lower, open}, []measure.Knobs{wider}},
		{"CUDA out of memory occurred when warming up sampler with 128", []measure.Knobs{base, more, higher}, []measure.Knobs{less, lower, wider, open}},
		// 3072 is a bound: what is longer fails too, though shorter than what was tried.
		{"To serve at least one request with the model's max seq len (8192), the estimated maximum model length is 3,072.",
			[]measure.Knobs{base, more, lower, shorter}, []measure.Knobs{shortest, less, higher, wider}},
		{"User-specified max_model_len (8192) is greater than the derived max_model_len (max_position_embeddings=3072 or x)",
			[]measure.Knobs{base, more, less, lower, higher, shorter}, []measure.Knobs{shortest, wider}},
		{"something unheard of", []measure.Knobs{base}, []measure.Knobs{more, less, higher, lower, shorter, wider, open}},
	} {
		s := inStage(stageProfile)
		s.add([]byte(c.line))
		f := s.failure(base, exited(1))
		for _, k := range c.yes {
			if !f.Condemns(k) {
				t.Errorf("%q does not condemn %+v", c.line, k)
			}
		}
		for _, k := range append(c.no, others...) {
			if f.Condemns(k) {
				t.Errorf("%q condemns %+v", c.line, k)
			}
		}
	}
}

// No line, however odd, breaks the reading of a log.
func FuzzLog(f *testing.F) {
	f.Add("GPU KV cache size: 1,000 tokens\r\nerror: x\n", 0)
	f.Add("the estimated maximum model length is 9,,,9", 2)
	begin := newLogState(&vllm)
	f.Fuzz(func(t *testing.T, log string, code int) {
		s := begin
		s.facts = map[string]string{}
		if got := s.classify(log, exited(code)); got == nil || got.Class == "" {
			t.Errorf("%q: %v", log, got)
		}
	})
}

// A failure tells all that is known of it in one line.
func TestFailureInWords(t *testing.T) {
	f := classify("GPU KV cache size: 1 tokens\nthe model: To serve at least one request with the model's max seq len (9), the estimated maximum model length is 3,072.\n",
		exited(1), &vllm)
	const want = "engine failed (mem.len) in stage graphs, exit status 1: the model: To serve at least one request with the model's " +
		"max seq len (9), the estimated maximum model length is 3,072. (a max_model_len of 3072 would fit)"
	if f.Error() != want {
		t.Errorf("%s", f)
	}
	if f.Retry {
		t.Error("it is worth another try")
	}
	if busy := classify("OSError: address already in use\n", exited(1), &vllm); !busy.Retry {
		t.Error("a port that was taken is not worth another try")
	}
	if got := exitText(*signalled(9)); got != "killed by signal 9 (killed)" {
		t.Error(got)
	}
}

// What an engine that served does to a request for one token says how it broke down.
func TestBroken(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  error
		want Class
	}{
		{fmt.Errorf("one token: %w", context.DeadlineExceeded), hung},
		{fmt.Errorf("one token: %w", syscall.ECONNREFUSED), unreachable},
		{fmt.Errorf("one token: %w", io.EOF), failing},
		{&endpoint.StatusError{Status: http.StatusUnauthorized, Words: "who"}, denied},
		{&endpoint.StatusError{Status: http.StatusBadGateway, Words: "no"}, failing},
	} {
		if f := (&Engine{}).Broken(c.err); f.Class != c.want || f.Stage != stageServing || !strings.Contains(f.Cause, c.err.Error()) {
			t.Errorf("%v: %v, want %s", c.err, f, c.want)
		}
	}
}
