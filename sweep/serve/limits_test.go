package serve

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"planner/internal/evidence/must"
)

// TestSlowClients: a connection on which nothing comes any more is closed, be it before a
// request, in its head or in its body; one that waits for its answer is not.
func TestSlowClients(t *testing.T) {
	t.Parallel()
	const limit = 200 * time.Millisecond
	s := run(t, &Simulator{limits: clientLimits{limit, limit, limit, 1 << 20}, Fixed: Fixed{TTFT: func(*rand.Rand) time.Duration { return 3 * limit }}})
	address := strings.TrimPrefix(s.url, "http://")
	head := "POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n"
	body := `{"prompt": "a b", "max_tokens": 1}`
	for _, c := range []struct {
		name, sent string
		answered   bool
	}{
		{"nothing", "", false},
		{"part of a head", "POST /v1/completions HTTP/1.1\r\nHost:", false},
		{"part of a body", fmt.Sprintf(head, 100) + "{", false},
		{"a request", fmt.Sprintf(head, len(body)) + body, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			conn := must.Get(net.Dial("tcp", address))
			defer conn.Close()
			must.Get(io.WriteString(conn, c.sent))
			must.OK(conn.SetReadDeadline(time.Now().Add(20 * time.Second)))
			answer, err := io.ReadAll(conn)
			if err != nil || strings.HasPrefix(string(answer), "HTTP/1.1 200") != c.answered {
				t.Errorf("%v: %q", err, answer)
			}
		})
	}
}

// TestBodiesTogether: bodies that together are too large are refused, and the memory comes
// back with the end of each.
func TestBodiesTogether(t *testing.T) {
	t.Parallel()
	l := usualLimits
	l.bodies = 100_000
	s := run(t, &Simulator{limits: l})
	r, w := io.Pipe()
	first := make(chan int, 1)
	go func() {
		resp, err := http.Post(s.url+"/v1/completions", "application/json", r)
		if err != nil {
			first <- 0
			return
		}
		resp.Body.Close()
		first <- resp.StatusCode
	}()
	must.Get(io.WriteString(w, `{"max_tokens": 1, "prompt": "`+strings.Repeat("a ", 30_000)))
	large := `{"max_tokens": 1, "prompt": "` + strings.Repeat("b ", 30_000) + `"}`
	// What the first has sent must have been read before the other comes, or the first is
	// the one that is refused.
	time.Sleep(300 * time.Millisecond)
	for end := time.Now().Add(20 * time.Second); ; {
		if status, _ := post(t, s.url+"/v1/completions", large); status == http.StatusServiceUnavailable {
			break
		}
		if time.Now().After(end) {
			t.Fatal("both are taken")
		}
	}
	must.Get(io.WriteString(w, `"}`))
	w.Close()
	if status := <-first; status != http.StatusOK {
		t.Errorf("the first got %d", status)
	}
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		status, text := post(t, s.url+"/v1/completions", large)
		if status == http.StatusOK {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("behind the first, %d %s", status, text)
		}
	}
}
