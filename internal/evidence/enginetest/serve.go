package enginetest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"syscall"
	"time"
)

// tokenTime is how long one token takes now.
func (f *fake) tokenTime() time.Duration {
	if f.misbehave == "slow-death" {
		return f.token * time.Duration(1+f.requests.Load()/4)
	}
	return f.token
}

func (f *fake) completions(w http.ResponseWriter, r *http.Request) {
	arrived := time.Now()
	var in request
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	n := f.requests.Add(1)
	if in.MaxTokens == 1 && !in.Stream {
		f.one(w, r)
		return
	}
	if f.refuses(w, n) {
		return
	}
	f.waiting.Add(1)
	select {
	case f.slots <- struct{}{}:
	case <-r.Context().Done():
		f.waiting.Add(-1)
		return
	}
	f.waiting.Add(-1)
	f.running.Add(1)
	defer func() {
		f.running.Add(-1)
		<-f.slots
	}()
	f.prompted.Add(int64(in.promptTokens()))
	if f.misbehave == "dies-loaded" && f.running.Load() > manyAtOnce {
		f.die()
	}
	f.stream(w, r, &in, n, arrived)
}

// manyAtOnce are more requests than an engine stands that dies under load.
const manyAtOnce = 8

// one answers the request that asks whether the engine really is ready.
func (f *fake) one(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	stalled := f.stalled
	f.mu.Unlock()
	switch {
	case f.misbehave == "mute", f.misbehave == "dies-when-ready", stalled:
		<-r.Context().Done()
		return
	case f.misbehave == "no-choices":
		fmt.Fprint(w, `{"error":"not today"}`)
		return
	}
	fmt.Fprint(w, `{"choices":[{"text":"a","index":0,"finish_reason":"length"}],"usage":{"prompt_tokens":4,"completion_tokens":1}}`)
}

// refuses answers with an error where it is to.
func (f *fake) refuses(w http.ResponseWriter, n int64) bool {
	status := map[string]int{"status-500": 500, "status-429": 429, "status-503": 503}[f.misbehave]
	if f.misbehave == "broken-health" && n > 10 {
		status = 500
	}
	if status == 0 || n%3 != 0 && f.misbehave != "broken-health" {
		return false
	}
	http.Error(w, `{"error":{"message":"overloaded"}}`, status)
	return true
}

// stream sends the tokens one by one.
func (f *fake) stream(w http.ResponseWriter, r *http.Request, in *request, n int64, arrived time.Time) {
	w.Header().Set("Content-Type", "text/event-stream")
	send := func(format string, args ...any) {
		fmt.Fprintf(w, "data: "+format+"\n\n", args...)
		w.(http.Flusher).Flush()
	}
	if f.misbehave == "compiles" && n == 3 {
		f.say("WARNING [jit_monitor.py:135] Triton kernel JIT compilation during inference: fused_moe_kernel. This causes a latency spike")
	}
	prompt, tokens := in.promptTokens(), in.MaxTokens
	if f.misbehave == "short" {
		tokens = max(1, tokens/2)
	}
	for i := 1; i <= tokens; i++ {
		time.Sleep(f.tokenTime())
		if i == 1 {
			f.mu.Lock()
			f.firsts++
			f.waited += time.Since(arrived)
			f.mu.Unlock()
		}
		f.generated.Add(1)
		count := i
		if f.misbehave == "lies-usage" {
			count = 3 * i
		}
		finish := "null"
		if i == tokens {
			finish = `"length"`
		}
		send(`{"choices":[{"index":0,"text":"a","finish_reason":%s}],"usage":{"prompt_tokens":%d,"completion_tokens":%d}}`, finish, prompt, count)
		if i == tokens/2 && f.interrupts(w, r, send, n) {
			return
		}
	}
	send("[DONE]")
}

// interrupts misbehaves in the middle of a stream; true ends it.
func (f *fake) interrupts(w http.ResponseWriter, r *http.Request, send func(string, ...any), n int64) bool {
	const late, veryLate = 8, 200
	switch f.misbehave {
	case "dies-late":
		if n > veryLate {
			f.die()
		}
	case "dies-once":
		if n > late && f.first() {
			f.die()
		}
	case "dies", "dies-oom":
		if n > late {
			if f.misbehave == "dies-oom" {
				f.say("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of 79.11 GiB")
				f.say("EngineCore encountered a fatal error.")
			}
			f.die()
		}
	case "hangs":
		if n > late {
			f.mu.Lock()
			f.stalled = true
			f.mu.Unlock()
			<-r.Context().Done()
			return true
		}
	case "truncates":
		return n%3 == 0
	case "resets":
		if n%3 == 0 {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				conn.Close()
			}
			return true
		}
	case "error-event":
		if n%3 == 0 {
			send(`{"error":{"message":"internal","code":500}}`)
			return true
		}
	case "garbage":
		if n%3 == 0 {
			send("{{{")
			return true
		}
	}
	return false
}

// first reports whether this is the first process that asks.
func (f *fake) first() bool {
	file, err := os.OpenFile(f.state, os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return false
	}
	file.Close()
	return true
}

func (f *fake) die() { _ = syscall.Kill(os.Getpid(), syscall.SIGKILL) }
