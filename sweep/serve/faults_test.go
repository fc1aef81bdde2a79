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

	"planner/internal/evidence/must"
)

// faulty asks for a stream of ten tokens, one every 2 ms, with a fault.
func faulty(t *testing.T, url, fault string) (status int, body string) {
	t.Helper()
	return post(t, url+"/v1/chat/completions", `{"messages":[{"role":"user","content":"x"}],"max_tokens":10,"ignore_eos":true,"stream":true,"stream_options":{"include_usage":true}}`,
		"X-Planner-Fault", fault)
}

func everyTwo() *Simulator {
	return &Simulator{Fixed: Fixed{TTFT: constant(2 * time.Millisecond), TPOT: constant(2 * time.Millisecond)}}
}

func TestFaultsOfStreams(t *testing.T) {
	r := run(t, everyTwo())
	for _, c := range []struct {
		fault  string
		status int
		tokens int // with content
		has    string
		not    string
	}{
		{"error", 500, 0, `"code":500`, "data:"},
		{"error=503", 503, 0, `"ServiceUnavailableError"`, "data:"},
		{"error=429", 429, 0, `"RateLimitError"`, "data:"},
		{"cut=3", 200, 3, "unexpected EOF", "[DONE]"},
		{"cut", 200, 5, "unexpected EOF", "[DONE]"},
		{"reset=3", 200, -1, "connection reset", "[DONE]"},
		{"malformed=4", 200, 10, `{"id":"broken","choices":[{"ind` + "\n\n", ""},
		{"short=4", 200, 6, `"completion_tokens":6`, ""},
		{"empty", 200, 0, "", "data:"},
		{"event=2", 200, 2, `data: {"error":{"code":500`, "finish_reason\":\""},
	} {
		status, body := faulty(t, r.url, c.fault)
		tokens := strings.Count(body, `"delta":{"content":" `)
		if status != c.status || c.tokens >= 0 && tokens != c.tokens || !strings.Contains(body, c.has) || c.not != "" && strings.Contains(body, c.not) {
			t.Errorf("%s: status %d, %d tokens, want %d, %d, %q and no %q:\n%s", c.fault, status, tokens, c.status, c.tokens, c.has, c.not, body)
		}
	}
	for _, e := range r.emissions(t) {
		if e.Fault == "" || len(e.Left) > len(e.Due) {
			t.Errorf("log says %+v", e)
		}
	}
}

// TestHeadFirst: the head of a stream comes at once, and nothing else before the
// first token.
func TestHeadFirst(t *testing.T) {
	r := run(t, &Simulator{Fixed: Fixed{TTFT: constant(400 * time.Millisecond)}})
	start := time.Now()
	resp := must.Get(http.Post(r.url+"/v1/chat/completions", "", strings.NewReader(`{"messages":[{"role":"user","content":"x"}],"max_tokens":1,"stream":true}`)))
	defer resp.Body.Close()
	head := time.Since(start)
	_, err := resp.Body.Read(make([]byte, 1))
	if first := time.Since(start); err != nil || head > 300*time.Millisecond || first < 400*time.Millisecond {
		t.Errorf("head after %v, first byte after %v: %v", head, first, err)
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
	faults := []Fault{{kind: faultError, share: 0.1}, {kind: faultCut, share: 0.2}}
	const n = 20000
	hits := map[string]int{}
	for i := range uint64(n) {
		f := drawFault(faults, 3, i)
		hits[f.kind]++
		if drawFault(faults, 3, i) != f {
			t.Fatal("drawn differently the second time")
		}
	}
	for kind, want := range map[string]float64{faultError: 0.1, faultCut: 0.18, "": 0.72} {
		if got := float64(hits[kind]) / n; got < want-0.015 || got > want+0.015 {
			t.Errorf("%q hit a share of %v, want %v", kind, got, want)
		}
	}
	s := everyTwo()
	s.Faults = []Fault{{kind: faultError, share: 1, status: 503}}
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
		if status, body := faulty(t, r.url, "refuse=150ms"); status != 200 || !strings.Contains(body, "[DONE]") {
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

func TestParseFault(t *testing.T) {
	for text, want := range map[string]Fault{
		"error":             {kind: faultError, text: "error", share: 1, status: 500, delay: time.Second},
		"error=503@0.25":    {kind: faultError, text: "error=503", share: 0.25, status: 503, delay: time.Second},
		" refuse = 2s@0":    {kind: faultRefuse, text: "refuse = 2s", status: 500, delay: 2 * time.Second},
		"cut=7":             {kind: faultCut, text: "cut=7", share: 1, status: 500, delay: time.Second, tokens: 7},
		"cut=7@1":           {kind: faultCut, text: "cut=7", share: 1, status: 500, delay: time.Second, tokens: 7},
		"refuse=0s@1.0e-03": {kind: faultRefuse, text: "refuse=0s", share: 0.001, status: 500},
	} {
		if got, err := ParseFault(text); err != nil || got != want {
			t.Errorf("%q: %+v, %v; want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "=", "nothing", "error=200", "error=x", "cut=-1", "refuse=2", "refuse=-2s", "hang=1", "cut@2", "cut@-0.1", "cut@NaN", "cut@"} {
		if got, err := ParseFault(text); err == nil {
			t.Errorf("%q: accepted as %+v", text, got)
		}
	}
}

func FuzzParseFault(f *testing.F) {
	for _, s := range []string{"error=503@0.5", "refuse=2s", "cut=4@1", "hang"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		a, err := ParseFault(s)
		if err != nil {
			return
		}
		b, err := ParseFault(fmt.Sprintf("%v@%v", a.text, a.share))
		if err != nil || a != b {
			t.Errorf("%q is %+v, and %q is %+v, %v", s, a, a.text, b, err)
		}
	})
}

func TestParseDistribution(t *testing.T) {
	for _, s := range []string{"100ms", "0s", "exponential:50ms", "lognormal:100ms,0.5", "uniform:80ms,120ms"} {
		if _, err := ParseDistribution(s); err != nil {
			t.Error(err)
		}
	}
	for _, s := range []string{"", "100", "-1s", "exponential:", "exponential:1s,2s", "lognormal:1s", "lognormal:1s,-1", "lognormal:1s,NaN", "uniform:2s,1s", "uniform:1s", "gamma:1s"} {
		if _, err := ParseDistribution(s); err == nil {
			t.Errorf("%q: accepted", s)
		}
	}
}
