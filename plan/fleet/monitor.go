package fleet

import (
	"math"
	"slices"
	"strings"
	"time"

	"gonum.org/v1/gonum/stat"

	"planner/model/sim"
	"planner/sweep/measure"
)

// Metric is something an autoscaler looks at, and its target: of what every replica has
// the mean, of latencies and saturation the value.
type Metric struct {
	Name   string  `json:"metric"`
	Target float64 `json:"target"`
	// Activation is the value above which KEDA has a trigger for active.
	Activation float64 `json:"activation,omitempty"`
}

// MetricNames lists what can be seen.
func MetricNames() []string {
	return []string{"in_flight", "waiting", "kv_usage", "requests_per_s", "tokens_per_s", "ttft_p50_ms", "ttft_p90_ms", "ttft_p99_ms", "saturation"}
}

// ofFleet says that there is one value for the whole fleet.
func (m Metric) ofFleet() bool { return strings.HasPrefix(m.Name, "ttft") || m.Name == "saturation" }

// Monitor is how the fleet is looked at.
type Monitor struct {
	// Scrape is the time between two looks, Window that over which they are averaged;
	// 0 takes the last one. What is seen is Delay old.
	Scrape time.Duration `json:"scrape_s"`
	Window time.Duration `json:"window_s"`
	Delay  time.Duration `json:"delay_s"`
	// Predicted takes for the saturation what is predicted of each request when it is
	// routed, and not what was measured of those that got their tokens.
	Predicted bool `json:"predicted"`
	// Quantile of a latency over its limit in the window; 0 takes the mean.
	Quantile float64 `json:"quantile"`
}

// scrape is what a replica tells when it is scraped; the last three only grow.
type scrape struct {
	at                                  float64
	inFlight, waiting, kv               float64
	arrived, promptTokens, outputTokens float64
}

// observed is a latency at a time, in seconds, or as a share of its limit.
type observed struct{ at, value float64 }

// limited are the latencies of a class that have a limit: of the first token, or of the
// others.
type limited struct {
	limit float64
	seen  []observed
}

// monitor keeps what can be seen of a fleet for as long as somebody looks at it.
type monitor struct {
	on   bool
	spec *Monitor
	// output is the mean length of the answers, which a predictor knows.
	output float64
	ttft   []observed
	// limits are those of each class, without a limit 0.
	limits [][2]limited
	// arrivals are the requests as they came, those that found no replica too.
	arrivals []observed
	// sums are those of all samples, and of what all replicas did in between.
	sums             scrape
	samples, scrapes int
}

func (m *monitor) begin(f *fleetRun) {
	a := &f.s.Policy.Autoscaler
	m.on, m.spec = true, &a.Monitor
	for _, l := range f.s.Limits {
		m.limits = append(m.limits, [2]limited{{limit: l.TTFT.Seconds()}, {limit: l.TPOT.Seconds()}})
	}
	tokens := 0
	for _, q := range f.requests {
		tokens += q.Output
	}
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

// since drops what is older than a time, if it is worth it.
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

// ended notes the time per token of a request that is over, or what had been predicted
// of it: llm-d's router counts a prediction once it knows what became of the request.
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

// means are those of the metrics of a replica that grow with its load, over all that was
// seen; nil where nobody looked.
func (m *monitor) means() map[string]float64 {
	if m.samples == 0 {
		return nil
	}
	n := float64(m.samples)
	seconds := n * m.spec.Scrape.Seconds()
	return map[string]float64{"in_flight": m.sums.inFlight / n, "kv_usage": m.sums.kv / n,
		"requests_per_s": m.sums.arrived / seconds, "tokens_per_s": (m.sums.promptTokens + m.sums.outputTokens) / seconds}
}

// notice keeps a latency that has a limit.
func (m *monitor) notice(f *fleetRun, class, kind int, v float64) {
	if l := &m.limits[class][kind]; l.limit > 0 {
		l.seen = append(l.seen, observed{f.now, v})
	}
}

// arrived notes a request that comes, whether a replica takes it or not.
func (m *monitor) arrived(f *fleetRun) {
	if m.on {
		m.arrivals = append(m.arrivals, observed{f.now, 1})
	}
}

// routed predicts the latencies of a request on the replica that is about to get it.
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

// seen is the time of the last scrape that can be seen.
func (v *view) seen() float64 {
	spec := v.f.monitor.spec
	every := spec.Scrape.Seconds()
	return every * math.Floor((v.now-spec.Delay.Seconds())/every+1e-9)
}

// pods are the values of a metric of all replicas but those that drain.
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

// podValue is the mean of a level over the window, or the growth of a count.
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

// value is a metric of the whole fleet, or the sum of one of each replica; false if it is not known.
func (v *view) value(m Metric) (float64, bool) {
	if m.ofFleet() {
		return v.fleetValue(m.Name)
	}
	return v.total(m.Name), true
}

// fleetValue is a metric of the whole fleet.
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

// total is the sum of a metric over the replicas, with what waits for one of them.
func (v *view) total(name string) float64 {
	if name == "requests_per_s" {
		window := min(max(v.f.monitor.spec.Window, v.f.monitor.spec.Scrape).Seconds(), max(v.seen(), 1))
		return float64(len(v.window(v.f.monitor.arrivals, window))) / window
	}
	sum := 0.0
	for _, p := range v.pods(name) {
		sum += p.value
	}
	if name == "in_flight" || name == "waiting" {
		sum += float64(len(v.f.queue))
	}
	return sum
}

// window are the values that lie up to so many seconds back.
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

// statistic is a quantile of a window as a histogram shows it, or the mean.
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
