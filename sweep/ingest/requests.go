package ingest

import (
	"math"
	"slices"
	"time"

	"github.com/valyala/fastjson"

	"planner/internal/list"
	"planner/internal/note"
	"planner/sweep/measure"
)

// loggedRequest is one request of a file that lists requests, with times in seconds; NaN for what
// the file does not have.
type loggedRequest struct {
	begin, end, ttft, tpot, e2e, prompt, output float64
	// left marks requests that do not count, such as those of a warm-up.
	failed, left bool
}

func unknownRequest() loggedRequest {
	nan := math.NaN()
	return loggedRequest{begin: nan, end: nan, ttft: nan, tpot: nan, e2e: nan, prompt: nan, output: nan}
}

// pace returns the time per output token after the first, NaN if it is not known.
func (r *loggedRequest) pace() float64 {
	if !(r.output > 1) {
		return math.NaN()
	}
	return (r.e2e - r.ttft) / (r.output - 1)
}

// seconds returns the figure under a key of a request times a unit, NaN if there is none.
func (p *pointReader) seconds(path string, unit time.Duration) float64 {
	x, known, _ := p.figure(path)
	if !known {
		return math.NaN()
	}
	return x * unit.Seconds()
}

// requests sums up the requests of a file that lists them.
type requests struct {
	// times are the TTFT, TPOT and E2E of the completed ones.
	times                         [3][]time.Duration
	completed, failed             int
	first, last, prompts, outputs float64
}

func (p *pointReader) take(r loggedRequest) {
	all := &p.all
	switch {
	case r.left:
	case r.failed:
		all.failed++
	default:
		if all.completed++; all.completed == 1 {
			all.first, all.last = r.begin, r.end
		}
		all.first, all.last = min(all.first, r.begin), max(all.last, r.end)
		all.prompts, all.outputs = all.prompts+r.prompt, all.outputs+r.output
		for i, x := range []float64{r.ttft, r.tpot, r.e2e} {
			if d, ok := duration(x, time.Second); ok && d > 0 {
				all.times[i] = append(all.times[i], d)
			} else if !ok && !math.IsNaN(x) {
				p.fail("", "%g s is no latency of a request", x)
			}
		}
	}
}

// requests makes one load point of the requests that were gathered.
func (p *pointReader) requests() {
	all := p.all
	p.begin()
	if all.completed == 0 {
		p.fail("", "no request was completed: nothing was measured, leave it out")
		return
	}
	p.m.Requests = all.completed
	p.failed(all.failed)
	p.warnIf(p.twice > 0, note.RowsTwice, p.twice)
	all.summarize(&p.m)
	p.m.MeanPrompt, p.m.MeanOutput = orZero(all.prompts/float64(all.completed)), orZero(all.outputs/float64(all.completed))
	if run, ok := duration(all.last-all.first, time.Second); ok && run > 0 {
		p.window(run)
		p.m.Achieved, p.m.PromptTokens, p.m.OutputTokens = float64(all.completed)/run.Seconds(), all.prompts/run.Seconds(), all.outputs/run.Seconds()
	}
	p.add()
}

func orZero(x float64) float64 {
	if math.IsNaN(x) {
		return 0
	}
	return x
}

func (all *requests) summarize(m *measure.Measurement) {
	summarize(&m.TTFT, all.times[0])
	summarize(&m.TPOT, all.times[1])
	summarize(&m.E2E, all.times[2])
}

// summarize sets the missing statistics of a summary from the values themselves, with quantiles
// interpolated as the tools do; without values it leaves the summary as it is.
func summarize(s *measure.Summary, values []time.Duration) {
	if len(values) == 0 {
		return
	}
	slices.Sort(values)
	sum := list.Sum(values, time.Duration.Seconds)
	s.N = len(values)
	if s.Mean < 0 {
		s.Mean, _ = duration(sum/float64(len(values)), time.Second)
	}
	for _, q := range measure.Statistics[1:] {
		if s.Stat(q) < 0 {
			s.Set(q, between(values, q))
		}
	}
}

// between returns the q-quantile of ascending values by linear interpolation.
func between(sorted []time.Duration, q float64) time.Duration {
	at := q * float64(len(sorted)-1)
	i := int(at)
	if i+1 >= len(sorted) {
		return sorted[len(sorted)-1]
	}
	return sorted[i] + time.Duration(math.Round((at-float64(i))*float64(sorted[i+1]-sorted[i])))
}

