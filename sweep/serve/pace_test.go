//go:build unix

package serve

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// clientVariable makes the test binary a client: "ADDRESS RATE TOKENS SECONDS".
const clientVariable = "PLANNER_SERVE_CLIENT"

func TestMain(m *testing.M) {
	if args := os.Getenv(clientVariable); args != "" {
		if err := poissonClient(args); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// poissonClient sends requests at exponential gaps and reads the streams away. It
// is a process of its own so that the server's CPU time can be told from it.
func poissonClient(args string) error {
	var addr string
	var rate, lasting float64
	var tokens int
	if _, err := fmt.Sscan(args, &addr, &rate, &tokens, &lasting); err != nil {
		return err
	}
	body := fmt.Sprintf(`{"prompt":[1,2,3],"max_tokens":%d,"ignore_eos":true,"stream":true,"stream_options":{"include_usage":true,"continuous_usage_stats":true}}`, tokens)
	request := fmt.Appendf(nil, "POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	rng := rand.New(rand.NewPCG(1, 2))
	idle := make(chan net.Conn, 10000)
	var wg sync.WaitGroup
	failures := make(chan error, 1)
	start := time.Now()
	for due := 0.0; due < lasting; due += rng.ExpFloat64() / rate {
		time.Sleep(time.Until(start.Add(time.Duration(due * 1e9))))
		wg.Go(func() {
			if err := oneStream(addr, request, idle); err != nil {
				select {
				case failures <- err:
				default:
				}
			}
		})
	}
	wg.Wait()
	select {
	case err := <-failures:
		return err
	default:
		return nil
	}
}

func oneStream(addr string, request []byte, idle chan net.Conn) (err error) {
	var c net.Conn
	select {
	case c = <-idle:
	default:
		if c, err = net.Dial("tcp", addr); err != nil {
			return err
		}
	}
	if _, err := c.Write(request); err != nil {
		return err
	}
	buf := make([]byte, 4096)
	for {
		n, err := c.Read(buf)
		if err != nil {
			return err
		}
		if bytes.HasSuffix(buf[:n], []byte("\r\n0\r\n\r\n")) {
			idle <- c
			return nil
		}
	}
}

func cpuTime() time.Duration {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkPaced serves streams of 100 tokens, one every 5 ms, to a client in
// another process, and reports how late tokens leave and what they cost. One
// iteration takes five seconds:
//
//	go test -run - -bench Paced -benchtime 1x ./sweep/serve
func BenchmarkPaced(b *testing.B) {
	const tokens, seconds = 100, 5
	for _, rate := range []int{20, 200, 400, 800} {
		for _, engine := range []string{"fixed", "modelled"} {
			b.Run(engine+"/"+strconv.Itoa(rate), func(b *testing.B) {
				for range b.N {
					s := &Simulator{Fixed: Fixed{TTFT: constant(50 * time.Millisecond), TPOT: constant(5 * time.Millisecond)}}
					if engine == "modelled" {
						s = &Simulator{Timer: steady{0.005, 0.001}, Config: small()}
						s.Config.Seqs, s.Config.Blocks = 1024, 100_000
					}
					r := run(b, s)
					before := cpuTime()
					sendLoad(b, r.url, rate, tokens, seconds)
					used := cpuTime() - before
					all := r.emissions(b)
					late := lateness(all)
					n := len(late)
					if n < rate*tokens*seconds/2 {
						b.Fatalf("%d tokens of %d requests", n, len(all))
					}
					b.ReportMetric(late[n/2].Seconds()*1e6, "p50-late-us")
					b.ReportMetric(late[n*99/100].Seconds()*1e6, "p99-late-us")
					b.ReportMetric(used.Seconds()/seconds, "cores")
					b.ReportMetric(float64(n)/used.Seconds(), "tokens/s/core")
				}
			})
		}
	}
}

// sendLoad runs poissonClient in a process of its own.
func sendLoad(t testing.TB, url string, rate, tokens, seconds int) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %d %d %d", clientVariable, strings.TrimPrefix(url, "http://"), rate, tokens, seconds))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("client: %v\n%s", err, out)
	}
}
