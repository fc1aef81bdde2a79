package load

import (
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"planner/internal/stat"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

// queue is a server with one place and a first-come-first-served queue: request
// k, in the order of arrival, takes service(k).
type queue struct {
	mu      sync.Mutex
	service func(k int) time.Duration
	arrived int
	free    time.Time
}

func (q *queue) serve(c net.Conn, a asked) bool {
	q.mu.Lock()
	begin := a.at
	if q.free.After(begin) {
		begin = q.free
	}
	q.free = begin.Add(q.service(q.arrived))
	q.arrived++
	leave := q.free
	q.mu.Unlock()
	if d := time.Until(leave); d > 0 {
		time.Sleep(d)
	}
	_, err := c.Write([]byte(streamHead + chunked(tokenEvent(" w", promptTokens(a.body), 1)) + ending(promptTokens(a.body), 1)))
	return err == nil
}

// services draws the service times of n requests: all alike (M/D/1), or
// exponential (M/M/1).
func services(exponential bool, mean time.Duration, n int, seed uint64) func(int) time.Duration {
	if !exponential {
		return func(int) time.Duration { return mean }
	}
	rng := rand.New(rand.NewPCG(seed, 1))
	all := make([]time.Duration, n)
	for i := range all {
		all[i] = time.Duration(rng.ExpFloat64() * float64(mean))
	}
	return func(k int) time.Duration { return all[k] }
}

// lindley computes the times in the system by Lindley's recursion (1952).
func lindley(schedule []workload.Request, service func(int) time.Duration) []time.Duration {
	out := make([]time.Duration, len(schedule))
	free := time.Duration(0)
	for k, r := range schedule {
		free = max(free, r.Due) + service(k)
		out[k] = free - r.Due
	}
	return out
}

// summary is the mean and the 99th percentile of latencies, in seconds.
func summary(d []time.Duration) (mean, p99 float64) {
	for _, x := range d {
		mean += x.Seconds() / float64(len(d))
	}
	return mean, stat.Quantile(slices.Sorted(slices.Values(d)), 0.99).Seconds()
}

// latencies runs the schedule and returns the times in the system.
func latencies(t *testing.T, c *Client, trial measure.Trial, schedule []workload.Request) []time.Duration {
	obs := observe(t, c, trial, schedule)
	out := make([]time.Duration, len(obs.Records))
	for i, r := range obs.Records {
		d, ok := r.E2E()
		if !ok {
			t.Fatalf("%+v", r)
		}
		out[i] = d
	}
	return out
}

// TestQueues measures M/D/1 and M/M/1 servers in virtual time: every latency is
// that of Lindley's recursion, and the mean is within three standard errors of
// Pollaczek and Khinchine's. PLANNER_TIMING=1 runs the two million requests
// that the p99 of M/M/1 at 0.85 takes to be within 3 % of its closed form; they
// last some minutes.
func TestQueues(t *testing.T) {
	const mean = 10 * time.Millisecond
	seed := uint64(0)
	for _, exponential := range []bool{false, true} {
		for _, rho := range []float64{0.5, 0.7, 0.85} {
			seed++ // Cases of one draw would be one test.
			n := 2000.0
			if strict() {
				n = 100_000
				if exponential && rho == 0.85 {
					n = 2_000_000
				}
			}
			rate := rho / mean.Seconds()
			t.Run(fmt.Sprintf("exponential=%v/%g", exponential, rho), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					trial := measure.Trial{Workload: fixedLengths(4, 1, workload.Poisson), Rate: rate,
						Window: time.Duration(n / rate * float64(time.Second)), Seed: seed}
					trial.Workload.Timeout = 0
					schedule := trial.Schedule()
					service := services(exponential, mean, len(schedule), seed+100)
					q := &queue{service: service}
					c := piped(func(c net.Conn) { go answerAll(c, q.serve) })
					got, want := latencies(t, c, trial, schedule), lindley(schedule, service)
					for k := range want {
						if got[k] != want[k] {
							t.Fatalf("request %d took %v, by Lindley's recursion %v", k, got[k], want[k])
						}
					}
					compareClosedForm(t, got, rho, mean.Seconds(), exponential)
				})
			})
		}
	}
}

