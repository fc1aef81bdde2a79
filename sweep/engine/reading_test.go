package engine

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/procfs"

	"planner/internal/endpoint"
	"planner/internal/evidence/enginetest"
	"planner/internal/evidence/must"
)

const vllmPage = `# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="a \"quoted\" {name}, b=c"} 3.0
vllm:num_requests_running{engine="1",model_name="x"} 4.0
vllm:kv_cache_usage_perc{engine="0",model_name="x"} 0.25
vllm:kv_cache_usage_perc{engine="1",model_name="x"} 0.5
vllm:generation_tokens_total{engine="0",model_name="x"} 1.5e+06
vllm:generation_tokens_created{engine="0",model_name="x"} 1.7e+09
vllm:time_to_first_token_seconds_bucket{engine="0",le="0.3",model_name="x"} 7.0
vllm:time_to_first_token_seconds_sum{engine="0",model_name="x"} 12.5
vllm:time_to_first_token_seconds_count{engine="0",model_name="x"} 10
this line is broken {
vllm:cache_config_info{block_size="128",enable_prefix_caching="True",num_gpu_blocks="2048"} 1.0
`

func TestReadMetrics(t *testing.T) {
	r := vllm.metrics.read([]byte(vllmPage), "")
	if r[runningRequests] != 7 || r[kvUsage] != 0.5 || r[outputTokens] != 1.5e6 || r[ttftSum] != 12.5 || r[ttftCount] != 10 {
		t.Errorf("%+v", r)
	}
	if !math.IsNaN(r[waitingRequests]) || !math.IsNaN(r[preemptions]) || !r.known() {
		t.Errorf("what is not on the page is known: %+v", r)
	}
	if other := llamaServer.metrics.read([]byte(vllmPage), ""); other.known() {
		t.Error("vLLM's page tells something of llama-server")
	}
	found := 0
	for series := range parseMetrics([]byte(vllmPage)) {
		switch {
		case strings.HasPrefix(series, "vllm:cache_config_info{"):
			found++
			if label(series, "num_gpu_blocks") != "2048" || label(series, "blocks") != "" || label(series, "block_size") != "128" {
				t.Errorf("labels of %q", series)
			}
		case label(series, "engine") == "0" && strings.Contains(series, "quoted"):
			found++
			if got := label(series, "model_name"); got != `a "quoted" {name}, b=c` {
				t.Errorf("label %q", got)
			}
		}
	}
	if found != 2 {
		t.Errorf("%d of 2 series found", found)
	}
}

// Whatever a page holds, reading it ends, and finds again what is put into it.
func FuzzMetrics(f *testing.F) {
	f.Add([]byte("# TYPE a gauge\na{b=\"c\",d=\"e, f=\\\"g\\\"\"} 1.5e3\na_bucket{le=\"1\"} 2\nb 4 1700000000\n"))
	f.Add([]byte("a{b=\"\\"))
	f.Add([]byte("a{b=}c"))
	f.Fuzz(func(t *testing.T, page []byte) {
		n := 0
		for s := range parseMetrics(page) {
			_ = label(s, "le")
			n++
		}
		more := 0
		for range parseMetrics(append(slices.Clone(page), "\nknown:name{a=\"b\"} 1\n"...)) {
			more++
		}
		if more != n+1 {
			t.Errorf("%d series, %d with one more", n, more)
		}
	})
}

// A page of several models tells of one, unless that has none.
func TestReadOneModel(t *testing.T) {
	page := []byte("vllm:num_requests_running{engine=\"0\",model_name=\"m\"} 2\nvllm:num_requests_running{engine=\"1\",model_name=\"m\"} 3\n" +
		"vllm:num_requests_running{engine=\"0\",model_name=\"other\"} 50\nvllm:num_requests_waiting 7\n")
	for model, want := range map[string]float64{"m": 5, "other": 50, "an alias": 55, "": 55} {
		if r := vllm.metrics.read(page, model); r[runningRequests] != want || r[waitingRequests] != 7 {
			t.Errorf("%q: %v running, want %v; %v waiting", model, r[runningRequests], want, r[waitingRequests])
		}
	}
}

