package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"planner/internal/endpoint"
	"planner/internal/evidence/enginetest"
	"planner/internal/evidence/must"
)

// An engine is started, says what it runs with, and is stopped without a trace.
func TestLife(t *testing.T) {
	t.Parallel()
	s, mark := fakes(t, "")
	var lines []string
	e := must.Get(Start(t.Context(), s, someKnobs(), "0001", func(_, line string, _ time.Duration) { lines = append(lines, line) }))
	if f := e.Facts; f.Version != "0.0.1" || f.Model != "fake" || f.KVBlocks != 640 || f.BlockTokens != 16 || f.MaxModelLen != 4096 || len(f.Changed) != 0 {
		t.Errorf("facts %+v", f)
	}
	if !slices.Contains(e.Facts.Flags, Flag{"max_num_seqs", "16"}) || !slices.Contains(e.Facts.Other, Flag{"scheduling_policy", "fcfs"}) {
		t.Errorf("flags %v, said %v", e.Facts.Flags, e.Facts.Other)
	}
	var names []string
	sum := time.Duration(0)
	for _, stage := range e.Stages {
		names = append(names, stage.Name)
		sum += stage.Took
	}
	if !slices.Equal(names, stageOrder[:5]) || sum > e.Cold {
		t.Errorf("stages %v of %v, cold start %v", names, sum, e.Cold)
	}
	if len(lines) == 0 {
		t.Error("no progress was told")
	}
	if err := e.Check(t.Context(), time.Second); err != nil {
		t.Error(err)
	}
	if can, err := e.ResetCache(t.Context()); !can || err != nil {
		t.Errorf("reset: %t, %v", can, err)
	}
	if e.Failure() != nil {
		t.Errorf("failure of an engine that runs: %v", e.Failure())
	}
	if rtt := e.RoundTrip(t.Context()); rtt <= 0 || rtt > time.Second {
		t.Errorf("round trip %v", rtt)
	}
	if own, nice := niceOf(os.Getpid()), niceOf(e.process.pid); runtime.GOOS == "linux" && nice != min(own+10, 19) {
		t.Errorf("priority %d beside a load generator of %d", nice, own)
	}
	said, err := os.ReadFile(strings.TrimSuffix(e.Log, ".log") + ".cmd")
	if err != nil || !strings.Contains(string(said), "--max-num-seqs 16 --max-num-batched-tokens 512") {
		t.Errorf("stored command line %q, %v", said, err)
	}
	if err := e.Stop(0); err != nil {
		t.Error(err)
	}
	if err := e.Stop(0); err != nil {
		t.Errorf("stopped twice: %v", err)
	}
	enginetest.NothingLeft(t, mark, 0)
}

// niceOf is the priority of a process as Linux tells it, 0 elsewhere.
func niceOf(pid int) int {
	line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	fields := strings.Fields(string(line[bytes.LastIndexByte(line, ')')+1:]))
	if len(fields) < 17 {
		return 0
	}
	return must.Get(strconv.Atoi(fields[16]))
}

// Every way of not starting ends in its class, quotes the line that tells the
// cause, and leaves nothing.
func TestFailuresToStart(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		misbehave string
		class     Class
		cause     string
	}{
		{"exits-0", ended, "Graph capturing finished in 1 secs, took 0.1 GiB; an engine ends with its command"},
		{"exits-1", unknownCause, "something that nobody has seen before"},
		{"bad-option", "args.parse", "unrecognized arguments: --misbehave"},
		{"killed", killed, ""},
		{"crashes", crashed, ""},
		{"no-kv", "mem.no_kv", "No available memory for the cache blocks"},
		{"too-long", "mem.len", "estimated maximum model length is 3,072"},
		{"busy", "mem.busy", "is less than desired GPU memory utilization"},
		{"oom", memOOM, "Tried to allocate 2.00 GiB"},
		{"dies-when-ready", unknownCause, "it was all too much"},
		{"mute", mute, "a request for one token failed"},
		{"no-choices", mute, "not today"},
		{"wrong-model", wrongModel, `no model is called "fake"`},
		{"changes-flag", drifted, "prefix_caching is false, asked for true"},
	} {
		t.Run(c.misbehave, func(t *testing.T) {
			t.Parallel()
			s, mark := fakes(t, c.misbehave)
			_, err := Start(t.Context(), s, someKnobs(), "0001", nil)
			f, ok := errors.AsType[*Failure](err)
			if !ok {
				t.Fatalf("not a failure: %v", err)
			}
			if f.Class != c.class || !strings.Contains(f.Cause, c.cause) {
				t.Errorf("class %s, cause %q; want %s, %q", f.Class, f.Cause, c.class, c.cause)
			}
			enginetest.NothingLeft(t, mark, 0)
		})
	}
}

