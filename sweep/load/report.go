package load

import (
	"context"
	"slices"
	"sync"
	"time"

	"planner/internal/note"
	"planner/sweep/measure"
)

func (t *Test) settle(end time.Duration) {
	r := t.recorder
	uncounted := t.countTexts()
	r.log.cut(end)
	t.telemetry = r.telemetry()
	t.telemetry.Stalls = t.monitor.stalls
	t.telemetry.spend(t.monitor.before, readResources())
	obs := &t.observed
	obs.Records, obs.End, obs.Gaps, obs.ClassGaps = r.sent(), end, r.gaps, r.classGaps
	obs.Rest = time.Duration(t.rest.Load())
	obs.Server.Engine.Kind = t.client.Engine
	obs.Doubts = slices.Concat(obs.Doubts, t.telemetry.doubts(t.trial.Objective), t.sourceDoubts(uncounted))
	switch cause := context.Cause(t.ctx); cause {
	case errOver:
	case errAborted:
		obs.Aborted = t.monitor.aborted
	default:
		obs.Aborted, t.err = note.ReasonOf(cause), cause
	}
}

// sourceDoubts says what of the sources of the figures is in doubt. uncounted is the number of
// answers whose tokens nobody counted.
func (t *Test) sourceDoubts(uncounted int) note.Notes {
	n, obs := &t.recorder.tokens, &t.observed
	d := append(note.If(uncounted > 0, note.TokensEstimated, uncounted, uncounted+n.counted), t.withdraw()...)
	share := n.together()
	obs.Remarks = append(obs.Remarks, note.If(share > 0.1 && share <= much, note.TokensCoalesced, 100*share)...)
	if resent := t.via.resends(); resent > 0 {
		kind := note.Resent
		if resent >= resendLimit {
			kind = note.ResentOften
		}
		obs.Remarks = append(obs.Remarks, note.New(kind, resent))
	}
	obs.Remarks = append(obs.Remarks, n.shorter()...)
	if unnamed := t.conversations.unnamed; unnamed > 0 && t.encoder.tokens {
		obs.OtherLoad = true
		d = append(d, note.New(note.TurnsUnnamed, unnamed))
	}
	if n.asked == 0 {
		d = append(d, t.guessed...)
	}
	if off := float64(n.prompted-n.asked) / float64(max(n.asked, 1)); off > 0.02 || off < -0.02 {
		obs.OtherLoad = true
		d = append(d, note.New(note.PromptsOff, 100*off))
	}
	return d
}

// shorter says by how much the answers fell short of what was asked for, if they
// did. An engine that cannot be told to go on behind the end of a text gives what it
// has to say, which is no failure, but less load than the workload's.
func (n *tokenCounts) shorter() note.Notes {
	got := float64(n.tokens) / float64(max(n.wanted, 1))
	return note.If(n.wanted > 0 && got <= 0.98, note.ShorterAnswers, 100*(1-got))
}

// withdraw takes back the times between tokens that are not those of single tokens, and
// says why. It is a doubt where a bound is left without its figure.
func (t *Test) withdraw() note.Notes {
	obs := &t.observed
	itl, tpot := t.noGaps(), t.noPace()
	obs.Unpaced = len(tpot) > 0
	if len(itl)+len(tpot) == 0 {
		return nil
	}
	obs.Gaps, obs.ClassGaps = nil, nil
	bounded := func(m measure.Metric) bool {
		return slices.ContainsFunc(t.trial.Objective.Bounds, func(b measure.Bound) bool {
			return b.Metric == m || m == measure.TPOT && b.Limits.TPOT > 0
		})
	}
	switch {
	case obs.Unpaced && (bounded(measure.TPOT) || bounded(measure.ITL)), bounded(measure.ITL):
		return slices.Concat(tpot, itl)
	case t.client.Stream:
		obs.Remarks = slices.Concat(obs.Remarks, tpot, itl)
	}
	return nil
}

// noGaps says why there are no inter-token times, if there are none.
func (t *Test) noGaps() note.Notes {
	n := &t.recorder.tokens
	switch perChunk := n.perChunk(); {
	case !t.client.Stream:
		return note.Notes{note.New(note.TokensWhole)}
	case perChunk > 1.01:
		return note.Notes{note.New(note.TokensPerChunk, perChunk)}
	case n.together() > much:
		return note.Notes{note.New(note.TokensCoalesced, 100*n.together())}
	}
	return nil
}

// noPace says why there are no times per token, if there are none. Answers that are not
// streamed have none anyway.
func (t *Test) noPace() note.Notes {
	n := &t.recorder.tokens
	if share := n.atOnce(); share > 0.1 {
		return note.Notes{note.New(note.TokensBunched, 100*share)}
	}
	perChunk := n.perChunk()
	return note.If(perChunk < 0.9 && n.counted > 0, note.TokensTooFew, perChunk)
}

// countTexts has the engine's tokenizer count the answers that came without a
// usage, now that nothing is measured any more, and returns how many it did not
// count.
func (t *Test) countTexts() int {
	r := t.recorder
	if len(r.tokens.texts) == 0 || t.target.dialect.tokenize == "" || context.Cause(t.ctx) != errOver {
		return len(r.tokens.texts)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	left, slots := len(r.tokens.texts), make(chan struct{}, 8)
	var calls sync.WaitGroup
	for i, text := range r.tokens.texts {
		slots <- struct{}{}
		calls.Go(func() {
			defer func() { <-slots }()
			n, err := t.target.tokenize(ctx, text)
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