func TestReadIterations(t *testing.T) {
	r := readIterations([]byte(`[{"numActiveRequests":1},{"numActiveRequests":5,"numQueuedRequests":2,` +
		`"kvCacheStats":{"maxNumBlocks":100,"usedNumBlocks":40,"reusedBlocks":30,"missedBlocks":90}}]`))
	if r[runningRequests] != 5 || r[waitingRequests] != 2 || r[kvUsage] != 0.4 || r[prefixHits] != 30 || r[prefixQueries] != 120 || !math.IsNaN(r[outputTokens]) {
		t.Errorf("%+v", r)
	}
	if r := readIterations([]byte(`[]`)); r[runningRequests] != 0 || !r.known() {
		t.Errorf("idle: %+v", r)
	}
	if r := readIterations([]byte(`<html>`)); r.known() {
		t.Error("a page that is no list tells something")
	}
}

// Means come from differences of sums and counts, shares from differences of
// counters, and what was not told is negative, as it is where counters went back.
func TestDifference(t *testing.T) {
	a, b := unread(), unread()
	a[ttftSum], a[ttftCount], b[ttftSum], b[ttftCount] = 10, 100, 16, 120
	a[prefixQueries], b[prefixQueries], a[prefixHits], b[prefixHits] = 1000, 3000, 100, 600
	a[outputTokens], b[outputTokens] = 500, 1500
	got := between(&a, &b, 10*time.Second)
	if got.TTFT != 300*time.Millisecond || got.FirstTokens != 20 || got.HitRate != 0.25 || got.OutputRate != 100 {
		t.Errorf("%+v", got)
	}
	if got.Queue != -1 || !math.IsNaN(got.Preemptions) || !math.IsNaN(got.PromptRate) {
		t.Errorf("what was not told: %+v", got)
	}
	if back := between(&b, &a, 10*time.Second); !cmp.Equal(back, unknownCounters, cmpopts.EquateNaNs()) {
		t.Errorf("counters went back: %+v", back)
	}
	b[prefixHits], b[preemptions], a[preemptions] = 3000, 1e308, 0
	if absurd := between(&a, &b, 10*time.Second); !math.IsNaN(absurd.HitRate) || !math.IsNaN(absurd.Preemptions) {
		t.Errorf("more hits than lookups, and more preemptions than can be: %+v", absurd)
	}
}

func TestChildren(t *testing.T) {
	is := func(p procfs.ProcStat) bool { return p.PID == os.Getpid() }
	if !slices.ContainsFunc(children(os.Getppid()), is) || slices.ContainsFunc(children(os.Getpid()), is) {
		t.Error("this process is not among the children of its parent, or among its own")
	}
}

// The log keeps its beginning and its end.
func TestCopyLog(t *testing.T) {
	var in, out bytes.Buffer
	for i := range 100000 {
		fmt.Fprintf(&in, "line %d\n", i)
	}
	whole := in.String()
	copyLog(&out, strings.NewReader(whole), 1000)
	got := out.String()
	if !strings.HasPrefix(got, whole[:1000]) || !strings.HasSuffix(got, whole[len(whole)-tailKept:]) {
		t.Error("beginning or end is missing")
	}
	if len(got) > 1000+tailKept+100 || !strings.Contains(got, "bytes of the log were not kept") {
		t.Errorf("%d bytes were kept", len(got))
	}
	out.Reset()
	copyLog(&out, strings.NewReader(whole), 1<<30)
	if out.String() != whole {
		t.Error("a log below the limit was changed")
	}
	copyLog(fullDisk{}, strings.NewReader(whole), 1<<30)
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, os.ErrInvalid }

