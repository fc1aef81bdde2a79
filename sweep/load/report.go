package load

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"planner/sweep/measure"
)

// settle makes observation and telemetry of what was recorded until end.
func (t *Test) settle(end time.Duration) {
	r := t.recorder
	uncounted := t.countTexts()
	r.log.cut(end)
	t.telemetry = r.telemetry()
	t.telemetry.Stalls = t.monitor.stalls
	t.telemetry.spend(t.monitor.before, readResources())
	t.observed = measure.Observation{
		Records: r.sent(), End: end, Gaps: sumOf(r.gaps...), ClassGaps: r.gaps,
		Server: measure.Server{Engine: measure.Software{Kind: t.client.Engine}},
	}
	t.observed.Doubts = slices.Concat(t.doubts, t.telemetry.doubts(t.trial.Objective), t.sourceDoubts(&t.observed, uncounted))
	switch cause := context.Cause(t.ctx); cause {
	case errOver:
	case errAborted:
		t.observed.Aborted = t.monitor.aborted
	default:
		t.observed.Aborted, t.err = cause.Error(), cause
	}
}

// sourceDoubts says in words what of the sources of the figures is in doubt. It
// withdraws the gaps where they are not those between single tokens. uncounted is
// the number of answers whose tokens nobody counted.
func (t *Test) sourceDoubts(obs *measure.Observation, uncounted int) []string {
	n := &t.recorder.tokens
	var d []string
	if uncounted > 0 {
		d = append(d, fmt.Sprintf("tokens: %d of %d requests have no count by the server; each event was taken for one token", uncounted, uncounted+n.counted))
	}
	if text := t.noGaps(); text != "" {
		obs.Gaps, obs.ClassGaps = nil, nil
		// Only a bound on those times is left without its figure.
		if slices.ContainsFunc(t.trial.Objective.Bounds, func(b measure.Bound) bool { return b.Metric == measure.ITL }) {
			d = append(d, text)
		} else if t.client.Stream {
			obs.Remarks = append(obs.Remarks, text)
		}
	}
	if share := float64(n.coalesced) / float64(n.events); n.events > 0 && share > 0.1 {
		obs.Remarks = append(obs.Remarks, fmt.Sprintf("tokens: %.0f %% of the chunks came together with another in one read", 100*share))
	}
	if p, ok := t.via.(*connPool); ok && p.resent > 0 {
		alone := ""
		if p.resent >= resendLimit {
			alone = "; further ones had a connection each, and failed where that broke"
		}
		obs.Remarks = append(obs.Remarks, fmt.Sprintf("connections: %d requests met one that the server closed without an answer, and were sent again%s", p.resent, alone))
	}
	if text := n.shorter(); text != "" {
		obs.Remarks = append(obs.Remarks, text)
	}
	if unnamed := t.conversations.unnamed; unnamed > 0 && t.encoder.tokens {
		obs.OtherLoad = true
		d = append(d, fmt.Sprintf("conversations: the engine did not name the tokens of %d answers; later turns carry others, which its prefix cache does not hold", unnamed))
	}
	if off := float64(n.prompted-n.asked) / float64(max(n.asked, 1)); off > 0.02 || off < -0.02 {
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
func (n *tokenCounts) shorter() string {
	if n.wanted == 0 || float64(n.tokens) > 0.98*float64(n.wanted) {
		return ""
	}
	return fmt.Sprintf(ShorterAnswers+" %.0f %% fewer tokens than asked for, so every figure is of shorter answers than the workload's",
		100*(1-float64(n.tokens)/float64(n.wanted)))
}

// noGaps says why there are no inter-token times, "" if there are.
func (t *Test) noGaps() string {
	perChunk := float64(t.recorder.tokens.tokens) / float64(max(t.recorder.tokens.events, 1))
	switch {
	case !t.client.Stream:
		return "tokens: answers came whole, so there are no inter-token times"
	case perChunk > 1.01:
		return fmt.Sprintf("tokens: %.2f of them came in a chunk, so gaps between chunks are no inter-token times", perChunk)
	}
	return ""
}

// countTexts has the engine's tokenizer count the answers that came without a
// usage, now that nothing is measured any more, and returns how many it did not
// count.
func (t *Test) countTexts() int {
	r := t.recorder
	if len(r.texts) == 0 || t.endpoint.dialect.tokenize == "" || context.Cause(t.ctx) != errOver {
		return len(r.texts)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	left, slots := len(r.texts), make(chan struct{}, 8)
	var calls sync.WaitGroup
	for i, text := range r.texts {
		slots <- struct{}{}
		calls.Go(func() {
			defer func() { <-slots }()
			n, err := t.endpoint.tokenize(ctx, text)
			if err != nil || n == 0 {
				return
			}
			r.mu.Lock()
			defer r.mu.Unlock()
			r.records[i].Output = n
			r.tokens.counted++
			left--
		})
	}
	calls.Wait()
	return left
}
