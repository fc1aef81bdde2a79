package load

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"planner/internal/evidence/must"
)

// serverMode is the environment variable that makes the test binary a server
// in a process of its own, so that the client's processor time is its own.
const serverMode = "PLANNER_LOAD_TEST_SERVER"

func TestMain(m *testing.M) {
	if mode := os.Getenv(serverMode); mode != "" {
		os.Exit(serveProcess(mode))
	}
	os.Exit(m.Run())
}

// emission is when a token left the server process, on the kernel's monotonic
// clock.
type emission struct {
	key   string
	token int
	at    int64
}

func monotonic() int64 {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts) != nil {
		return 0
	}
	return ts.Nano()
}

// serveProcess serves until standard input ends, then writes its emission log.
func serveProcess(mode string) int {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	var mu sync.Mutex
	var log []emission
	var h handler
	switch mode {
	case "burst":
		h = burst(false)
	case "flush":
		h = burst(true)
	case "paced":
		h = func(c net.Conn, a asked) bool {
			mine := make([]emission, 0, a.tokens)
			key := promptKey(a.body)
			ok := paced(50*time.Millisecond, 5*time.Millisecond, func(token int) {
				mine = append(mine, emission{key, token, monotonic()})
			})(c, a)
			mu.Lock()
			log = append(log, mine...)
			mu.Unlock()
			return ok
		}
	}
	stop := serveOn(l, h)
	fmt.Println(l.Addr())
	io.Copy(io.Discard, os.Stdin)
	stop()
	out := bufio.NewWriter(os.Stdout)
	for _, e := range log {
		fmt.Fprintln(out, e.key, e.token, e.at)
	}
	out.Flush()
	return 0
}

// burst answers at once: with the whole stream in one write, or with a write
// for every event.
func burst(flush bool) handler {
	var mu sync.Mutex
	whole := map[int][][]byte{}
	return func(c net.Conn, a asked) bool {
		mu.Lock()
		parts := whole[a.tokens]
		if parts == nil {
			parts = [][]byte{[]byte(streamHead)}
			for n := range a.tokens {
				parts = append(parts, []byte(chunked(tokenEvent(" word", promptTokens(a.body), n+1))))
			}
			parts = append(parts, []byte(ending(promptTokens(a.body), a.tokens)))
			if !flush {
				var all []byte
				for _, p := range parts {
					all = append(all, p...)
				}
				parts = [][]byte{all}
			}
			whole[a.tokens] = parts
		}
		mu.Unlock()
		for _, p := range parts {
			if _, err := c.Write(p); err != nil {
				return false
			}
		}
		return true
	}
}

// promptKey identifies a request by the first tokens of its prompt.
func promptKey(body []byte) string {
	_, rest, _ := strings.Cut(string(body), `"prompt":[`)
	ids, _, _ := strings.Cut(rest, "]")
	return ids[:min(len(ids), 48)]
}

// process is a server in a process of its own.
type process struct {
	url string
	in  io.Closer
	out *bufio.Scanner
	cmd *exec.Cmd
}

func startProcess(t testing.TB, mode string) *process {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), serverMode+"="+mode)
	cmd.Stderr = os.Stderr
	in := must.Get(cmd.StdinPipe())
	out := must.Get(cmd.StdoutPipe())
	must.OK(cmd.Start())
	p := &process{in: in, out: bufio.NewScanner(out), cmd: cmd}
	t.Cleanup(func() { in.Close(); cmd.Wait() })
	if !p.out.Scan() {
		t.Fatal("the server process did not start")
	}
	p.url = "http://" + p.out.Text()
	return p
}

// stop ends the server and returns its emissions by request.
func (p *process) stop(t testing.TB) map[string][]int64 {
	t.Helper()
	p.in.Close()
	log := map[string][]int64{}
	for p.out.Scan() {
		var e emission
		must.Get(fmt.Sscan(p.out.Text(), &e.key, &e.token, &e.at))
		if e.token != len(log[e.key]) {
			t.Fatalf("token %d of %s out of order", e.token, e.key)
		}
		log[e.key] = append(log[e.key], e.at)
	}
	return log
}