func TestReadNvidia(t *testing.T) {
	gpus := parseNvidia([]byte("0, NVIDIA H100 80GB HBM3, 550.54.15, 81559, 40960, 87, 512.30, 1755, 0x0000000000000004\n" +
		"1, NVIDIA H100 80GB HBM3, 550.54.15, [N/A], 10, [N/A], [Not Supported], 300, 0x0000000000000001\nNo devices were found\n"))
	want := []GPUSample{
		{Index: "0", Name: "NVIDIA H100 80GB HBM3", Driver: "550.54.15", TotalMemory: 81559 << 20, Memory: 40 << 30, Busy: 0.87, Watts: 512.3, ClockMHz: 1755,
			Throttled: []string{"power cap"}},
		{Index: "1", Name: "NVIDIA H100 80GB HBM3", Driver: "550.54.15", TotalMemory: math.NaN(), Memory: 10 << 20, Busy: math.NaN(), Watts: math.NaN(), ClockMHz: 300},
	}
	if diff := cmp.Diff(want, gpus, cmpopts.EquateNaNs()); diff != "" {
		t.Error(diff)
	}
}

func TestSumGPU(t *testing.T) {
	u := sumGPU([]GPUSample{
		{Index: "0", Busy: 0.5, Memory: 1e9, Watts: 300, ClockMHz: 1500, Throttled: []string{"thermal (hardware)"}},
		{Index: "1", Busy: 1, Memory: 2e9, Watts: 500, ClockMHz: 1900, Throttled: []string{"power cap"}},
		{Index: "0", Busy: 0.7, Memory: 3e9, Watts: math.NaN(), ClockMHz: 1700},
		{Index: "1", Busy: 1, Memory: 2e9, Watts: 400, ClockMHz: 1900},
	})
	if u.GPUs != 2 || u.Samples != 2 || u.Busy != 0.8 || u.PeakMemory != 3e9 || u.Watts != 800 || u.LowestMHz != 1500 ||
		!slices.Equal(u.Throttled, []string{"power cap", "thermal (hardware)"}) {
		t.Errorf("%+v", u)
	}
	if sumGPU(nil) != nil {
		t.Error("no sample sums up to something")
	}
}

func TestReadROCm(t *testing.T) {
	all := parseROCm([]byte("device,Average Graphics Package Power (W),sclk clock speed:,sclk clock level:,GPU use (%),VRAM Total Memory (B),VRAM Total Used Memory (B),Card Series,Card SKU\n" +
		"card0,140.0,(1720Mhz),1,93,68702699520,1000,AMD Instinct MI300X,M3000100\ncard1,N/A,(500Mhz),0,0,68702699520,2000,AMD Instinct MI300X,M3000100\n\n" +
		"device,Driver version\nsystem,6.7.0\n"))
	want := []GPUSample{
		{Index: "card0", Name: "AMD Instinct MI300X", Driver: "6.7.0", TotalMemory: 68702699520, Memory: 1000, Busy: 0.93, Watts: 140, ClockMHz: 1720},
		{Index: "card1", Name: "AMD Instinct MI300X", Driver: "6.7.0", TotalMemory: 68702699520, Memory: 2000, Busy: 0, Watts: math.NaN(), ClockMHz: 500},
	}
	if diff := cmp.Diff(want, all, cmpopts.EquateNaNs()); diff != "" {
		t.Error(diff)
	}
	if parseROCm([]byte("ERROR: no GPU")) != nil {
		t.Error("a message is taken for a GPU")
	}
}

// An engine that counts no tokens of prompts is idle all the same while its count of
// generated ones stands.
func TestIdleByOneCounter(t *testing.T) {
	page := "vllm:num_requests_running 1\nvllm:generation_tokens_total 7\n"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, page) }))
	defer server.Close()
	long := time.Now().Add(-time.Hour)
	s := &Sampling{engine: &Engine{URL: server.URL, adapter: &vllm, settings: &Settings{}}, names: vllm.metrics, started: long, moved: long}
	for _, c := range []struct {
		page string
		idle bool
	}{{page, true}, {page, true}, {strings.Replace(page, "7", "8", 1), false}} {
		page = c.page
		s.read(t.Context())
		if idle, known := s.Idle(); !known || idle > time.Minute != c.idle {
			t.Errorf("after %q: idle for %v, %t", page, idle, known)
		}
	}
}

