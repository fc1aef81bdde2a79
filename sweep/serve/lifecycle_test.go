package serve

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"planner/internal/evidence/must"
)

// TestStop: a stop in the middle of streams, of requests that wait and of
// connections that are idle ends all of them and leaves no goroutine.
func TestStop(t *testing.T) {
	http.DefaultClient.CloseIdleConnections()
	before := settled(0)
	s := &Simulator{Fixed: Fixed{TTFT: constant(time.Millisecond), TPOT: constant(20 * time.Millisecond), Slots: 4}}
	r := run(t, s)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if _, body := post(t, r.url+"/v1/completions", `{"prompt":[1],"max_tokens":1000,"ignore_eos":true,"stream":true}`); strings.Contains(body, "[DONE]") {
				t.Errorf("a stream came to its end: %s", body)
			}
		})
	}
	idle := must.Get(net.Dial("tcp", strings.TrimPrefix(r.url, "http://")))
	defer idle.Close()
	full := func() bool { // with four streams begun, and four requests that wait
		_, page := get(r.url + "/metrics")
		const labels = `{engine="0",model_name="simulated"} 4`
		return strings.Contains(page, "time_to_first_token_seconds_count"+labels) && strings.Contains(page, "num_requests_waiting"+labels)
	}
	for start := time.Now(); !full(); time.Sleep(10 * time.Millisecond) {
		if time.Since(start) > 10*time.Second {
			t.Fatal("8 requests do not fill 4 slots")
		}
	}
	all := r.emissions(t)
	wg.Wait()
	streams := 0
	for _, e := range all {
		if e.Outcome != outcomeStopped {
			t.Errorf("%+v", e)
		}
		if len(e.Left) > 0 {
			streams++
		}
	}
	if len(all) != 8 || streams != 4 {
		t.Errorf("%d replies in the log, %d of them with tokens; want 8 and 4", len(all), streams)
	}
	http.DefaultClient.CloseIdleConnections()
	if after := settled(before); after > before {
		buf := make([]byte, 1<<16)
		t.Errorf("%d goroutines before, %d after:\n%s", before, after, buf[:runtime.Stack(buf, true)])
	}
}

// settled counts the goroutines once there are as few as wanted, or after a while.
func settled(want int) int {
	n := runtime.NumGoroutine()
	for range 100 {
		if n = runtime.NumGoroutine(); n <= want {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	return n
}

// TestStopBeforeServe: a context that has ended stops a server that has not begun.
func TestStopBeforeServe(t *testing.T) {
	s := &Simulator{Addr: "127.0.0.1:0"}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := s.Serve(ctx); err != nil {
		t.Error(err)
	}
	if err := (&Simulator{Addr: "127.0.0.1:99999"}).Serve(ctx); err == nil {
		t.Error("no error for a port that cannot be")
	}
}

// TestClientLeaves: the engine is told, so that the next in the queue is served at
// once.
func TestClientLeaves(t *testing.T) {
	r := run(t, &Simulator{Fixed: Fixed{TTFT: constant(10 * time.Millisecond), TPOT: constant(time.Second), Slots: 1}})
	ctx, cancel := context.WithCancel(context.Background())
	begun, left := make(chan bool, 1), make(chan bool)
	go func() {
		defer close(left)
		defer func() { begun <- true }()
		req, _ := http.NewRequestWithContext(ctx, "POST", r.url+"/v1/completions", strings.NewReader(`{"prompt":[1],"max_tokens":100,"stream":true}`))
		if resp, err := http.DefaultClient.Do(req); err == nil {
			_, _ = resp.Body.Read(make([]byte, 1))
			begun <- true
			<-ctx.Done()
			resp.Body.Close()
		}
	}()
	<-begun
	cancel()
	<-left
	start := time.Now()
	if status, _ := post(t, r.url+"/v1/completions", `{"prompt":[1],"max_tokens":1}`); status != 200 || time.Since(start) > 500*time.Millisecond {
		t.Errorf("status %d after %v", status, time.Since(start))
	}
	if all := r.emissions(t); len(all) != 2 || all[0].Outcome != outcomeLeft || len(all[0].Left) != 1 || all[1].Outcome != outcomeOK {
		t.Errorf("log: %+v", all)
	}
}

// TestSlowReader: a client that does not read delays nobody, and gets all of its
// stream when it reads at last.
func TestSlowReader(t *testing.T) {
	r := run(t, &Simulator{Fixed: Fixed{TTFT: constant(time.Millisecond)}, MaxModelLen: 1 << 20})
	conn := must.Get(net.Dial("tcp", strings.TrimPrefix(r.url, "http://")))
	defer conn.Close()
	const tokens = 70_000 // more than the kernel keeps
	ask := fmt.Sprintf(`{"prompt":[1],"max_tokens":%d,"ignore_eos":true,"stream":true}`, tokens)
	fmt.Fprintf(conn, "POST /v1/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", len(ask), ask)
	time.Sleep(200 * time.Millisecond)
	start := time.Now()
	if status, _ := post(t, r.url+"/v1/completions", `{"prompt":[1],"max_tokens":2}`); status != 200 || time.Since(start) > 10*time.Second {
		t.Errorf("status %d after %v beside a client that does not read", status, time.Since(start))
	}
	var all bytes.Buffer
	_ = conn.SetReadDeadline(time.Now().Add(5 * time.Second))
	if _, err := all.ReadFrom(conn); err != nil {
		t.Error(err)
	}
	if n := strings.Count(all.String(), "data: {"); n != tokens || !strings.Contains(all.String(), "[DONE]") {
		t.Errorf("%d events arrived, want %d", n, tokens)
	}
	if e := r.emissions(t)[0]; e.Blocked == 0 {
		t.Errorf("the log does not say that the client was slow: %d blocked", e.Blocked)
	}
}

// broken fails every write.
type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("disk full") }

// TestLogFails: the loss of the log is reported, and stops nothing before.
func TestLogFails(t *testing.T) {
	s := &Simulator{Addr: "127.0.0.1:0", Log: broken{}}
	must.OK(s.Listen())
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error)
	go func() { served <- s.Serve(ctx) }()
	for range 3 {
		if status, _ := post(t, s.URL()+"/v1/completions", `{"prompt":[1]}`); status != 200 {
			t.Errorf("status %d", status)
		}
	}
	cancel()
	if err := <-served; err == nil || !strings.Contains(err.Error(), "disk full") {
		t.Errorf("Serve returned %v", err)
	}
}

