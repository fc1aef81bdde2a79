// Package enginetest is an engine for tests: a real process that speaks vLLM's
// protocol on a real port, and misbehaves in a way that its arguments name.
package enginetest

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Word is the argument behind a test binary's name that makes it the engine.
const Word = "fake-engine"

// Main runs the engine if the process was started as one, and does not return
// then. A test binary calls it first thing in TestMain.
func Main() {
	if len(os.Args) > 1 && os.Args[1] == Word {
		os.Exit(run(os.Args[2:], os.Stdout))
	}
}

// fake is the engine.
type fake struct {
	out       io.Writer
	misbehave string
	seqs      int
	model     string
	prefix    bool
	// formats are what it says that it serves in.
	formats struct{ weights, kv string }
	// token is the time that a token takes.
	token time.Duration
	// state is a path for what must survive a restart.
	state string
	began time.Time
	// slots bounds how many requests run.
	slots chan struct{}

	counts

	mu sync.Mutex
	// firsts counts first tokens and sums the times to them; guarded by mu.
	firsts  int64
	waited  time.Duration
	stalled bool
}

// counts are requests, and tokens of prompts and outputs.
type counts struct {
	requests, running, waiting atomic.Int64
	prompted, generated        atomic.Int64
}

// run is the engine's main function. It takes vLLM's options as far as it knows
// them and some of its own.
func run(args []string, out io.Writer) int {
	f := &fake{out: out, began: time.Now()}
	flags := flag.NewFlagSet("fake", flag.ContinueOnError)
	flags.SetOutput(out)
	host := flags.String("host", "127.0.0.1", "")
	port := flags.Int("port", 8000, "")
	flags.IntVar(&f.seqs, "max-num-seqs", 16, "")
	flags.StringVar(&f.model, "served-model-name", "fake", "")
	flags.BoolVar(&f.prefix, "enable-prefix-caching", false, "")
	flags.Bool("no-enable-prefix-caching", false, "")
	flags.Int("max-num-batched-tokens", 512, "")
	flags.Int("max-model-len", 4096, "")
	flags.Int("num-gpu-blocks-override", 0, "")
	flags.Int("tensor-parallel-size", 1, "")
	flags.Float64("gpu-memory-utilization", 0.9, "")
	flags.StringVar(&f.formats.weights, "quantization", "", "")
	flags.StringVar(&f.formats.kv, "kv-cache-dtype", "auto", "")
	flags.String("dtype", "auto", "")
	flags.StringVar(&f.misbehave, "misbehave", "", "")
	when := flags.Int("when-seqs", 0, "misbehave only with so many sequences")
	flags.DurationVar(&f.token, "token", time.Millisecond, "")
	flags.StringVar(&f.state, "state", "", "")
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		args = args[1:] // the model
	}
	if err := flags.Parse(args); err != nil {
		fmt.Fprintf(out, "fake: error: %v\n", err)
		return 2
	}
	if *when != 0 && *when != f.seqs {
		f.misbehave = ""
	}
	f.slots = make(chan struct{}, f.seqs)
	if code, over := f.start(); over {
		return code
	}
	l, err := net.Listen("tcp", fmt.Sprintf("%s:%d", *host, *port))
	if err != nil {
		f.say("[Errno 98] error while attempting to bind on address: address already in use")
		return 1
	}
	f.say("Application startup complete.")
	if err := http.Serve(l, f.handler()); err != nil {
		f.say("%v", err)
	}
	return 1
}

func (f *fake) say(format string, args ...any) { fmt.Fprintf(f.out, format+"\n", args...) }

func (f *fake) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health", f.health)
	mux.HandleFunc("GET /version", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"version":"0.0.1"}`) })
	mux.HandleFunc("GET /v1/models", func(w http.ResponseWriter, _ *http.Request) {
		name := f.model
		if f.misbehave == "wrong-model" {
			name = "another"
		}
		fmt.Fprintf(w, `{"object":"list","data":[{"id":%q,"owned_by":"vllm","max_model_len":4096}]}`, name)
	})
	mux.HandleFunc("POST /reset_prefix_cache", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"success":%t}`, f.misbehave != "no-reset")
	})
	mux.HandleFunc("GET /server_info", func(w http.ResponseWriter, _ *http.Request) {
		weights := "null"
		if f.formats.weights != "" {
			weights = strconv.Quote(f.formats.weights)
		}
		fmt.Fprintf(w, `{"vllm_config":{"scheduler_config":{"max_num_seqs":%d,"policy":"fcfs"},"model_config":{"quantization":%s},"cache_config":{"cache_dtype":%q}}}`,
			f.seqs, weights, f.formats.kv)
	})
	mux.HandleFunc("GET /metrics", f.metrics)
	mux.HandleFunc("POST /v1/completions", f.completions)
	return mux
}

func (f *fake) health(w http.ResponseWriter, r *http.Request) {
	switch f.misbehave {
	case "never-ready", "never-ready-chatty":
		w.WriteHeader(http.StatusServiceUnavailable)
	case "mute-health":
		<-r.Context().Done()
	case "broken-health":
		if f.requests.Load() > 10 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	case "slow-start":
		if time.Since(f.began) < 3*time.Second {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	case "dies-when-ready":
		go func() {
			time.Sleep(50 * time.Millisecond)
			f.say("RuntimeError: it was all too much")
			os.Exit(1)
		}()
	}
}

// metrics is a page in vLLM's names.
func (f *fake) metrics(w http.ResponseWriter, _ *http.Request) {
	f.mu.Lock()
	firsts, waited := f.firsts, f.waited
	f.mu.Unlock()
	caching := f.prefix
	if f.misbehave == "changes-flag" {
		caching = !caching
	}
	fmt.Fprintf(w, "# TYPE vllm:num_requests_running gauge\n")
	label := `{engine="0",model_name="` + f.model + `"}`
	for _, m := range []struct {
		name  string
		value float64
	}{
		{"num_requests_running", float64(f.running.Load())},
		{"num_requests_waiting", float64(f.waiting.Load())},
		{"kv_cache_usage_perc", float64(f.running.Load()) / float64(2*f.seqs)},
		{"prompt_tokens_total", float64(f.prompted.Load())},
		{"generation_tokens_total", float64(f.generated.Load())},
		{"prefix_cache_queries_total", float64(f.prompted.Load())},
		{"prefix_cache_hits_total", float64(f.prompted.Load() / 4)},
		{"num_preemptions_total", 0},
		{"time_to_first_token_seconds_sum", waited.Seconds()},
		{"time_to_first_token_seconds_count", float64(firsts)},
		{"request_queue_time_seconds_sum", 0},
		{"request_queue_time_seconds_count", float64(firsts)},
	} {
		fmt.Fprintf(w, "vllm:%s%s %g\n", m.name, label, m.value)
	}
	fmt.Fprintf(w, "vllm:cache_config_info{block_size=\"16\",enable_prefix_caching=\"%t\",num_gpu_blocks=\"640\"} 1.0\n", caching)
}

// request is what of a completion request matters here.
type request struct {
	Prompt    json.RawMessage `json:"prompt"`
	MaxTokens int             `json:"max_tokens"`
	Stream    bool            `json:"stream"`
}

func (r *request) promptTokens() int {
	var ids []int
	if json.Unmarshal(r.Prompt, &ids) == nil {
		return len(ids)
	}
	return len(strings.Fields(string(r.Prompt)))
}