// A sampling reads the engine and the tool of the GPU once a second.
func TestSampling(t *testing.T) {
	bin := t.TempDir()
	script := "#!/bin/sh\ncase \"$*\" in *--loop=1*) ;; *) exit 1;; esac\nwhile :; do echo '0, NVIDIA H100, 550, 81559, 1024, 50, 100.0, 1400, 0x0'; sleep 0.2; done\n"
	must.OK(os.WriteFile(filepath.Join(bin, "nvidia-smi"), []byte(script), 0o755))
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	s, mark := fakes(t, "")
	var told []string
	s.Launching = func(c Command) { told = append(told, c.String()) }
	e := must.Get(Start(t.Context(), s, someKnobs(), "0001", nil))
	if len(told) != 1 || told[0] != e.Command.String() {
		t.Errorf("told of %q before the start of %q", told, e.Command)
	}
	sampling := e.Sample(t.Context())
	time.Sleep(1200 * time.Millisecond)
	if idle, ok := sampling.Idle(); !ok || idle < time.Second {
		t.Errorf("an idle engine has been idle for %v, %t", idle, ok)
	}
	said := sampling.Stop(t.Context())
	if len(said.Snapshots) != 3 || said.Missed != 0 || said.PeakKV != 0 || said.Preemptions != 0 || said.TTFT != -1 || said.OutputRate != 0 {
		t.Errorf("%+v", said)
	}
	if said.GPU == nil || said.GPU.Busy != 0.5 || said.GPU.Watts != 100 || said.GPU.Samples < 3 {
		t.Errorf("GPU %+v", said.GPU)
	}
	if n := len(said.GPUs); n < 3 || said.GPUs[n-1].At < 500*time.Millisecond || said.GPUs[0].Memory != 1<<30 || said.GPUs[0].ClockMHz != 1400 {
		t.Errorf("GPU samples %+v", said.GPUs)
	}
	if err := e.Stop(0); err != nil {
		t.Error(err)
	}
	enginetest.NothingLeft(t, mark, 0)
}

// A tool of the GPU that runs behind a script ends with the sampling, too.
func TestToolBehindAScript(t *testing.T) {
	bin := t.TempDir()
	script := "#!/bin/sh\nsh -c 'while :; do echo 0, NVIDIA H100, 550, 81559, 1024, 50, 100.0, 1400, 0x0; sleep 0.1; done'\nexit\n"
	must.OK(os.WriteFile(filepath.Join(bin, "nvidia-smi"), []byte(script), 0o755))
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	ctx, cancel := context.WithCancel(t.Context())
	s := &Sampling{engine: &Engine{settings: &Settings{}}, cancel: cancel}
	s.watchGPUs(ctx)
	time.Sleep(500 * time.Millisecond)
	cancel()
	over := make(chan struct{})
	go func() { s.over.Wait(); close(over) }()
	select {
	case <-over:
	case <-time.After(5 * time.Second):
		t.Error("the sampling does not end")
	}
}

// A GPU that keeps memory after its engine ended is told of, one that gives it
// back late is not.
func TestMemoryComesBack(t *testing.T) {
	bin := t.TempDir()
	// It tells 1024 MiB, then 9216 MiB twice, then 1100 MiB.
	script := "#!/bin/sh\nn=$(cat " + bin + "/n 2>/dev/null || echo 0)\necho $((n+1)) > " + bin + "/n\n" +
		"case $n in 0) m=1024;; 1|2) m=9216;; *) m=1100;; esac\necho \"0, NVIDIA H100, 550, 81559, $m, 0, 50.0, 300, 0x1\"\n"
	must.OK(os.WriteFile(filepath.Join(bin, "nvidia-smi"), []byte(script), 0o755))
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	before := memoryInUse(nil)
	if !slices.Equal(before, []float64{1 << 30}) {
		t.Fatalf("before: %v", before)
	}
	if err := memoryBack(nil, before, 0); err == nil || !strings.Contains(err.Error(), "8.0 GiB more") {
		t.Errorf("memory is kept: %v", err)
	}
	if err := memoryBack(nil, before, 5*time.Second); err != nil {
		t.Errorf("memory comes back: %v", err)
	}
}

