package load

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"planner/sweep/measure"
)

// settle makes observation and telemetry of what was booked.
func (r *Test) settle(end time.Duration) {
	res, b := r.result, r.book
	uncounted := r.countTexts()
	b.log.cut(end)
	res.telemetry = r.telemetry()
	res.obs = measure.Observation{
		Records: b.sentRecords(), End: end, Gaps: sumOf(b.spread.gaps...), ClassGaps: b.spread.gaps,
		Server: unknownServer(r.client.Engine),
	}
	res.obs.Doubts = slices.Concat(res.notes, res.telemetry.doubts(r.trial.Objective), r.sourceDoubts(&res.obs, uncounted))
	switch cause := context.Cause(r.ctx).(type) {
	case aborted:
		res.obs.Aborted = string(cause)
	default:
		if cause != errOver {
			res.obs.Aborted = cause.Error()
			res.err = cause
		}
	}
}

// unknownServer is an engine that says nothing of itself but its kind.
func unknownServer(kind string) measure.Server {
	return measure.Server{Engine: measure.Software{Kind: kind}}
}

// telemetry fills in what the book knows of the client.
func (r *Test) telemetry() Telemetry {
	b := r.book
	us := func(p float64) time.Duration {
		return time.Duration(b.spread.lag.ValueAtPercentile(p)) * time.Microsecond
	}
	v := r.watch.telemetry()
	v.Lag50, v.Lag99, v.LagMax = us(50), us(99), us(100)
	v.Histograms = b.log.out.Bytes()
	v.Due, v.Left, v.PeakInFlight, v.OpenFiles = b.totals.due, b.totals.left, b.totals.peak, openFiles()
	for i := range b.records {
		if b.left[i] && b.records[i].Outcome == measure.Dropped {
			v.Dropped++
		}
	}
	return v
}

// sourceDoubts says in words what of the sources of the figures is in doubt. It
// withdraws the gaps where they are not those between single tokens. uncounted is
// the number of answers whose tokens nobody counted.
func (r *Test) sourceDoubts(obs *measure.Observation, uncounted int) []string {
	t := &r.book.totals
	var d []string
	if uncounted > 0 {
		d = append(d, fmt.Sprintf("tokens: %d of %d requests have no count by the server; each event was taken for one token", uncounted, uncounted+t.counted))
	}
	if text := r.noGaps(); text != "" {
		obs.Gaps, obs.ClassGaps = nil, nil
		// Only a bound on those times is left without its figure.
		if slices.ContainsFunc(r.trial.Objective.Bounds, func(b measure.Bound) bool { return b.Metric == measure.ITL }) {
			d = append(d, text)
		} else if r.client.Stream {
			obs.Remarks = append(obs.Remarks, text)
		}
	}
	if share := float64(t.coalesced) / float64(t.events); t.events > 0 && share > 0.1 {
		obs.Remarks = append(obs.Remarks, fmt.Sprintf("tokens: %.0f %% of the chunks came together with another in one read", 100*share))
	}
	if p, ok := r.via.(*pool); ok && p.resent > 0 {
		alone := ""
		if p.resent >= resendLimit {
			alone = "; further ones had a connection each, and failed where that broke"
		}
		obs.Remarks = append(obs.Remarks, fmt.Sprintf("connections: %d requests met one that the server closed without an answer, and were sent again%s", p.resent, alone))
	}
	if text := t.shorter(); text != "" {
		obs.Remarks = append(obs.Remarks, text)
	}
	if n := r.encoder.prompts.answers.unnamed; n > 0 && r.encoder.tokens {
		obs.OtherLoad = true
		d = append(d, fmt.Sprintf("conversations: the engine did not name the tokens of %d answers; later turns carry others, which its prefix cache does not hold", n))
	}
	if off := float64(t.prompted-t.asked) / float64(max(t.asked, 1)); off > 0.02 || off < -0.02 {
		obs.OtherLoad = true
		d = append(d, fmt.Sprintf("prompts: the server counts %+.1f %% tokens against those asked for", 100*off))
	}
	return d
}

// ShorterAnswers begins the remark that an engine generated fewer tokens than it
// was asked for.
const ShorterAnswers = "answers: the server generated"

// shorter says by how much the answers fell short of what was asked for; "" where
// they did not. An engine that cannot be told to go on behind the end of a text
// gives what it has to say, which is no failure, but less load than the
// workload's.
func (t *totals) shorter() string {
	if t.wanted == 0 || float64(t.tokens) > 0.98*float64(t.wanted) {
		return ""
	}
	return fmt.Sprintf(ShorterAnswers+" %.0f %% fewer tokens than asked for, so every figure is of shorter answers than the workload's",
		100*(1-float64(t.tokens)/float64(t.wanted)))
}

// noGaps says why there are no inter-token times, "" if there are.
func (r *Test) noGaps() string {
	perChunk := float64(r.book.totals.tokens) / float64(max(r.book.totals.events, 1))
	switch {
	case !r.client.Stream:
		return "tokens: answers came whole, so there are no inter-token times"
	case perChunk > 1.01:
		return fmt.Sprintf("tokens: %.2f of them came in a chunk, so gaps between chunks are no inter-token times", perChunk)
	}
	return ""
}

// countTexts has the engine's tokenizer count the answers that came without a
// usage, now that nothing is measured any more, and returns how many it did not
// count. Answers that are alike in text are asked for once.
func (r *Test) countTexts() int {
	b := r.book
	if len(b.texts) == 0 || r.endpoint.dialect.tokenize == "" || context.Cause(r.ctx) != errOver {
		return len(b.texts)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	type counted struct{ index, tokens int }
	jobs, results := make(chan int), make(chan counted)
	go func() {
		defer close(jobs)
		for i := range b.records {
			if _, ok := b.texts[i]; ok {
				jobs <- i
			}
		}
	}()
	var workers sync.WaitGroup
	for range 8 {
		workers.Go(func() {
			for i := range jobs {
				n, err := r.endpoint.tokenize(ctx, b.texts[i])
				if err != nil {
					n = 0
				}
				results <- counted{i, n}
			}
		})
	}
	go func() { workers.Wait(); close(results) }()
	left := 0
	for c := range results {
		if c.tokens == 0 {
			left++
			continue
		}
		b.records[c.index].Output = c.tokens
		b.totals.counted++
	}
	return left
}
