package load

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"planner/internal/evidence/must"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

// asked is a request as the test server saw it.
type asked struct {
	tokens int
	head   string
	// length is what the head says of the body.
	length int
	body   []byte
	// at is when it had arrived.
	at time.Time
}

// handler answers one request by writing raw HTTP. It reports whether the
// connection stays open.
type handler func(c net.Conn, a asked) bool

// serve runs a bare HTTP/1.1 server on loopback that hands every POST to h, and
// returns its URL. It lasts as long as the test.
func serve(t testing.TB, h handler) string {
	t.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))
	stop := serveOn(l, h)
	t.Cleanup(stop)
	return "http://" + l.Addr().String()
}

// observe runs a trial to its end.
func observe(t *testing.T, c *Client, trial measure.Trial, schedule []workload.Request) measure.Observation {
	t.Helper()
	return must.Get(c.Run(t.Context(), trial, schedule))
}

// piped is a client of a server behind pipes, whose connections it hands to serve.
func piped(serve func(net.Conn)) *Client {
	return &Client{URL: "http://server", Model: "m", Stream: true, Engine: "vllm", plainTimer: true,
		dial: func(context.Context, string, string) (net.Conn, error) {
			client, server := net.Pipe()
			serve(server)
			return pipeEnd{client}, nil
		}}
}

// pipeEnd is an end of a pipe that reports the other end's close as TCP does.
type pipeEnd struct{ net.Conn }

func (p pipeEnd) Write(b []byte) (int, error) {
	n, err := p.Conn.Write(b)
	if errors.Is(err, io.ErrClosedPipe) {
		err = syscall.EPIPE
	}
	return n, err
}

func serveOn(l net.Listener, h handler) (stop func()) {
	return serveConns(l, func(c net.Conn) { answerAll(c, h) })
}

// serveConns hands every connection to serve.
func serveConns(l net.Listener, serve func(net.Conn)) (stop func()) {
	var mu sync.Mutex
	conns := map[net.Conn]bool{}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			conns[c] = true
			mu.Unlock()
			wg.Go(func() {
				serve(c)
				mu.Lock()
				delete(conns, c)
				mu.Unlock()
			})
		}
	})
	return func() {
		l.Close()
		mu.Lock()
		for c := range conns {
			c.Close()
		}
		mu.Unlock()
		wg.Wait()
	}
}

func answerAll(c net.Conn, h handler) {
	defer c.Close()
	r := bufio.NewReaderSize(c, 64<<10)
	for {
		a, err := readAsked(r)
		if err != nil || !h(c, a) {
			return
		}
	}
}

func readAsked(r *bufio.Reader) (asked, error) {
	a, err := readHead(r)
	if err == nil {
		err = a.readBody(r)
	}
	return a, err
}

func readHead(r *bufio.Reader) (a asked, err error) {
	for {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return a, err
		}
		a.head += string(line)
		if len(line) == 2 {
			return a, nil
		}
		if v, ok := bytes.CutPrefix(line, []byte("Content-Length: ")); ok {
			a.length, _ = strconv.Atoi(string(bytes.TrimSpace(v)))
		}
	}
}

func (a *asked) readBody(r *bufio.Reader) error {
	a.body = make([]byte, a.length)
	if _, err := io.ReadFull(r, a.body); err != nil {
		return err
	}
	a.at = time.Now()
	_, rest, _ := bytes.Cut(a.body, []byte(`"max_tokens":`))
	for i := 0; i < len(rest) && rest[i] >= '0' && rest[i] <= '9'; i++ {
		a.tokens = 10*a.tokens + int(rest[i]-'0')
	}
	return nil
}

const (
	streamHead = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
	lastChunk  = "0\r\n\r\n"
)

// chunked frames bytes as one chunk of a body.
func chunked(s string) string { return fmt.Sprintf("%x\r\n%s\r\n", len(s), s) }

// tokenEvent is the event of the n-th token, in the form in which vLLM sends it
// when running counts are asked for.
func tokenEvent(text string, prompt, n int) string {
	return fmt.Sprintf(`data: {"id":"cmpl-7b1f0c3f2a4e4b7f9d0e6a5c8b1d2e3f","object":"text_completion","created":1790000000,"model":"m",`+
		`"choices":[{"index":0,"text":"%s","logprobs":null,"finish_reason":null,"stop_reason":null,"token_ids":null}],`+
		`"usage":{"prompt_tokens":%d,"total_tokens":%d,"completion_tokens":%d}}`+"\n\n", text, prompt, prompt+n, n)
}

func finishEvent() string {
	return `data: {"id":"cmpl-7b1f","object":"text_completion","created":1790000000,"model":"m","choices":[{"index":0,"text":"","logprobs":null,"finish_reason":"length"}]}` + "\n\n"
}

func usageEvent(prompt, completion int) string {
	return fmt.Sprintf(`data: {"id":"cmpl-7b1f","object":"text_completion","model":"m","choices":[],"usage":{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d}}`+"\n\n",
		prompt, completion, prompt+completion)
}

const doneEvent = "data: [DONE]\n\n"

// ending is what follows the last token of a good stream.
func ending(prompt, completion int) string {
	return chunked(finishEvent()) + chunked(usageEvent(prompt, completion)) + chunked(doneEvent) + lastChunk
}

// paced answers with one token at ttft and each of the others tpot later, on deadlines of its own
// that count from the arrival of the request. leaves, if it is not nil, is called right before each
// token leaves.
func paced(ttft, tpot time.Duration, leaves func(token int)) handler {
	return func(c net.Conn, a asked) bool {
		p, err := newPacer()
		if err != nil {
			return false
		}
		p.lead = 0
		defer p.close()
		prompt := promptTokens(a.body)
		for i := range a.tokens {
			b := []byte(chunked(tokenEvent(" word", prompt, i+1)))
			if i == 0 {
				b = append([]byte(streamHead), b...)
			}
			if i == a.tokens-1 {
				b = append(b, ending(prompt, a.tokens)...)
			}
			p.until(context.Background(), a.at.Add(ttft+time.Duration(i)*tpot))
			if leaves != nil {
				leaves(i)
			}
			if _, err := c.Write(b); err != nil {
				return false
			}
		}
		return true
	}
}

// promptTokens counts the ids of a token prompt.
func promptTokens(body []byte) int {
	_, rest, _ := bytes.Cut(body, []byte(`"prompt":[`))
	ids, _, _ := bytes.Cut(rest, []byte("]"))
	return bytes.Count(ids, []byte(",")) + 1
}