// Where there is an AMD tool and no other, it is asked again and again.
func TestPollROCm(t *testing.T) {
	bin := t.TempDir()
	script := "#!/bin/sh\nprintf 'device,GPU use (%%),sclk clock speed:\\ncard0,40,(1000Mhz)\\n'\n"
	must.OK(os.WriteFile(filepath.Join(bin, "rocm-smi"), []byte(script), 0o755))
	t.Setenv("PATH", bin)
	ctx, cancel := context.WithCancel(t.Context())
	s := &Sampling{engine: &Engine{settings: &Settings{}}, cancel: cancel}
	s.watchGPUs(ctx)
	time.Sleep(300 * time.Millisecond)
	cancel()
	s.over.Wait()
	if u := sumGPU(s.metrics.GPUs); u == nil || u.Busy != 0.4 || u.ClockMHz != 1000 || !math.IsNaN(u.Watts) {
		t.Errorf("%+v", u)
	}
	t.Setenv("PATH", t.TempDir())
	if tool, _, _ := GPUs(t.Context(), nil); tool != "" || len(memoryInUse(nil)) > 0 {
		t.Error("a tool is found where there is none")
	}
}

func TestClosed(t *testing.T) {
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))
	at := "http://" + l.Addr().String()
	if closed(at, 0) {
		t.Error("a port that somebody listens on is closed")
	}
	l.Close()
	if !closed(at, 0) {
		t.Error("a port that nobody listens on is open")
	}
}

// The owner of the first model says which engine it is; where it does not, nothing is
// guessed.
func TestDialect(t *testing.T) {
	status, body := http.StatusOK, ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}))
	defer server.Close()
	dialect := func() string {
		q := (&Engine{URL: server.URL, settings: &Settings{}}).query(t.Context())
		q.describe(&lmdeploy)
		return factsOf(&attach, q.facts, nil, someKnobs(), Format{}).Dialect
	}
	for said, want := range map[string]string{
		`{"data":[{"id":"m","owned_by":"vllm"}]}`:         "vllm",
		`{"data":[{"id":"m","owned_by":"SGLang"}]}`:       "sglang",
		`{"data":[{"id":"m","owned_by":"llamacpp"}]}`:     "llama-server",
		`{"data":[{"id":"m","owned_by":"tensorrt_llm"}]}`: "trtllm",
		`{"data":[{"id":"m","owned_by":"me"}]}`:           "",
		`{"data":[{"id":"m"}]}`:                           "",
		`{"data":[]}`:                                     "",
		`[]`:                                              "",
	} {
		if body = said; dialect() != want {
			t.Errorf("%s: %q, want %q", said, dialect(), want)
		}
	}
	if status, body = http.StatusNotFound, "{}"; dialect() != "" {
		t.Error("a dialect without a list")
	}
}

// Nothing that planner asks a server goes where a redirect points to.
func TestRedirect(t *testing.T) {
	gone := 0
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { gone++ }))
	defer elsewhere.Close()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, elsewhere.URL+"/v1/models?key=secret", http.StatusFound)
	}))
	defer server.Close()
	e := &Engine{URL: server.URL, settings: &Settings{}}
	_, err := e.call(t.Context(), http.MethodGet, "/v1/models", nil, probeLimit)
	if told := "a redirect to " + elsewhere.URL + "/v1/models"; err == nil || endpoint.StatusOf(err) != http.StatusFound || !strings.Contains(err.Error(), told) || gone > 0 {
		t.Errorf("%v, %d requests went there", err, gone)
	}
}
