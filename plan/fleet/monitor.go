package fleet

import (
	"math"
	"slices"
	"strings"
	"time"

	"gonum.org/v1/gonum/stat"

	"planner/internal/list"
	"planner/model/sim"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

// Metric is a metric that an autoscaler watches, and its target: for per-replica metrics the mean, for
// latencies and saturation the value.
type Metric struct {
	Name   string  `json:"metric"`
	Target float64 `json:"target"`
	// Activation is the value above which a KEDA trigger is active.
	Activation float64 `json:"activation,omitempty"`
}

// MetricNames lists the metrics.
func MetricNames() []string {
	return []string{"in_flight", "waiting", "kv_usage", "requests_per_s", "tokens_per_s", "ttft_p50_ms", "ttft_p90_ms", "ttft_p99_ms", "saturation"}
}

// ofFleet reports whether the metric has one value for the whole fleet.
func (m Metric) ofFleet() bool { return strings.HasPrefix(m.Name, "ttft") || m.Name == "saturation" }

// Monitor configures how the fleet is monitored.
type Monitor struct {
	// Scrape is the time between two scrapes, Window that over which values are averaged; 0 takes the last
	// scrape. What a controller sees is Delay old.
	Scrape time.Duration `json:"scrape_s"`
	Window time.Duration `json:"window_s"`
	Delay  time.Duration `json:"delay_s"`
	// Predicted computes the saturation from the latencies predicted when a request is routed, instead of those
	// measured.
	Predicted bool `json:"predicted"`
	// Quantile is that of a latency in the window, divided by its limit for the saturation; 0 takes the mean.
	Quantile float64 `json:"quantile"`
}

// scrape is a sample of a replica's metrics; the last three are counters.
type scrape struct {
	at                                  float64
	inFlight, waiting, kv               float64
	arrived, promptTokens, outputTokens float64
}

// observed is a latency in seconds, or 1 for an arrival, at a time in seconds.
type observed struct{ at, value float64 }

// limited are observations of a class's TTFT or TPOT, and its limit in seconds.
type limited struct {
	limit float64
	seen  []observed
}

// monitor holds the observations that a controller may still see.
type monitor struct {
	on   bool
	spec *Monitor
	// output is the mean number of output tokens, which a latency predictor is taken to know.
	output float64
	ttft   []observed
	// limits are TTFT and TPOT of each class; a limit of 0 means none.
	limits [][2]limited
	// arrivals are the attempts as they arrive, including those that find no replica.
	arrivals []observed
	// sums are the totals of all samples and, for the counters, of all requests that ended.
	sums             scrape
	samples, scrapes int
}

func (m *monitor) begin(f *fleetRun) {
	a := &f.s.Policy.Autoscaler
	m.on, m.spec = true, &a.Monitor
	m.limits = list.Map(f.s.Limits, func(l ClassLimits) [2]limited {
		return [2]limited{{limit: l.TTFT.Seconds()}, {limit: l.TPOT.Seconds()}}
	})
	tokens := list.Sum(f.requests, func(q *workload.Request) int { return q.Output })
	m.output = float64(tokens) / float64(max(len(f.requests), 1))
	f.at(m.spec.Scrape.Seconds(), func() { m.scrape(f) })
	f.at(f.control.at(), f.decide)
}

func (m *monitor) scrape(f *fleetRun) {
	from := f.now - m.spec.Window.Seconds() - m.spec.Delay.Seconds() - 2*m.spec.Scrape.Seconds()
	for _, r := range f.targets {
		o := r.engine.Occupancy()
		now := scrape{f.now, float64(r.flight.requests), float64(o.Waiting), o.KV,
			float64(r.arrived), float64(r.promptTokens), float64(r.outputTokens)}
		m.samples++
		m.sums.inFlight += now.inFlight
		m.sums.kv += now.kv
		r.samples = append(r.samples, now)
		r.samples = since(r.samples, from, func(s scrape) float64 { return s.at })
	}
	old := func(list *[]observed) { *list = since(*list, from, func(o observed) float64 { return o.at }) }
	old(&m.ttft)
	old(&m.arrivals)
	for i := range m.limits {
		old(&m.limits[i][0].seen)
		old(&m.limits[i][1].seen)
	}
	m.scrapes++
	f.at(float64(m.scrapes+1)*m.spec.Scrape.Seconds(), func() { m.scrape(f) })
}

// since drops entries older than a time if they are at least half of the list.
func since[T any](list []T, from float64, at func(T) float64) []T {
	n := 0
	for n < len(list) && at(list[n]) < from {
		n++
	}
	if n < len(list)/2 {
		return list
	}
	return list[:copy(list, list[n:])]
}

func (m *monitor) first(f *fleetRun, t *sim.Told) {
	if !m.on {
		return
	}
	v := t.At - f.calls[t.Request].due
	m.ttft = append(m.ttft, observed{f.now, v})
	if !m.spec.Predicted {
		m.notice(f, f.requests[t.Request].Class, 0, v)
	}
}

// ended records the time per token of an ended request, or what had been predicted for it: llm-d's router
// counts a prediction once the request's outcome is known.
func (m *monitor) ended(f *fleetRun, r *measure.Record) {
	if !m.on {
		return
	}
	m.sums.arrived++
	m.sums.promptTokens += float64(r.Prompt)
	m.sums.outputTokens += float64(r.Output)
	v, ok := r.TPOT()
	switch c := &f.calls[r.ID]; {
	case m.spec.Predicted && r.Outcome == measure.OK:
		m.notice(f, r.Class, 0, c.predicted[0])
		m.notice(f, r.Class, 1, c.predicted[1])
	case !m.spec.Predicted && ok:
		m.notice(f, r.Class, 1, v.Seconds())
	}
}

// means returns the means of the per-replica metrics that grow with load over all samples; nil if there are
// none.
func (m *monitor) means() map[string]float64 {
	if m.samples == 0 {
		return nil
	}
	n := float64(m.samples)
	seconds := n * m.spec.Scrape.Seconds()
	return map[string]float64{"in_flight": m.sums.inFlight / n, "kv_usage": m.sums.kv / n,
		"requests_per_s": m.sums.arrived / seconds, "tokens_per_s": (m.sums.promptTokens + m.sums.outputTokens) / seconds}
}

// notice records a latency if it has a limit.
func (m *monitor) notice(f *fleetRun, class, kind int, v float64) {
	if l := &m.limits[class][kind]; l.limit > 0 {
		l.seen = append(l.seen, observed{f.now, v})
	}
}

// arrived records an arriving attempt, whether or not a replica takes it.
func (m *monitor) arrived(f *fleetRun) {
	if m.on {
		m.arrivals = append(m.arrivals, observed{f.now, 1})
	}
}

// routed predicts a request's latencies on the replica that it is routed to.
func (m *monitor) routed(f *fleetRun, r *replica, id int) {
	if m.on && m.spec.Predicted {
		p := &f.calls[id].predicted
		p[0], p[1] = r.engine.Predict(f.requests[id].Prompt, m.output)
	}
}

// view is what a controller sees.
type view struct {
	now          float64
	asked, ready int
	f            *fleetRun
}

// seen returns the time of the last visible scrape.
func (v *view) seen() float64 {
	spec := v.f.monitor.spec
	every := spec.Scrape.Seconds()
	return every * math.Floor((v.now-spec.Delay.Seconds())/every+1e-9)
}

// pods returns a metric's value for each replica that is not draining.
func (v *view) pods(name string) []podMetric {
	var all []podMetric
	for _, r := range v.f.replicas {
		switch r.state {
		case pending:
			all = append(all, podMetric{unready: true})
		case starting:
			all = append(all, podMetric{})
		case ready:
			value, ok := v.podValue(r, name)
			all = append(all, podMetric{value: value, known: ok})
		}
	}
	return all
}

// podValue returns the mean of a gauge over the window, or the rate of a counter.
func (v *view) podValue(r *replica, name string) (float64, bool) {
	spec := v.f.monitor.spec
	end := len(r.samples)
	for end > 0 && r.samples[end-1].at > v.seen() {
		end--
	}
	if end == 0 {
		return 0, false
	}
	begin := end - 1
	for begin > 0 && r.samples[begin-1].at > v.seen()-spec.Window.Seconds() {
		begin--
	}
	window := r.samples[begin:end]
	level := func(of func(*scrape) float64) (float64, bool) {
		sum := 0.0
		for i := range window {
			sum += of(&window[i])
		}
		return sum / float64(len(window)), true
	}
	rate := func(of func(*scrape) float64) (float64, bool) {
		last, first := &window[len(window)-1], scrape{at: r.readyAt}
		if begin > 0 {
			first = r.samples[begin-1]
		}
		if last.at <= first.at {
			return 0, false
		}
		return (of(last) - of(&first)) / (last.at - first.at), true
	}
	switch name {
	case "waiting":
		return level(func(s *scrape) float64 { return s.waiting })
	case "kv_usage":
		return level(func(s *scrape) float64 { return s.kv })
	case "requests_per_s":
		return rate(func(s *scrape) float64 { return s.arrived })
	case "tokens_per_s":
		return rate(func(s *scrape) float64 { return s.promptTokens + s.outputTokens })
	}
	return level(func(s *scrape) float64 { return s.inFlight })
}

// value returns a metric of the whole fleet, or the sum of a per-replica metric; false if unknown.
func (v *view) value(m Metric) (float64, bool) {
	if m.ofFleet() {
		return v.fleetValue(m.Name)
	}
	return v.total(m.Name), true
}

// fleetValue returns a metric of the whole fleet; false if unknown.
func (v *view) fleetValue(name string) (float64, bool) {
	m := &v.f.monitor
	if name == "saturation" {
		worst, known := 0.0, false
		for i := range m.limits {
			for kind, bounds := range [2][]float64{routerTTFT[:], routerTPOT[:]} {
				l := &m.limits[i][kind]
				if x, ok := v.statistic(l.seen, m.spec.Quantile, bounds); ok {
					worst, known = max(worst, x/l.limit), true
				}
			}
		}
		return worst, known
	}
	x, ok := v.statistic(m.ttft, map[string]float64{"ttft_p50_ms": 0.5, "ttft_p90_ms": 0.9, "ttft_p99_ms": 0.99}[name], engineTTFT[:])
	return 1000 * x, ok
}

// total returns the sum of a metric over the replicas, including requests that are queued for any of them.
func (v *view) total(name string) float64 {
	if name == "requests_per_s" {
		window := min(max(v.f.monitor.spec.Window, v.f.monitor.spec.Scrape).Seconds(), max(v.seen(), 1))
		return float64(len(v.window(v.f.monitor.arrivals, window))) / window
	}
	sum := list.Sum(v.pods(name), func(p podMetric) float64 { return p.value })
	if name == "in_flight" || name == "waiting" {
		sum += float64(len(v.f.queue))
	}
	return sum
}

// window returns the values up to length seconds before the last visible scrape.
func (v *view) window(all []observed, length float64) []float64 {
	var values []float64
	for _, o := range slices.Backward(all) {
		if o.at > v.seen() {
			continue
		}
		if o.at <= v.seen()-length {
			break
		}
		values = append(values, o.value)
	}
	return values
}

// statistic returns a quantile over the window as computed from a histogram, or the mean.
func (v *view) statistic(all []observed, quantile float64, bounds []float64) (float64, bool) {
	values := v.window(all, max(v.f.monitor.spec.Window, v.f.monitor.spec.Scrape).Seconds())
	switch {
	case len(values) == 0:
		return 0, false
	case quantile == 0:
		return stat.Mean(values, nil), true
	}
	return histogramQuantile(values, quantile, bounds), true
}

func (f *fleetRun) decide() {
	v := &view{now: f.now, asked: f.asked, ready: len(f.targets), f: f}
	want, why := f.control.decide(v)
	if want = min(max(want, f.s.Policy.Min), f.s.Policy.Max); want != f.asked {
		f.episode.Decisions = append(f.episode.Decisions, Decision{f.now, f.asked, want, why})
		f.ask(want)
	}
	f.at(f.control.at(), f.decide)
}