// A server that wants to be asked again is, when it says, before it counts as one that
// answers nothing.
func TestFirstTokenRests(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status int
		rest   string
		refuse int // so many requests
		least  time.Duration
		fails  bool
	}{
		"limits rates":   {http.StatusTooManyRequests, "2", 1, 2 * time.Second, false},
		"warms up":       {http.StatusServiceUnavailable, "", 2, 2 * time.Second, false},
		"wants to be":    {http.StatusServiceUnavailable, "1", 4, 4 * time.Second, false},
		"rests too long": {http.StatusTooManyRequests, "3600", tries, 2 * time.Second, true},
		"rests for ever": {http.StatusServiceUnavailable, "Fri, 31 Dec 9999 23:59:59 GMT", tries, 2 * time.Second, true},
		"knows nobody":   {http.StatusUnauthorized, "2", 1, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked := 0
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method != http.MethodPost {
					return
				}
				if asked++; asked <= c.refuse {
					w.Header().Set("Retry-After", c.rest)
					http.Error(w, "not yet", c.status)
					return
				}
				fmt.Fprint(w, `{"model":"other","choices":[{"text":"a"}]}`)
			}))
			defer server.Close()
			began := time.Now()
			e, err := Start(t.Context(), Settings{Kind: "attach", Model: "m", Endpoint: endpoint.Endpoint{URL: server.URL}}, someKnobs(), "", nil)
			if took := time.Since(began); (err != nil) != c.fails || took < c.least || asked > max(c.refuse+1, tries) {
				t.Errorf("%v after %v and %d requests", err, took, asked)
			}
			if err == nil && e.Facts.AnswersAs != "other" {
				t.Errorf("it answers as %q", e.Facts.AnswersAs)
			}
		})
	}
}

// A certificate that does not hold is none a moment later, however busy the engine is.
func TestBadCertificateIsFinal(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	asked, e := 0, &Engine{URL: server.URL, adapter: &attach, settings: &Settings{}}
	err := e.Insist(t.Context(), time.Minute, func() bool { return asked < tries }, func(error, time.Duration) {}, func() error { asked++; return e.probe(t.Context()) })
	if asked != 1 || classOf(err, mute) != unreachable {
		t.Errorf("asked %d times: %v", asked, err)
	}
}

// An engine that does not get ready is given up: at once when its log stands
// still, and in the end even if it does not.
func TestNeverReady(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		misbehave    string
		ready, stall time.Duration
		class        Class
	}{
		{"never-ready", 20 * time.Second, time.Second, stalled},
		{"never-ready-chatty", 2 * time.Second, time.Second, Slow},
		{"mute-health", 20 * time.Second, time.Second, stalled},
		// Ready after 3 s, far beyond the limit for a log that stands still.
		{"slow-start", 20 * time.Second, 2 * time.Second, ""},
	} {
		t.Run(c.misbehave, func(t *testing.T) {
			t.Parallel()
			s, mark := fakes(t, c.misbehave)
			s.Timeouts.Ready, s.Timeouts.Stall = c.ready, c.stall
			e, err := Start(t.Context(), s, someKnobs(), "0001", nil)
			f, failed := errors.AsType[*Failure](err)
			switch {
			case c.class == "" && err != nil:
				t.Error(err)
			case c.class == "":
				if err := e.Stop(0); err != nil {
					t.Error(err)
				}
			case !failed || f.Class != c.class:
				t.Errorf("%v, want class %s", err, c.class)
			}
			enginetest.NothingLeft(t, mark, 0)
		})
	}
}

// A program that is not there fails like an engine, not like planner.
func TestMissingProgram(t *testing.T) {
	t.Parallel()
	s, _ := fakes(t, "")
	for _, program := range []string{"/nowhere/vllm", "/etc/passwd"} {
		s.Program = []string{program}
		_, err := Start(t.Context(), s, someKnobs(), "0001", nil)
		if f, ok := errors.AsType[*Failure](err); !ok || f.Class != missing {
			t.Errorf("%s: %v", program, err)
		}
	}
}

// What leaves the process group, ignores SIGTERM or holds the log open is gone
// after a stop all the same, also when the first process ended by itself.
func TestNothingIsLeft(t *testing.T) {
	t.Parallel()
	for _, misbehave := range []string{"strays", "ignores-term", "floods"} {
		t.Run(misbehave, func(t *testing.T) {
			t.Parallel()
			s, mark := fakes(t, misbehave)
			s.LogBytes = 1 << 20
			e := must.Get(Start(t.Context(), s, someKnobs(), "0001", nil))
			if misbehave == "floods" {
				time.Sleep(1500 * time.Millisecond)
			}
			if misbehave == "strays" {
				_ = syscall.Kill(e.process.pid, syscall.SIGKILL)
				<-e.Done()
				if f := e.Failure(); f == nil || f.Class != killed {
					t.Errorf("failure of a killed engine: %v", f)
				}
			}
			if err := e.Stop(0); err != nil {
				t.Error(err)
			}
			enginetest.NothingLeft(t, mark, 0)
			if n := len(e.Strays()); misbehave == "strays" && n < 4 {
				t.Errorf("%d strays were told, want 4 at least: %v", n, e.Strays())
			}
			info, err := os.Stat(e.Log)
			if err != nil || info.Size() > 1<<20+2*tailKept {
				t.Errorf("log of %d bytes, %v", info.Size(), err)
			}
		})
	}
}

