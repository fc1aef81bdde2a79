package serve

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"
)

// faulty asks for a stream of ten tokens, one every 2 ms, with a fault.
func faulty(t *testing.T, url, fault string) (status int, body string, took time.Duration) {
	t.Helper()
	start := time.Now()
	status, body = post(t, url+"/v1/chat/completions", `{"messages":[{"role":"user","content":"x"}],"max_tokens":10,"ignore_eos":true,"stream":true,"stream_options":{"include_usage":true}}`,
		"X-Planner-Fault", fault)
	return status, body, time.Since(start)
}

func everyTwo() *Server {
	return &Server{Fixed: Fixed{TTFT: Constant(2 * time.Millisecond), TPOT: Constant(2 * time.Millisecond)}}
}

func TestFaultsOfStreams(t *testing.T) {
	r := run(t, everyTwo())
	const ended = "data: [DONE]\n\n"
	for _, c := range []struct {
		fault  string
		status int
		tokens int // with content
		has    string
		not    string
		took   time.Duration // at least
	}{
		{"error", 500, 0, `"code":500`, "data:", 0},
		{"error=503", 503, 0, `"ServiceUnavailableError"`, "data:", 0},
		{"error=429", 429, 0, `"RateLimitError"`, "data:", 0},
		{"slow=50ms", 200, 10, ended, "", 70 * time.Millisecond},
		{"stall=50ms", 200, 10, ended, "", 70 * time.Millisecond},
		{"cut=3", 200, 3, "unexpected EOF", "[DONE]", 0},
		{"cut", 200, 5, "unexpected EOF", "[DONE]", 0},
		{"reset=3", 200, -1, "connection reset", "[DONE]", 0},
		{"truncate=3", 200, 3, "", "finish_reason\":\"", 0},
		{"malformed=4", 200, 10, `{"id":"broken","choices":[{"ind` + "\n\n", "", 0},
		{"merge=4", 200, 3, ended, "", 0},
		{"role", 200, 10, ended, "", 0},
		{"usage=60ms", 200, 10, ended, "", 80 * time.Millisecond},
		{"short=4", 200, 6, `"completion_tokens":6`, "", 0},
		{"empty", 200, 0, "", "data:", 0},
		{"event=2", 200, 2, `data: {"error":{"code":500`, "finish_reason\":\"", 0},
	} {
		status, body, took := faulty(t, r.url, c.fault)
		tokens := strings.Count(body, `"delta":{"content":" `)
		if status != c.status || c.tokens >= 0 && tokens != c.tokens || !strings.Contains(body, c.has) || c.not != "" && strings.Contains(body, c.not) || took < c.took {
			t.Errorf("%s: status %d, %d tokens in %v, want %d, %d, %q and no %q:\n%s", c.fault, status, tokens, took, c.status, c.tokens, c.has, c.not, body)
		}
	}
	for _, e := range r.emissions(t) {
		if e.Fault == "" || len(e.Left) > len(e.Due) {
			t.Errorf("log says %+v", e)
		}
	}
}

// TestRoleFirst: the fault sends the role long before the first token, and without
// it nothing comes before the token but the head.
func TestRoleFirst(t *testing.T) {
	r := run(t, &Server{Fixed: Fixed{TTFT: Constant(60 * time.Millisecond)}})
	for _, fault := range []string{"role", "merge=1"} {
		req, _ := http.NewRequest("POST", r.url+"/v1/chat/completions", strings.NewReader(`{"messages":[{"role":"user","content":"x"}],"max_tokens":1,"stream":true}`))
		req.Header.Set("X-Planner-Fault", fault)
		start := time.Now()
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		head := time.Since(start)
		_, err = resp.Body.Read(make([]byte, 1))
		first := time.Since(start)
		resp.Body.Close()
		if err != nil || head > 50*time.Millisecond || (first > 50*time.Millisecond) != (fault != "role") {
			t.Errorf("%s: head after %v, first byte after %v: %v", fault, head, first, err)
		}
	}
}

// TestFaultsOfAnswers: what the faults do where nothing is streamed.
func TestFaultsOfAnswers(t *testing.T) {
	r := run(t, everyTwo())
	for fault, want := range map[string]string{
		"cut": "unexpected EOF", "reset": "connection reset", "event": `{"error":{`, "empty": "", "malformed": `{"id":`, "short=2": `"completion_tokens":8`,
	} {
		_, body := post(t, r.url+"/v1/completions", `{"prompt":[1],"max_tokens":10,"ignore_eos":true}`, "X-Planner-Fault", fault)
		if !strings.Contains(body, want) || fault == "empty" && body != "" || fault == "malformed" && strings.HasSuffix(body, "}") {
			t.Errorf("%s: %q, want %q", fault, body, want)
		}
	}
}

// TestFaultShares: faults of the configuration hit their share of the requests,
// the same ones in every run.
func TestFaultShares(t *testing.T) {
	faults := []Fault{{Kind: FaultError, Share: 0.1, Status: 500}, {Kind: FaultCut, Share: 0.2}}
	const n = 20000
	hits := map[FaultKind]int{}
	for i := range uint64(n) {
		f := drawFault(faults, 3, i)
		hits[f.Kind]++
		if drawFault(faults, 3, i) != f {
			t.Fatal("drawn differently the second time")
		}
	}
	for kind, want := range map[FaultKind]float64{FaultError: 0.1, FaultCut: 0.18, "": 0.72} {
		if got := float64(hits[kind]) / n; got < want-0.015 || got > want+0.015 {
			t.Errorf("%q hit a share of %v, want %v", kind, got, want)
		}
	}
	s := everyTwo()
	s.Faults = []Fault{{Kind: FaultError, Share: 1, Status: 503}}
	r := run(t, s)
	if status, _ := post(t, r.url+"/v1/completions", `{"prompt":[1]}`); status != 503 {
		t.Errorf("status %d with every request failing", status)
	}
}