// compareClosedForm holds the mean time in the system to that of the
// Pollaczek-Khinchine formula within three standard errors, by the means of 20
// batches, and the p99 of a long M/M/1 run to its exponential law within 3 %.
func compareClosedForm(t *testing.T, got []time.Duration, rho, service float64, exponential bool) {
	square := 1.0
	if exponential {
		square = 2
	}
	want := service + rho*service*square/(2*(1-rho))
	mean, p99 := summary(got)
	const batches = 20
	sum := 0.0
	for b := range batches {
		m, _ := summary(got[b*len(got)/batches : (b+1)*len(got)/batches])
		sum += (m - mean) * (m - mean)
	}
	deviation := math.Sqrt(sum / (batches - 1) / batches)
	if math.Abs(mean-want) > 3*deviation {
		t.Errorf("mean %.3f ms, closed form %.3f ms, standard error %.3f ms", 1e3*mean, 1e3*want, 1e3*deviation)
	}
	if law := math.Log(100) * service / (1 - rho); exponential && len(got) > 1_000_000 && math.Abs(p99/law-1) > 0.03 {
		t.Errorf("p99 %.3f ms, closed form %.3f ms", 1e3*p99, 1e3*law)
	}
}

// TestQueuesOnLoopback measures the same servers over the network, against
// Lindley's recursion on the same arrivals and services: within 3 % on an idle
// machine (PLANNER_TIMING=1), and nowhere below it.
func TestQueuesOnLoopback(t *testing.T) {
	const mean = 20 * time.Millisecond
	window, tolerance := 1500*time.Millisecond, 0.5
	if strict() {
		window, tolerance = 30*time.Second, 0.03
	}
	for _, exponential := range []bool{false, true} {
		for _, rho := range []float64{0.5, 0.7, 0.85} {
			if !strict() && rho != 0.7 {
				continue
			}
			t.Run(fmt.Sprintf("exponential=%v/%g", exponential, rho), func(t *testing.T) {
				trial := measure.Trial{Workload: fixedLengths(4, 1, workload.Poisson), Rate: rho / mean.Seconds(), Window: window, Seed: 5}
				schedule := trial.Schedule()
				service := services(exponential, mean, len(schedule), 9)
				q := &queue{service: service}
				c := &Client{URL: serve(t, q.serve), Model: "m", Stream: true, Engine: "vllm"}
				gotMean, got99 := summary(latencies(t, c, trial, schedule))
				wantMean, want99 := summary(lindley(schedule, service))
				t.Logf("%d requests: mean %.2f ms (Lindley %.2f), p99 %.2f ms (%.2f)", len(schedule), 1e3*gotMean, 1e3*wantMean, 1e3*got99, 1e3*want99)
				if gotMean > wantMean*(1+tolerance) || got99 > want99*(1+tolerance) {
					t.Errorf("more than %.0f %% above", 100*tolerance)
				}
				if gotMean < wantMean || got99 < want99 {
					t.Error("faster than the queue allows")
				}
			})
		}
	}
}

// TestOneConnectionAtATime measures a server as simple as can be: HTTP/1.0, one
// loop that accepts a connection, reads a request, works for 10 ms, answers and
// closes. In virtual time every latency is that of Lindley's recursion, that of
// the first requests too, which find connections opened ahead.
func TestOneConnectionAtATime(t *testing.T) {
	const mean = 10 * time.Millisecond
	for _, ending := range []string{
		"data: [DONE]\r\n\r\n",
		"data: {\"choices\":[],\"usage\":{\"prompt_tokens\":4,\"completion_tokens\":1}}\n", // the last line is left open
	} {
		synctest.Test(t, func(t *testing.T) {
			trial := measure.Trial{Workload: fixedLengths(4, 1, workload.Poisson), Rate: 70, Window: 5 * time.Second, Seed: 8}
			schedule := trial.Schedule()
			accept := make(chan net.Conn, len(schedule)+inTurn)
			answer := func(c net.Conn, _ asked) bool {
				time.Sleep(mean)
				io.WriteString(c, "HTTP/1.0 200 OK\nContent-Type: text/event-stream; charset=utf-8\n\n: here it comes\r\n\r\n"+
					"event: message\r\ndata:{\"choices\":\r\ndata: [{\"index\":0,\"text\":\" w\",\"finish_reason\":\"length\"}]}\r\n\r\n"+ending)
				return false
			}
			go func() {
				for c := range accept {
					answerAll(c, answer)
				}
			}()
			c := piped(func(c net.Conn) { accept <- c })
			got, want := latencies(t, c, trial, schedule), lindley(schedule, services(false, mean, len(schedule), 1))
			for k := range want {
				if got[k] != want[k] {
					t.Fatalf("request %d took %v, by Lindley's recursion %v", k, got[k], want[k])
				}
			}
			close(accept)
		})
	}
}