// When the context ends, the start ends and what was started with it.
func TestStartIsCancelled(t *testing.T) {
	t.Parallel()
	s, mark := fakes(t, "never-ready")
	ctx, cancel := context.WithTimeoutCause(t.Context(), 500*time.Millisecond, errors.New("enough"))
	defer cancel()
	if _, err := Start(ctx, s, someKnobs(), "0001", nil); err == nil || !strings.Contains(err.Error(), "enough") {
		t.Errorf("error %v", err)
	}
	enginetest.NothingLeft(t, mark, 0)
}

// A guard that is killed takes the engine's group along.
func TestGuardIsKilled(t *testing.T) {
	t.Parallel()
	s, mark := fakes(t, "ignores-term")
	s.Program = append([]string{"sh", "-c", `sleep 300 & exec "$@"`, "engine"}, s.Program...)
	e := must.Get(Start(t.Context(), s, someKnobs(), "0001", nil))
	must.OK(e.process.guard.Process.Kill())
	enginetest.NothingLeft(t, mark, 5*time.Second)
	if err := e.Stop(0); err == nil || !strings.Contains(err.Error(), "guard was killed") {
		t.Errorf("stop without a guard: %v", err)
	}
}

// A command whose engine is not known is started, described and reset all the
// same.
func TestCommand(t *testing.T) {
	t.Parallel()
	s, mark := fakes(t, "")
	s.Format = Format{Weights: "fp8", Stored: "bf16", KV: "fp8"} // which the command does not pass on
	s.Kind, s.Argv = "command", []string{s.Program[0], enginetest.Word, "{model}", "--port={port}", "--max-num-seqs", "{max_num_seqs}", "--served-model-name=fake", "--enable-prefix-caching"}
	e := must.Get(Start(t.Context(), s, someKnobs(), "0001", nil))
	if e.Facts.Dialect != "vllm" || e.Facts.KVBlocks != 640 || e.Facts.Version != "0.0.1" {
		t.Errorf("facts %+v", e.Facts)
	}
	if got := strings.Join(e.Facts.Formats, "; "); got != "quantization is none, asked for weights in fp8; kv_cache_dtype is auto, asked for fp8" {
		t.Errorf("it serves in other formats: %q", got)
	}
	if can, err := e.ResetCache(t.Context()); !can || err != nil {
		t.Errorf("reset: %t, %v", can, err)
	}
	if err := e.Stop(0); err != nil {
		t.Error(err)
	}
	enginetest.NothingLeft(t, mark, 0)
}

// A server that runs already is reached, told apart from one that is not there,
// and left running.
func TestAttach(t *testing.T) {
	t.Parallel()
	s, _ := fakes(t, "")
	e := must.Get(Start(t.Context(), s, someKnobs(), "0001", nil))
	defer e.Stop(0)
	other := someKnobs()
	other.PrefixCaching = false
	a := must.Get(Start(t.Context(), Settings{Kind: "attach", Endpoint: endpoint.Endpoint{URL: e.URL + "/v1"}}, other, "", nil))
	if a.Facts.KVBlocks != 640 || a.Facts.Dialect != "vllm" || len(a.Facts.Changed) != 1 || a.Done() != nil {
		t.Errorf("attached: %+v", a.Facts)
	}
	said := a.Sample(t.Context()).Stop(t.Context())
	if len(said.Snapshots) != 2 || said.Snapshots[0].Running != 0 {
		t.Errorf("samples of a server of unknown kind: %+v", said)
	}
	if can, err := a.ResetCache(t.Context()); can || err != nil {
		t.Errorf("somebody else's cache: %t, %v", can, err)
	}
	if err := a.Stop(0); err != nil || a.Strays() != nil {
		t.Errorf("stop: %v", err)
	}
	if err := e.Check(t.Context(), time.Second); err != nil {
		t.Errorf("a server that was attached to is stopped: %v", err)
	}
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	_, err := Start(t.Context(), Settings{Kind: "attach", Endpoint: endpoint.Endpoint{URL: "http://127.0.0.1:" + strconv.Itoa(port)}}, other, "", nil)
	if f, ok := errors.AsType[*Failure](err); !ok || f.Class != unreachable {
		t.Errorf("nobody there: %v", err)
	}
}