// TestHang: a request that is never answered holds nobody up, the stop of the
// server least of all.
func TestHang(t *testing.T) {
	r := run(t, everyTwo())
	client := http.Client{Timeout: 50 * time.Millisecond}
	req, _ := http.NewRequest("POST", r.url+"/v1/completions", strings.NewReader(`{"prompt":[1]}`))
	req.Header.Set("X-Planner-Fault", "hang")
	if resp, err := client.Do(req); err == nil {
		t.Errorf("an answer: %v", resp.Status)
	}
	go post(t, r.url+"/v1/completions", `{"prompt":[1]}`, "X-Planner-Fault", "hang")
	time.Sleep(20 * time.Millisecond)
	if all := r.emissions(t); len(all) != 2 || all[0].Fault != "hang" || all[0].Outcome != outcomeFault {
		t.Errorf("log: %+v", all)
	}
}

// TestRefuse: the port is closed to new connections for a while and open again
// afterwards; the stream on the old one goes on.
func TestRefuse(t *testing.T) {
	r := run(t, everyTwo())
	for range 2 {
		if status, body, _ := faulty(t, r.url, "refuse=150ms"); status != 200 || !strings.Contains(body, "[DONE]") {
			t.Fatalf("status %d:\n%s", status, body)
		}
		_, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
		if !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("dial: %v, want a refusal", err)
		}
		open := false
		for wait := 0; wait < 200 && !open; wait++ {
			time.Sleep(10 * time.Millisecond)
			if c, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://")); err == nil {
				open = true
				c.Close()
			}
		}
		if !open {
			t.Fatal("the port stays closed")
		}
	}
}

// TestCrash: the server ends with an error and resets what was under way.
func TestCrash(t *testing.T) {
	r := run(t, &Server{Fixed: Fixed{TTFT: Constant(10 * time.Second)}})
	other := make(chan string)
	go func() {
		_, body := post(t, r.url+"/v1/completions", `{"prompt":[1],"stream":true}`)
		other <- body
	}()
	time.Sleep(50 * time.Millisecond)
	if status, body, _ := faulty(t, r.url, "crash"); status != 0 {
		t.Errorf("an answer: %d %s", status, body)
	}
	if body := <-other; !strings.Contains(body, "reset") {
		t.Errorf("the other stream ended with %q", body)
	}
	if err := r.stop(); !errors.Is(err, ErrCrash) {
		t.Errorf("Serve returned %v", err)
	}
}

func TestParseFault(t *testing.T) {
	for text, want := range map[string]Fault{
		"error":             {Kind: FaultError, Share: 1, Status: 500, Delay: time.Second},
		"error=503@0.25":    {Kind: FaultError, Share: 0.25, Status: 503, Delay: time.Second},
		" stall = 2s@0":     {Kind: FaultStall, Status: 500, Delay: 2 * time.Second},
		"merge":             {Kind: FaultMerge, Share: 1, Status: 500, Delay: time.Second, Tokens: 4},
		"cut=7":             {Kind: FaultCut, Share: 1, Status: 500, Delay: time.Second, Tokens: 7},
		"cut=7@1":           {Kind: FaultCut, Share: 1, Status: 500, Delay: time.Second, Tokens: 7},
		"refuse=0s@1.0e-03": {Kind: FaultRefuse, Share: 0.001, Status: 500},
	} {
		if got, err := ParseFault(text); err != nil || got != want {
			t.Errorf("%q: %+v, %v; want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "=", "nothing", "error=200", "error=x", "cut=-1", "stall=2", "stall=-2s", "role=1", "cut@2", "cut@-0.1", "cut@NaN", "cut@"} {
		if got, err := ParseFault(text); err == nil {
			t.Errorf("%q: accepted as %+v", text, got)
		}
	}
}

func FuzzParseFault(f *testing.F) {
	for _, s := range []string{"error=503@0.5", "stall=2s", "merge=4@1", "role"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		a, err := ParseFault(s)
		if err != nil {
			return
		}
		b, err := ParseFault(fmt.Sprintf("%v@%v", a, a.Share))
		if err != nil || a != b && !(a.Tokens == 0 && b.Tokens > 0) {
			t.Errorf("%q is %+v, and %q is %+v, %v", s, a, a, b, err)
		}
	})
}

func TestParseLaw(t *testing.T) {
	for _, s := range []string{"100ms", "0s", "exponential:50ms", "lognormal:100ms,0.5", "uniform:80ms,120ms"} {
		if l, err := ParseLaw(s); err != nil || l.String() != s {
			t.Errorf("%q reads as %v, %v", s, l, err)
		}
	}
	for _, s := range []string{"", "100", "-1s", "exponential:", "exponential:1s,2s", "lognormal:1s", "lognormal:1s,-1", "lognormal:1s,NaN", "uniform:2s,1s", "uniform:1s", "gamma:1s"} {
		if l, err := ParseLaw(s); err == nil {
			t.Errorf("%q: accepted as %v", s, l)
		}
	}
}
