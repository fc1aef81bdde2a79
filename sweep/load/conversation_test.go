package load

import (
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"

	"planner/internal/evidence/must"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

// talker answers each request with the token ids from 50,001 on, or with words,
// and keeps the bodies that it was sent.
type talker struct {
	mu     sync.Mutex
	bodies []string
	names  bool
}

func (s *talker) serve(c net.Conn, a asked) bool {
	s.mu.Lock()
	s.bodies = append(s.bodies, string(a.body))
	s.mu.Unlock()
	var b strings.Builder
	b.WriteString(streamHead)
	for i := range a.tokens {
		ids := ""
		if s.names {
			ids = fmt.Sprintf(`,"token_ids":[%d]`, 50001+i)
		}
		if strings.Contains(string(a.body), `"messages"`) {
			b.WriteString(chunked(fmt.Sprintf(`data: {"choices":[{"delta":{"content":" \"w%d\""}}]}`+"\n\n", i)))
		} else {
			b.WriteString(chunked(fmt.Sprintf(`data: {"choices":[{"text":" w"%s}]}`+"\n\n", ids)))
		}
	}
	b.WriteString(chunked(finishEvent()) + chunked(usageEvent(0, a.tokens)) + chunked(doneEvent) + lastChunk)
	say(b.String())(c, a)
	return true
}

// conversation is three turns, each of which carries the ones before it.
func conversation() []workload.Request {
	w := fixedLengths(10, 4, workload.Constant)
	w.Turns = 3
	return w.Schedule(30, 200e6, 1)[:3]
}

// TestEchoTokens: a later turn carries the very tokens that the engine generated, if it names them,
// and the trial says so if it does not.
func TestEchoTokens(t *testing.T) {
	for _, names := range []bool{true, false} {
		s := &talker{names: names}
		c := &Client{URL: serve(t, s.serve), Model: "m", Engine: "vllm", Stream: true}
		obs, err := c.Run(t.Context(), measure.Trial{}, conversation())
		if err != nil || len(obs.Records) == 0 {
			t.Fatal(len(obs.Records), err)
		}
		if got := strings.Contains(obs.Doubts.String(), "did not name the tokens"); got == names {
			t.Errorf("named %v, doubts %q", names, obs.Doubts)
		}
		var prompts [][]int
		for _, b := range s.bodies {
			var in struct {
				Prompt []int
				Return bool `json:"return_token_ids"`
			}
			must.OK(json.Unmarshal([]byte(b), &in))
			if last := len(prompts) == 2; in.Return == last {
				t.Errorf("turn %d asks for token ids: %v", len(prompts), in.Return)
			}
			prompts = append(prompts, in.Prompt)
		}
		if len(prompts) != 3 || len(prompts[0]) != 10 || len(prompts[1]) != 24 || len(prompts[2]) != 38 {
			t.Fatalf("prompts %v", prompts)
		}
		if alike(prompts[0], prompts[1]) != 10 || alike(prompts[1], prompts[2]) != 24 {
			t.Errorf("turns do not begin alike: %v", prompts)
		}
		if got := slices.Equal(prompts[2][10:14], []int{50001, 50002, 50003, 50004}); got != names {
			t.Errorf("answer in the last prompt: %v, engine names tokens: %v", prompts[2][10:14], names)
		}
	}
}

// TestEchoChat: a later turn of a chat carries the engine's words as the
// assistant's message.
func TestEchoChat(t *testing.T) {
	s := &talker{}
	c := &Client{URL: serve(t, s.serve), Model: "m", Chat: true, Stream: true}
	must.Get(c.Run(t.Context(), measure.Trial{}, conversation()))
	last := s.bodies[len(s.bodies)-1]
	var in struct {
		Messages []struct{ Role, Content string }
	}
	if err := json.Unmarshal([]byte(last), &in); err != nil {
		t.Fatalf("%v in %s", err, last)
	}
	roles := ""
	for _, m := range in.Messages {
		roles += m.Role + " "
	}
	if roles != "user assistant user assistant user " || in.Messages[1].Content != ` "w0" "w1" "w2" "w3"` {
		t.Errorf("messages %+v", in.Messages)
	}
}
