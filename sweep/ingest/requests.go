package ingest

import (
	"math"
	"slices"
	"time"

	"github.com/valyala/fastjson"

	"planner/sweep/measure"
)

// request is one of a file that holds them one by one, with times in seconds; NaN for what
// the file does not tell.
type request struct {
	begin, end, ttft, tpot, e2e, prompt, output float64
	// left is true of requests that do not count, such as those of a warm-up.
	failed, left bool
}

func unknownRequest() request {
	nan := math.NaN()
	return request{begin: nan, end: nan, ttft: nan, tpot: nan, e2e: nan, prompt: nan, output: nan}
}

// pace is the time per token of a request of which the whole time is known.
func (r *request) pace() float64 {
	if !(r.output > 1) {
		return math.NaN()
	}
	return (r.e2e - r.ttft) / (r.output - 1)
}

// seconds is a time under a key of a request, NaN if there is none.
func (p *pointReader) seconds(path string, unit time.Duration) float64 {
	x, known, _ := p.figure(path)
	if !known {
		return math.NaN()
	}
	return x * unit.Seconds()
}

// requests is what came of the requests of a file of them.
type requests struct {
	// times are the TTFT, the TPOT and the E2E of the completed ones.
	times                         [3][]time.Duration
	completed, failed             int
	first, last, prompts, outputs float64
}

// take counts a request.
func (p *pointReader) take(r request) {
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
			} else if !math.IsNaN(x) && x != 0 {
				p.fail("", "%g s is no latency of a request", x)
			}
		}
	}
}

// requests makes one load point of those that were gathered.
func (p *pointReader) requests() {
	all := p.all
	p.begin()
	if all.completed == 0 {
		p.fail("", "no request was completed: nothing was measured, leave it out")
		return
	}
	p.m.Requests = all.completed
	p.failed(all.failed)
	all.summarize(&p.m)
	if run, ok := duration(all.last-all.first, time.Second); ok && run > 0 {
		p.window(run)
		p.m.Achieved, p.m.PromptTokens, p.m.OutputTokens = float64(all.completed)/run.Seconds(), all.prompts/run.Seconds(), all.outputs/run.Seconds()
	}
	p.add()
}

func (all *requests) summarize(m *measure.Measurement) {
	summarize(&m.TTFT, all.times[0])
	summarize(&m.TPOT, all.times[1])
	summarize(&m.E2E, all.times[2])
}

// summarize sets the statistics of a summary that are not there yet from the values themselves,
// with quantiles between two values as the tools have them; none leave it as it is.
func summarize(s *measure.Summary, values []time.Duration) {
	if len(values) == 0 {
		return
	}
	slices.Sort(values)
	sum := 0.0
	for _, v := range values {
		sum += v.Seconds()
	}
	s.N = len(values)
	if s.Mean < 0 {
		s.Mean, _ = duration(sum/float64(len(values)), time.Second)
	}
	for _, q := range quantiles {
		if s.Stat(q) < 0 {
			s.Set(q, between(values, q))
		}
	}
}

// between is the q-quantile of ascending values, on the line between the two beside it.
func between(sorted []time.Duration, q float64) time.Duration {
	at := q * float64(len(sorted)-1)
	i := int(at)
	if i+1 >= len(sorted) {
		return sorted[len(sorted)-1]
	}
	return sorted[i] + time.Duration(math.Round((at-float64(i))*float64(sorted[i+1]-sorted[i])))
}

// column is a list that has a figure for each request, or a list of figures; null counts as 0
// and is remembered. All of a file are of one length.
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
