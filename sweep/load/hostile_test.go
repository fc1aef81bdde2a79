package load

import (
	"fmt"
	"maps"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"planner/sweep/measure"
	"planner/sweep/workload"
)

// mixedKinds are ten kinds of answers.
var mixedKinds = []struct {
	server  handler
	outcome measure.Outcome
}{
	{say(streamHead, tokensOf(4), ending(8, 4)), measure.OK},
	{reset(), measure.Reset},
	{stall(streamHead, tokensOf(2)), measure.Timeout},
	{say(whole("429 Too Many Requests", "text/plain", "rate limit")), measure.HTTPStatus},
	{say(streamHead, tokensOf(2)), measure.Truncated},
	{say(streamHead, lastChunk), measure.Empty},
	{say(streamHead, tokensOf(3), ending(8, 3)), measure.WrongLength},
	{say(streamHead, tokensOf(4), chunked("event: error\n\n"), ending(8, 4)), measure.StreamError},
	{say(whole("200 OK", "text/html", "<html>")), measure.Malformed},
	{say("HTTP/1.1 307 T\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n"), measure.HTTPStatus},
}

// TestMixedFaults: in a trial with good answers and nine other kinds, each kind is counted as often
// as the server gave it, in virtual time.
func TestMixedFaults(t *testing.T) {
	conf, roots := certificate()
	for _, secure := range []bool{false, true} {
		t.Run(fmt.Sprintf("TLS %v", secure), func(t *testing.T) {
			var m mixer
			inBubbleOf(t, secure, conf, roots, func(c net.Conn) { answerAll(c, m.answer) }, func(t *testing.T, c *Client) {
				trial := measure.Trial{Workload: &workload.Workload{Timeout: 2 * time.Second}, Rate: 200, Window: time.Second}
				obs := observe(t, c, trial, requests(200, 8, 4, 200))
				counted := measure.Reduce(trial, obs)
				if !maps.Equal(counted.Failures, m.gave) || counted.Failed != 180 {
					t.Errorf("%v of the failures that the server gave, %v", counted.Failures, m.gave)
				}
			})
		})
	}
}

// mixer gives each request another kind of answer than the one before, and the same again if a
// request comes twice.
type mixer struct {
	mu   sync.Mutex
	turn map[string]int
	gave map[string]int
}

func (m *mixer) answer(c net.Conn, a asked) bool {
	kind := mixedKinds[m.next(promptKey(a.body))%len(mixedKinds)]
	kind.server(c, a)
	return kind.outcome == measure.OK
}

func (m *mixer) next(key string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.turn == nil {
		m.turn, m.gave = map[string]int{}, map[string]int{}
	}
	n, again := m.turn[key]
	if again {
		return n
	}
	n = len(m.turn)
	m.turn[key] = n
	if outcome := mixedKinds[n%len(mixedKinds)].outcome; outcome != measure.OK {
		m.gave[outcome.String()]++
	}
	return n
}

// TestWholeAnswerWithoutText: an answer that is not streamed may show its tokens by its count
// alone.
func TestWholeAnswerWithoutText(t *testing.T) {
	for usage, want := range map[string]measure.Outcome{`,"usage":{"completion_tokens":4}`: measure.OK, `,"usage":{"completion_tokens":0}`: measure.Empty, "": measure.Empty} {
		c := &Client{URL: serve(t, say(whole("200 OK", "application/json", `{"choices":[{"text":"","finish_reason":"length"}]`+usage+`}`))), Model: "m", Engine: "vllm"}
		obs, err := c.Run(t.Context(), measure.Trial{Workload: &workload.Workload{Timeout: 20 * time.Second}, Concurrency: 1, Requests: 1}, requests(1, 8, 4, 0))
		if err != nil || obs.Records[0].Outcome != want {
			t.Errorf("%q: %v, %v, want %v", usage, obs.Records, err, want)
		}
	}
}

// TestHostileAnswers: the memory that an answer takes at most does not grow with what a server
// sends.
func TestHostileAnswers(t *testing.T) {
	const requestsAtOnce = 60
	for name, h := range map[string]handler{
		"JSON":           flood("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n[", strings.Repeat("0,", 8<<10)),
		"nested JSON":    flood("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n", strings.Repeat("[[[[[[[[", 2<<10)),
		"line":           flood(streamHead, chunked(strings.Repeat("x", 16<<10))),
		"data lines":     flood(streamHead, chunked(strings.Repeat("data: [0,0,0,0,0,0]\n", 800))),
		"values":         say(streamHead, chunked("data: ["+strings.Repeat("0,", 100<<10)+"0]\n\n"), lastChunk),
		"head":           flood("HTTP/1.1 200 OK\r\n", strings.Repeat("x:\r\n", 4<<10)),
		"error":          flood("HTTP/1.1 500 Oops\r\n\r\n", strings.Repeat("[0,", 5<<10)),
		"text":           flood(streamHead, strings.Repeat(chunked(`data: {"choices":[{"text":"`+strings.Repeat("x", 4<<10)+`"}]}`+"\n\n"), 4)),
		"interim answer": flood("", strings.Repeat("HTTP/1.1 100 Continue\r\nX: y\r\n\r\n", 400)),
	} {
		c := &Client{URL: serve(t, h), Model: "m", Stream: true, Engine: "vllm"}
		trial := measure.Trial{Workload: &workload.Workload{Timeout: 20 * time.Second}, Concurrency: requestsAtOnce, Requests: requestsAtOnce}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		obs, err := c.Run(t.Context(), trial, requests(requestsAtOnce, 8, 4, 0))
		runtime.ReadMemStats(&after)
		if err != nil || failures(&obs) != requestsAtOnce {
			t.Errorf("%s: %d failures, %v", name, failures(&obs), err)
		}
		// The client's own histograms and the server's buffers are in it.
		if each := (after.TotalAlloc - before.TotalAlloc) / requestsAtOnce; each > 3<<20 {
			t.Errorf("%s: %d KiB for each request", name, each>>10)
		}
	}
}
