package load

import (
	"context"
	"fmt"
	"maps"
	"math"
	"runtime"
	"runtime/metrics"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"planner/internal/list"
	"planner/internal/note"
	"planner/sweep/measure"
)

func (t *Test) settle(end time.Duration, spent func(*Telemetry)) {
	r := t.recorder
	r.log.cut(end)
	t.telemetry = r.telemetry()
	spent(&t.telemetry)
	uncounted := t.countTexts() // what that takes is no part of the trial
	obs := &t.observed
	obs.Records, obs.End, obs.Gaps, obs.ClassGaps = r.sent(), end, r.gaps, r.classGaps
	obs.Rest = time.Duration(t.rest.Load())
	obs.Server.Engine.Kind = t.client.Engine
	obs.Doubts = slices.Concat(obs.Doubts, t.telemetry.doubts(), t.sourceDoubts(uncounted))
	obs.Pauses, obs.Pause = t.telemetry.pauses(t.trial.Objective)
	switch cause := context.Cause(t.ctx); cause {
	case errOver:
	case errAborted:
		obs.Aborted = t.aborted
	default:
		obs.Aborted, t.err = note.ReasonOf(cause), cause
	}
}

// sourceDoubts returns the doubts about the sources of the figures. uncounted is the number of
// answers whose tokens nobody counted.
func (t *Test) sourceDoubts(uncounted int) note.Notes {
	n, obs := &t.recorder.tokens, &t.observed
	d := append(note.If(uncounted > 0, note.TokensEstimated, uncounted, uncounted+n.counted), t.withdraw()...)
	share := n.together()
	obs.Remarks = append(obs.Remarks, note.If(share > 0.1 && share <= much, note.TokensCoalesced, 100*share)...)
	resent, none := int(t.reuse.resent.Load()), t.reuse.none.Load()
	// An engine that cannot be told to go on after the end of a text answers as it likes, which is
	// no failure, but less load than the workload's.
	got := float64(n.tokens) / float64(max(n.wanted, 1))
	obs.Remarks = slices.Concat(obs.Remarks, note.If(resent > 0 && !none, note.Resent, resent), note.If(none, note.ResentOften, resent),
		note.If(n.wanted > 0 && got <= 0.98, note.ShorterAnswers, 100*(1-got)),
		note.If(len(n.models) > 1, note.AnswersOfModels, t.target.secrets.Hide(n.named())), note.If(2*n.excess > n.counted, note.ChunksTooMany, 100*float64(n.excess)/float64(max(n.counted, 1))))
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

// named returns the models that answers name, with the number of answers of each.
func (t *tokenCounts) named() string {
	return oneLine(strings.Join(list.Map(slices.Sorted(maps.Keys(t.models)), func(m string) string { return fmt.Sprintf("%s (%d)", m, t.models[m]) }), ", "))
}

// withdraw takes back inter-token times that are not those of single tokens, and times per token
// that are not the server's, and returns why if a bound is left without its figure; otherwise that
// is a remark.
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

// noGaps returns why there are no inter-token times, if there are none.
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

// noPace returns why there are no times per token, if there are none. Answers that are not streamed
// have none anyway.
func (t *Test) noPace() note.Notes {
	n := &t.recorder.tokens
	if share := n.atOnce(); share > 0.1 {
		return note.Notes{note.New(note.TokensBunched, 100*share)}
	}
	perChunk := n.perChunk()
	return note.If(perChunk < 0.9 && n.counted > 0, note.TokensTooFew, perChunk)
}

// countTexts has the engine's tokenizer count the answers that came without a usage, now that
// nothing is measured any more, and returns how many it did not count.
func (t *Test) countTexts() int {
	r := t.recorder
	if len(r.tokens.texts) == 0 || t.target.dialect.tokenize == "" || context.Cause(t.ctx) != errOver {
		return len(r.tokens.texts)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	left, slots := len(r.tokens.texts), make(chan struct{}, 8)
	var calls sync.WaitGroup
	for i, answer := range r.tokens.texts {
		slots <- struct{}{}
		calls.Go(func() {
			defer func() { <-slots }()
			n, err := t.target.tokenize(ctx, answer.text)
			if err != nil || n == 0 {
				return
			}
			r.mu.Lock()
			defer r.mu.Unlock()
			r.records[i].Output = n
			r.tokens.count(n, answer.events, r.records[i].Asked)
			if t.client.Stream && answer.events == 1 && n > 1 {
				r.tokens.several++
				r.tokens.bunched++
			}
			left--
		})
	}
	calls.Wait()
	return left
}

// Telemetry says how the client itself fared during a trial, and so whether the server was measured
// or the client.
type Telemetry struct {
	// CPU is the share of its processors that the process used, Processors
	// their number.
	CPU        float64 `json:"cpu_share"`
	Processors int     `json:"-"`
	// Lag50 and Lag99 are the median and the 99th percentile of the send lag of the window's
	// requests.
	Lag50 time.Duration `json:"-"`
	Lag99 time.Duration `json:"send_lag_p99_ms"`
	// Stalls say when the process stood still for longer than 250 ms, as when it was stopped or its
	// machine slept.
	Stalls note.Notes    `json:"-"`
	stall  time.Duration // the longest
	// PeakInFlight is the largest number of requests in flight at one time.
	PeakInFlight int `json:"peak_in_flight"`
	// Histograms is an HdrHistogram log of the latencies, second by second.
	Histograms []byte `json:"-"`

	// due and left count the requests due within the window and those sent within it; dropped were
	// not sent for lack of files or ports.
	due, left, dropped int
	// gcPause and wait99 are the longest stop for garbage collection and the
	// 99th percentile of the time that goroutines waited for a processor, as
	// the Go runtime's histograms bound them.
	gcPause, wait99 time.Duration
	// openFiles is the limit below which PeakInFlight must stay; 0 for none.
	openFiles int
}

// Busy reports whether the process used so much of its processors that it may be late itself.
func (v *Telemetry) Busy() bool { return v.CPU > 0.8 }

// spending starts to measure what the process spends; the function that it returns stores it.
func spending() func(*Telemetry) {
	read := func() (pauses, waits *metrics.Float64Histogram) {
		s := []metrics.Sample{{Name: "/sched/pauses/total/gc:seconds"}, {Name: "/sched/latencies:seconds"}}
		metrics.Read(s)
		return s[0].Value.Float64Histogram(), s[1].Value.Float64Histogram()
	}
	pauses, waits := read()
	began, cpu := time.Now(), processCPU()
	return func(v *Telemetry) {
		v.Processors = min(runtime.GOMAXPROCS(0), runtime.NumCPU())
		if wall := time.Since(began); wall > 0 {
			v.CPU = float64(processCPU()-cpu) / float64(wall) / float64(v.Processors)
		}
		nowPauses, nowWaits := read()
		v.gcPause, v.wait99 = quantileBetween(pauses, nowPauses, 1), quantileBetween(waits, nowWaits, 0.99)
	}
}

// quantileBetween returns an upper bound on a quantile of what was added to a histogram of seconds
// between two readings.
func quantileBetween(from, to *metrics.Float64Histogram, q float64) time.Duration {
	total := uint64(0)
	for i := range to.Counts {
		total += to.Counts[i] - from.Counts[i]
	}
	rank, below := uint64(math.Ceil(q*float64(total))), uint64(0)
	for i := range to.Counts {
		below += to.Counts[i] - from.Counts[i]
		if rank > 0 && below >= rank {
			edge := to.Buckets[i+1]
			if math.IsInf(edge, 1) {
				edge = to.Buckets[i]
			}
			return time.Duration(edge * float64(time.Second))
		}
	}
	return 0
}

// doubts returns the reasons to doubt a trial that lie in the client's own state.
func (v *Telemetry) doubts() note.Notes {
	var d note.Notes
	add := func(bad bool, k note.Kind, figures ...any) { d = append(d, note.If(bad, k, figures...)...) }
	add(v.dropped > 0, note.ClientUnsent, v.dropped)
	short := math.Abs(float64(v.left - v.due))
	add(short > max(0.01*float64(v.due), 1), note.ClientOffWindow, v.left, v.due)
	add(v.Busy(), note.ClientBusy, 100*v.CPU, v.Processors)
	add(v.openFiles > 0 && float64(v.PeakInFlight) > 0.9*float64(v.openFiles), note.ClientFiles, v.PeakInFlight, v.openFiles)
	return d
}

// pauses returns how the process stood still, and for how long at most.
func (v *Telemetry) pauses(slo measure.SLO) (note.Notes, time.Duration) {
	limit := slo.ClientLag()
	return slices.Concat(note.If(v.gcPause > limit, note.ClientCollecting, v.gcPause), note.If(v.wait99 > limit, note.ClientWaiting, v.wait99),
		v.Stalls), max(v.gcPause, v.wait99, v.stall)
}

const (
	// beat is how often the process looks at the clock to notice that it stood still, and
	// stallLimit the least delay that counts as that.
	beat       = 50 * time.Millisecond
	stallLimit = 250 * time.Millisecond
	// askEvery is how often the client asks whether to abort.
	askEvery = 250 * time.Millisecond
)

// watch looks after a running load test until quit is closed: it ends each second of the
// record, asks whether the trial is to be aborted, and notices when the process stood still.
func (t *Test) watch(quit <-chan struct{}) {
	tick := time.NewTicker(beat)
	defer tick.Stop()
	last, second, asked := time.Now(), time.Now(), time.Now()
	for {
		select {
		case <-quit:
			return
		case <-tick.C:
		}
		r, now := t.recorder, time.Now()
		if late := now.Sub(last) - beat; late > stallLimit {
			r.client.Stalls, r.client.stall = append(r.client.Stalls, note.New(note.ClientStood, late, last.Sub(r.start))), max(r.client.stall, late)
		}
		last = now
		if d := now.Sub(second); d >= time.Second {
			r.cut(now, d)
			second = now
		}
		if now.Sub(asked) < askEvery {
			continue
		}
		if asked = now; t.client.Abort != nil && t.aborted.Text == "" {
			if t.aborted = t.client.Abort(now.Sub(r.start), r.sent); t.aborted.Text != "" {
				t.cancel(errAborted)
			}
		}
	}
}

func processCPU() time.Duration {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// openFiles returns the number of files, connections included, that the process may have open at a
// time; 0 for no limit.
func openFiles() int {
	var l unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &l) != nil || uint64(l.Cur) > math.MaxInt32 {
		return 0
	}
	return int(l.Cur)
}
