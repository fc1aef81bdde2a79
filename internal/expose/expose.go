// Package expose exports the progress of a load test to Prometheus.
package expose

import (
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"planner/sweep/load"
	"planner/sweep/measure"
)

// Exporter exposes the running load test as a page for Prometheus to scrape or as a text file for a node
// exporter. It receives events as a [planner/sweep.Watcher].
type Exporter struct {
	registry *prometheus.Registry
	file     string
	server   *http.Server
	quit     chan struct{}
	writing  sync.WaitGroup

	mu sync.Mutex
	// test is the running test, nil between two, and trial its specification. last is the final state of the
	// previous test, with the counts of all tests that ended. mu guards them all.
	test  *load.Test
	trial measure.Trial
	last  load.Interim
}

// every is the time between two writes of the file.
const every = time.Second

// New exposes at an address, such as ":9099" or "127.0.0.1:9099"; any other text is the name of a file.
func New(where string) (*Exporter, error) {
	x := &Exporter{registry: prometheus.NewRegistry(), quit: make(chan struct{})}
	x.registry.MustRegister(x)
	if _, port, err := net.SplitHostPort(where); err != nil || strings.ContainsRune(port, filepath.Separator) {
		x.file = where
		if err := x.write(); err != nil {
			return nil, fmt.Errorf("--prometheus: %w", err)
		}
		x.writing.Go(x.keepWriting)
		return x, nil
	}
	l, err := net.Listen("tcp", where)
	if err != nil {
		return nil, fmt.Errorf("--prometheus: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(x.registry, promhttp.HandlerOpts{}))
	x.server = &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	x.writing.Go(func() { _ = x.server.Serve(l) }) // until Close
	return x, nil
}

// See receives the running load test.
func (x *Exporter) See(event any) {
	x.mu.Lock()
	defer x.mu.Unlock()
	switch e := event.(type) {
	case []measure.Trial:
		x.trial = e[0]
	case *load.Test:
		x.end()
		x.test = e
	case measure.Measurement:
		x.end()
	}
}

// end adds the test that ran to the past ones. The caller holds mu.
func (x *Exporter) end() {
	if x.test == nil {
		return
	}
	x.last, x.test = x.now(), nil
	x.last.InFlight, x.last.Rate, x.last.Left = 0, 0, 0
}

// now returns the state of the running or last test, with the counts of all tests. The caller holds mu.
func (x *Exporter) now() load.Interim {
	if x.test == nil {
		return x.last
	}
	s := x.test.Interim()
	s.Sent, s.Done, s.Failed = s.Sent+x.last.Sent, s.Done+x.last.Done, s.Failed+x.last.Failed
	return s
}

// write replaces the file.
func (x *Exporter) write() error { return prometheus.WriteToTextfile(x.file, x.registry) }

func (x *Exporter) keepWriting() {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		_ = x.write() // Close reports an error of the last write
		select {
		case <-tick.C:
		case <-x.quit:
			return
		}
	}
}

// Close writes the last state and stops.
func (x *Exporter) Close() error {
	x.mu.Lock()
	x.end()
	x.mu.Unlock()
	close(x.quit)
	if x.server != nil {
		err := x.server.Close()
		x.writing.Wait()
		return err
	}
	x.writing.Wait()
	if err := x.write(); err != nil {
		return fmt.Errorf("--prometheus: %w", err)
	}
	return nil
}

// Describe sends nothing, which makes the [prometheus.Collector] an unchecked one.
func (x *Exporter) Describe(chan<- *prometheus.Desc) {}

// Collect implements [prometheus.Collector].
func (x *Exporter) Collect(to chan<- prometheus.Metric) {
	const gauge, counter = prometheus.GaugeValue, prometheus.CounterValue
	x.mu.Lock()
	s, offered, running := x.now(), x.trial.Rate, 0.0
	if x.test != nil {
		running = 1
	}
	x.mu.Unlock()
	for _, f := range []struct {
		name, help string
		kind       prometheus.ValueType
		value      float64
	}{
		{"trial_running", "Whether a load test runs.", gauge, running},
		{"trial_elapsed_seconds", "Time since the load test began.", gauge, s.Elapsed.Seconds()},
		{"trial_left_seconds", "What remains of its schedule; -1 of a closed loop.", gauge, max(s.Left.Seconds(), -1)},
		{"offered_requests_per_second", "Rate that is asked for; 0 of a closed loop.", gauge, offered},
		{"sent_requests_per_second", "Requests that left in the last whole second.", gauge, s.Rate},
		{"requests_in_flight", "Requests that left and did not end.", gauge, float64(s.InFlight)},
		{"requests_sent_total", "Requests that left, warm-up included.", counter, float64(s.Sent)},
		{"requests_done_total", "Requests that ended in any way.", counter, float64(s.Done)},
		{"requests_failed_total", "Requests without a good end.", counter, float64(s.Failed)},
	} {
		to <- prometheus.MustNewConstMetric(prometheus.NewDesc("planner_"+f.name, f.help, nil, nil), f.kind, f.value)
	}
	ttft := prometheus.NewDesc("planner_ttft_seconds",
		"Time to first token from the intended time, of the requests of the window that ended well so far.", []string{"quantile"}, nil)
	for quantile, d := range map[string]time.Duration{"0.5": s.TTFT50, "0.99": s.TTFT99} {
		if d > 0 {
			to <- prometheus.MustNewConstMetric(ttft, prometheus.GaugeValue, d.Seconds(), quantile)
		}
	}
}