// column returns a list with a figure, or a list of figures, for each request; null counts as 0 and
// is recorded.
func (p *pointReader) column(path string) (rows [][]float64) {
	v := find(p.doc, path)
	if v == nil || v.Type() == fastjson.TypeNull {
		return nil
	}
	if p.layout.text && v.Type() == fastjson.TypeString {
		// Tables have lists in one cell.
		if list, err := fastjson.ParseBytes(v.GetStringBytes()); err == nil {
			v = list
		}
	}
	if v.Type() != fastjson.TypeArray {
		p.fail(path, "not a list of figures, one a request")
		return nil
	}
	void := false
	for i, row := range v.GetArray() {
		cells := []*fastjson.Value{row}
		if row.Type() == fastjson.TypeArray {
			cells = row.GetArray()
		}
		numbers := make([]float64, len(cells))
		for k, cell := range cells {
			x, err := cell.Float64()
			switch {
			case cell.Type() == fastjson.TypeNull:
				void = true
			case err != nil:
				p.fail(path, "not a list of figures, one a request")
				return nil
			case x < 0:
				p.fail(path, "%g of request %d is negative", x, i+1)
				return nil
			}
			numbers[k] = x
		}
		rows = append(rows, numbers)
	}
	if void {
		p.void = append(p.void, "entries of "+path)
	}
	return rows
}

// window sets the time that was measured, unless it is unknown.
func (p *pointReader) window(d time.Duration) {
	if d > 0 {
		p.m.Duration, p.m.Trial.Window = d, d
	}
}

func (p *pointReader) closed(concurrency int) {
	p.m.Trial.Concurrency, p.m.Trial.Requests = concurrency, p.m.Requests
}

// lasted sets the window to the time that some requests take at the rate under a key.
func (p *pointReader) lasted(requests int, rate float64, path string) {
	d, ok := duration(float64(requests)/rate, time.Second)
	p.failIf(!ok || d == 0, path, "%d requests at %g/s: no run is so long", requests, rate)
	p.window(d)
}

// keptUp corrects the completed rate of an open loop for the drain.
func (p *pointReader) keptUp(completed int) {
	if m := &p.m; m.Achieved > 0 && m.Trial.Rate > 0 && m.Duration > 0 {
		m.Achieved = max(m.Achieved, p.drained(completed, m.Duration, p.arrivals()))
	}
}

// drained returns a completed rate without the drain: a run lasts until its last request ends,
// which is one request's time after the last arrival if the server kept up. It is NaN if the file
// does not have that time, as a run that outlasts its arrivals is then no sign of a backlog. Nor is
// one that outlasts them by more than a backlog explains, half of which the median request meets:
// some answers are then far longer than most.
func (p *pointReader) drained(completed int, run, arrivals time.Duration) float64 {
	last, median := p.requestTime(0), p.requestTime(0.50)
	took := max(arrivals, run-last)
	switch longest := arrivals + 2*median; {
	case last < 0 || took <= 0:
		return math.NaN()
	case median >= 0 && took > longest && float64(took) > float64(arrivals)/(1-shortfall):
		p.warn(note.DrainUnclear, run-arrivals, median)
		return math.NaN()
	}
	return float64(completed) / took.Seconds()
}

// shortfall is the share of an offered rate that a server which keeps up may lack.
const shortfall = 0.03

// requestTime returns a statistic of the time of a request, by its quantile, 0 for the mean, if
// need be from TTFT, TPOT and the mean output length. It is negative if these are unknown too.
func (p *pointReader) requestTime(quantile float64) time.Duration {
	m := &p.m
	ttft, tpot := m.TTFT.Stat(quantile), m.TPOT.Stat(quantile)
	if d := m.E2E.Stat(quantile); d >= 0 || ttft <= 0 || tpot <= 0 || m.MeanOutput == 0 {
		return d
	}
	return ttft + time.Duration(max(m.MeanOutput-1, 0)*float64(tpot))
}

// arrivals returns how long the requests of an open loop take to arrive.
func (p *pointReader) arrivals() time.Duration {
	d, _ := duration(float64(p.m.Requests)/p.m.Trial.Rate, time.Second)
	return d
}

// latenciesIn returns the keys of a tool's latencies; a path is empty for one that it lacks.
func latenciesIn(unit time.Duration, ttft, tpot, itl, e2e string) (all []latencyKeys) {
	for i, path := range []string{ttft, tpot, itl, e2e} {
		if path != "" {
			all = append(all, latencyKeys{measure.TTFT + measure.Metric(i), path, unit})
		}
	}
	return all
}