// TestPace is loose, as other work may be going on: half of the tokens leave
// within five milliseconds of when they are due, and none early. The precise
// figures are those of BenchmarkPaced.
func TestPace(t *testing.T) {
	r := run(t, &Simulator{Fixed: Fixed{TTFT: constant(10 * time.Millisecond), TPOT: constant(5 * time.Millisecond)}})
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			post(t, r.url+"/v1/completions", `{"prompt":[1],"max_tokens":40,"ignore_eos":true,"stream":true}`)
		})
		time.Sleep(3 * time.Millisecond)
	}
	wg.Wait()
	late := lateness(r.emissions(t))
	if n := len(late); n != 800 || late[0] < 0 || late[n/2] > 5*time.Millisecond {
		t.Errorf("%d tokens, the first %v late, the middle one %v", n, late[0], late[n/2])
	}
}

// TestMetrics compares what /metrics says after some requests with what they were.
func TestMetrics(t *testing.T) {
	r := run(t, &Simulator{Model: "m", Timer: steady{0.002, 0}, Config: small()})
	prompt := strings.Repeat("1,", 63) + "1"
	for range 3 {
		post(t, r.url+"/v1/completions", `{"prompt":[`+prompt+`],"max_tokens":5,"ignore_eos":true}`)
	}
	_, body := get(r.url + "/metrics")
	const labels = `{engine="0",model_name="m"`
	for _, want := range []string{
		"vllm:num_requests_running" + labels + "} 0",
		"vllm:num_requests_waiting" + labels + "} 0",
		"vllm:kv_cache_usage_perc" + labels + "} 0",
		"vllm:num_preemptions_total" + labels + "} 0",
		"vllm:prompt_tokens_total" + labels + "} 192",
		"vllm:generation_tokens_total" + labels + "} 15",
		"vllm:prefix_cache_queries_total" + labels + "} 192",
		"vllm:prefix_cache_hits_total" + labels + "} 96", // 3 blocks of 4, twice: the last one is computed
		`vllm:request_success_total{engine="0",finished_reason="length",model_name="m"} 3`,
		"vllm:time_to_first_token_seconds_count" + labels + "} 3",
		"vllm:time_to_first_token_seconds_bucket" + labels + `,le="0.001"} 0`,
		"vllm:time_to_first_token_seconds_bucket" + labels + `,le="0.005"} 3`,
		"vllm:inter_token_latency_seconds_count" + labels + "} 12",
		"vllm:e2e_request_latency_seconds_bucket" + labels + `,le="+Inf"} 3`,
		"vllm:request_queue_time_seconds_count" + labels + "} 3",
		`vllm:cache_config_info{block_size="16",enable_prefix_caching="True",engine="0",model_name="m",num_gpu_blocks="1000"} 1`,
	} {
		if !strings.Contains(body, want+"\n") {
			t.Errorf("no %q in:\n%s", want, body)
		}
	}
	if _, answer := post(t, r.url+"/v1/completions", `{"prompt":[`+prompt+`],"max_tokens":1}`); !strings.Contains(answer, `"cached_tokens":48`) {
		t.Errorf("cached tokens: %s", answer)
	}
	if _, answer := post(t, r.url+"/v1/completions", `{"prompt":[`+prompt+`],"max_tokens":1,"cache_salt":"private"}`); !strings.Contains(answer, `"cached_tokens":0`) {
		t.Errorf("with a salt of its own: %s", answer)
	}
	post(t, r.url+"/reset_prefix_cache", "")
	if _, answer := post(t, r.url+"/v1/completions", `{"prompt":[`+prompt+`],"max_tokens":1}`); !strings.Contains(answer, `"cached_tokens":0`) {
		t.Errorf("after a reset: %s", answer)
	}
}
