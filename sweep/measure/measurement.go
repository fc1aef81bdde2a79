package measure

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"planner/internal/list"
	"planner/internal/note"
	"planner/internal/wire"
	"planner/sweep/workload"
)

// Observation is everything that running a trial brings back, on a real engine
// or a simulated one.
type Observation struct {
	Records []Record
	// End is when observation ended, counted from the start of the trial;
	// requests still in flight then are known to be at least that old.
	End time.Duration
	// Gaps holds the inter-token times of the requests due in the window; nil when
	// they were not recorded. ClassGaps, where it is given, splits them by Record.Class.
	Gaps      *Gaps
	ClassGaps []*hdrhistogram.Histogram
	// Unpaced says that tokens came at once, so that the times per token are not those
	// of the server and count as not seen.
	Unpaced bool
	// Aborted says why the trial was ended early; empty if it was not.
	Aborted note.Reason
	// Rest is how long the server that answered last wants not to be asked again.
	Rest time.Duration
	// Took is how long a real engine was held, for what comes beside the load too; 0 where
	// the load alone counts.
	Took time.Duration
	// Server is what the engine says of itself.
	Server Server
	// Doubts lists reasons against the measurement's validity that whoever ran
	// it saw, such as a client that was too slow.
	Doubts note.Notes
	// Pauses say how the client itself stood still, for Pause at most: reasons against the
	// measurement's validity where what is judged hangs on so much.
	Pauses note.Notes
	Pause  time.Duration
	// OtherLoad says that one of the doubts is that the load was not the one asked
	// for, such as prompts of other lengths.
	OtherLoad bool
	// Remarks are worth knowing and no reason to doubt the figures.
	Remarks note.Notes
}

// Server is what an engine says of itself and of a trial; nil for a figure that it
// does not give.
type Server struct {
	Engine Software `json:"engine"`
	// KVBlocks is the size of the KV cache in blocks of BlockTokens tokens.
	KVBlocks    *int `json:"kv_blocks"`
	BlockTokens *int `json:"block_tokens"`
	Preemptions *int `json:"preemptions"` // requests that were taken out again for want of memory
	// HitRate is the share of prompt tokens found in the prefix cache.
	HitRate *float64 `json:"prefix_hit_rate"`
	// PeakKV is the largest share of the KV cache in use.
	PeakKV *float64 `json:"kv_peak"`
	// Time splits the engine's busy time by what bound it; nil when unknown.
	Time *TimeShares `json:"time_shares"`
}

// Software names an engine and its release.
type Software struct {
	Kind    string `json:"kind"`    // which engine
	Version string `json:"version"` // as it says itself
}

// TimeShares splits the time of the engine's steps, each a share of their sum,
// and gives how well the hardware was used.
type TimeShares struct {
	Weights       float64 `json:"weights"`       // reading weights
	KV            float64 `json:"kv"`            // reading the KV cache
	Compute       float64 `json:"compute"`       // arithmetic
	Communication float64 `json:"communication"` // between GPUs
	Fixed         float64 `json:"fixed"`         // what each step costs
	// Draft is what proposing tokens for speculative decoding takes.
	Draft float64 `json:"draft,omitempty"`
	// Idle is the share of the trial in which no step ran.
	Idle float64 `json:"idle"`
	// MBU and MFU are the achieved shares of peak memory bandwidth and of peak
	// compute while steps ran.
	MBU float64 `json:"mbu"`
	MFU float64 `json:"mfu"`
	// Watts is what one GPU draws in the mean, as modelled; 0 if unknown.
	Watts float64 `json:"gpu_watts,omitempty"`
	// Binding names the largest share.
	Binding string `json:"binding"`
}

// Count is what one bound saw of a trial. Searches live on counts, not on
// quantiles.
type Count struct {
	Bound string `json:"bound"` // such as ttft.p99
	// N requests (for ITL: tokens) are decided, K of them beyond the limit.
	N int `json:"n"`
	K int `json:"k"`
	// Value is the share K/N; for a bound on the mean it is mean/limit. Low and
	// High are its one-sided bounds at 95 % confidence each.
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
	// Phi is the dispersion that Low and High were made with.
	Phi float64 `json:"phi"`
	// Cluster is how many of the N and K stand for one request: 1, and for ITL
	// the mean number of tokens of a request.
	Cluster float64 `json:"cluster"`
}

// Tally counts requests by how they ended.
type Tally struct {
	// Requests counts those due in the window (closed loop: all), Failed those
	// of them without a good end, Failures the failed ones by outcome.
	Requests int            `json:"requests"`
	Failed   int            `json:"failed"`
	Failures map[string]int `json:"failures"`
}

// Broken reports whether no request ended well, for what is no matter of speed.
func (t *Tally) Broken() bool { return t.Failed == t.Requests && t.Refuses() }

// Refuses reports whether requests failed, most of them by what the server did.
func (t *Tally) Refuses() bool {
	others := 0
	for o, name := range outcomeNames {
		if !Outcome(o).broken() {
			others += t.Failures[name]
		}
	}
	return 2*others < t.Failed
}

// Complaint says how most of the failed requests of a trial failed; "" where none did.
func (m *Measurement) Complaint() string { return complaint(m.Warnings, m.Failures) }

// complaint is the first of the notes with the words of a failure, of as many requests as failed
// so in other words, too, or, where the commonest failure has none, its kind.
func complaint(told note.Notes, failures map[string]int) string {
	most := ""
	for _, kind := range slices.Sorted(maps.Keys(failures)) {
		if most == "" || failures[kind] > failures[most] {
			most = kind
		}
	}
	kind := strings.ReplaceAll(most, "_", " ")
	if said := told.Of(note.FailedWith); len(said) > 0 && (most == "" || said[0].Figures["outcome"] == kind) {
		first := said[0].Figures
		if n := failures[most]; n > 0 && fmt.Sprint(first["requests"]) != fmt.Sprint(n) {
			return fmt.Sprintf("%d requests ended with %s, such as %v", n, kind, first["detail"])
		}
		return said[0].String()
	}
	if most == "" {
		return ""
	}
	return fmt.Sprintf("%d requests ended with %s", failures[most], kind)
}

// Throughput is what went through per second of the window.
type Throughput struct {
	// Achieved counts requests that were completed in the window, Sent those
	// that left the client in it.
	Achieved float64 `json:"achieved_per_s"`
	Sent     float64 `json:"sent_per_s"`
	// PromptTokens are counted when the first token shows that they were
	// processed, OutputTokens when they were generated.
	PromptTokens float64 `json:"prompt_tokens_per_s"`
	OutputTokens float64 `json:"output_tokens_per_s"`
	// Goodput counts those of Achieved that met every bound; NaN without an objective.
	Goodput float64 `json:"goodput_per_s"`
}

// Latencies are the four latencies of the requests due in the window. They are
// over requests that reached the event; failed ones count in the verdict, as
// beyond every limit, and not here. Requests in flight at the end count as longer
// than their age (Kaplan and Meier 1958): a quantile that only they could give
// is Unresolved, and so is the mean when they are more than 1 %.
type Latencies struct {
	TTFT Summary `json:"ttft_ms"`
	TPOT Summary `json:"tpot_ms"`
	ITL  Summary `json:"itl_ms"`
	E2E  Summary `json:"e2e_ms"`
	// ByPrompt sets TTFT beside the prompts; nil where nothing can be told.
	ByPrompt *ByPrompt `json:"ttft_by_prompt,omitempty"`
}

// Measurement is a reduced trial with its doubts. In a file it is one line of the
// journal, or the answer of a single load point.
type Measurement struct {
	Trial Trial `json:",embed"`
	// Duration is the length of the window that was measured; shorter than the
	// trial's when the trial was ended early.
	Duration time.Duration `json:"duration_s"`
	// Took is how long a real engine was held; 0 where the trial's load alone counts.
	Took time.Duration `json:"took_s,omitzero"`
	Throughput
	// MeanPrompt and MeanOutput are the tokens of a request in the mean, of results without a workload; 0 is not known.
	MeanPrompt float64 `json:"mean_prompt_tokens,omitzero"`
	MeanOutput float64 `json:"mean_output_tokens,omitzero"`
	Tally
	Latencies
	// SendLag is how long after the intended time requests left the client.
	SendLag Summary `json:"send_lag_ms"`
	// Classes splits a mix by the name of the component; nil for a plain
	// workload.
	Classes map[string]ClassSummary `json:"classes,omitempty"`
	Server  Server                  `json:",embed"`
	// Counts holds one entry a bound of the objective, in its order, and two more named
	// [ErrorsBound] and [ThroughputBound]; nil without an objective.
	Counts []Count `json:"counts,omitempty"`
	// Verdict is nil without an objective.
	Verdict *Verdict `json:"verdict"`
	// Overloaded says that load outgrew the server: the backlog kept growing.
	Overloaded bool `json:"overloaded"`
	// Aborted says why the trial was ended early; empty if it was not.
	Aborted note.Reason `json:"-"`
	// Valid is false when the figures, and what was judged by them, cannot be trusted;
	// Warnings say why, and what else is worth knowing.
	Valid    bool       `json:"valid"`
	Warnings note.Notes `json:"notes"`
	// Rejected says why the configuration cannot run; then nothing was measured
	// and everything else but the trial's knobs is empty.
	Rejected note.Reason `json:"-"`
}

// Ran is false of a configuration that cannot run, of which there was no trial.
func (m *Measurement) Ran() bool { return m.Rejected.Text == "" }

// KeptUp reports whether the server kept up with a trial of open load.
func (m *Measurement) KeptUp() bool {
	return m.Ran() && !m.Trial.Closed() && m.Aborted.Text == "" && !m.Overloaded
}

// RanWith are those of some trials that ran with a set of knobs.
func RanWith(trials []Measurement, k Knobs) iter.Seq[*Measurement] {
	return func(yield func(*Measurement) bool) {
		for i := range trials {
			if m := &trials[i]; m.Trial.Knobs == k && m.Ran() && !yield(m) {
				return
			}
		}
	}
}

// KnobSets are the distinct knobs of trials that ran, in the order of their first trial.
func KnobSets(trials []Measurement) []Knobs {
	ran := list.Filter(trials, func(m Measurement) bool { return m.Ran() })
	return list.Distinct(list.Map(ran, func(m Measurement) Knobs { return m.Trial.Knobs }))
}

// wholeLap is how far, as a share, what one lap of a trace offers is off its rate at
// most: lengths of windows are rounded.
const wholeLap = 1e-6

// EngineTime is how long the engine was busy with it, of which an overhead comes besides its load.
func (m *Measurement) EngineTime(overhead time.Duration) time.Duration {
	t := m.Trial.Warmup + m.Duration + overhead
	if m.Aborted.Text == "" {
		t += m.Trial.Cooldown
	}
	return max(t, m.Took)
}

// Offered is the rate that was offered, by the definition of the trial's rate. It is
// that rate, but for a trial that saw a part of a trace, in which as many requests came
// as there were.
func (m *Measurement) Offered() float64 {
	t := &m.Trial
	if !t.replayed() || t.Rate <= 0 || m.Requests == 0 || m.Duration <= 0 {
		return t.Rate
	}
	offered := float64(m.Requests) / m.Duration.Seconds() * t.Workload.Rates.Peak()
	if math.Abs(offered/t.Rate-1) < wholeLap {
		return t.Rate
	}
	return offered
}

// Carried is the rate of a workload, in requests per second, that the trial speaks of. Without conversations it is the
// one that was offered. A turn is only sent when the one before it has ended, and a schedule begins without
// conversations, so a trial whose warm-up is shorter than a conversation, or in which turns wait, sends less than is
// offered. What it shows to be well, as met says, is well at the rate that was sent. What it shows to be bad is bad at
// the rate at which requests would come if none had to wait: that they did wait is the server's doing. Both are taken
// from the trial's own schedule, so the draw of the requests plays no part in the comparison.
func (m *Measurement) Carried(w *workload.Workload, met bool) float64 {
	rate := m.Trial.Rate
	if w.Turns <= 1 || m.Duration <= 0 {
		return rate
	}
	from, to := m.Trial.Warmup, m.Trial.Warmup+m.Duration
	if steady := w.Steady(from, to); steady < leastSent {
		rate *= steady
	}
	if met {
		due := list.Count(w.Schedule(m.Trial.Rate, to, m.Trial.Seed), func(r workload.Request) bool { return r.Due >= from && r.Due < to })
		if share := m.Sent * m.Duration.Seconds() / float64(max(due, 1)); share < leastSent {
			rate *= share
		}
	}
	return rate
}

// ClassSummary is what one component of a mix saw.
type ClassSummary struct {
	Tally
	Latencies
}

// Count returns the count of a bound ("ttft.p99", [ErrorsBound], [ThroughputBound]); false if the
// objective did not have it.
func (m *Measurement) Count(bound string) (Count, bool) {
	for _, c := range m.Counts {
		if c.Bound == bound {
			return c, true
		}
	}
	return Count{Value: math.NaN()}, false
}

// Grew reports whether its backlog grew: the load outgrew the server, or more requests stayed
// than the wandering of a server in balance explains, or some in a trial that drifted.
func (m *Measurement) Grew() bool {
	flow, _ := m.Count(ThroughputBound)
	return m.Overloaded || flow.N > 0 && flow.Low > 0 || m.Drifted()
}

// Drifted reports whether all that makes it not valid is that it was not stationary, where more
// requests came than left.
func (m *Measurement) Drifted() bool {
	flow, _ := m.Count(ThroughputBound)
	return !m.Valid && len(m.Warnings) > 0 && m.Warnings[0].Kind == note.NotStationary && // the last of the doubts
		flow.N > 0 && flow.Value > 0
}

// Missed reports whether its verdict is that the objective is missed.
func (m *Measurement) Missed() bool { return m.Verdict != nil && m.Verdict.State == Missed }

// Tells reports whether it tells of its rate, as it is valid, drifted, or missed more than its client could have.
func (m *Measurement) Tells() bool { return m.Valid || m.Drifted() || m.Missed() }

// Doubt is why it is not valid: its first warning.
func (m *Measurement) Doubt() note.Note {
	if len(m.Warnings) == 0 {
		return note.Text("it is not valid")
	}
	return m.Warnings[0]
}

// Of are the latencies of the requests of a class, of all for ""; nothing is known of a
// class that the trial did not have.
func (m *Measurement) Of(class string) *Latencies {
	if class == "" {
		return &m.Latencies
	}
	l := unresolvedLatencies()
	if c, ok := m.Classes[class]; ok {
		l = c.Latencies
	}
	return &l
}

// Bounded is the statistic that a bound limits; Unresolved where the sample does
// not give it, and for Goodput, which is a share and has none.
func (m *Measurement) Bounded(b Bound) time.Duration {
	if b.Metric == Goodput {
		return Unresolved
	}
	return m.Of(b.Class).Latency(b.Metric).Stat(b.Quantile)
}

// Written is the measurement in a file, as a line of the journal. A rejected
// configuration is only its knobs and the reason. A load that the trial has not is null,
// and the sentences of the notes stand beside them.
func (m Measurement) Written() any {
	t := &m.Trial
	if !m.Ran() {
		return RejectedLine{t.Knobs, m.Rejected.Text, m.Rejected.Note}
	}
	w := measurementFile{Number: t.Number, Knobs: t.Knobs, Workload: t.Workload, plainMeasurement: plainMeasurement(m), Warnings: m.Warnings.Texts(), Aborted: m.Aborted.Text, Note: m.Aborted.Note}
	if t.Rate > 0 {
		w.Rate = &t.Rate
	}
	if t.Closed() {
		w.Concurrency = &t.Concurrency
	}
	return w
}

// measurementFile is a measurement in a file.
type measurementFile struct {
	Number      int                `json:"trial"` // its number in the run
	Knobs       Knobs              `json:"knobs"`
	Workload    *workload.Workload `json:"workload"`
	Rate        *float64           `json:"rate_per_s"`  // what was asked; null for a closed loop
	Concurrency *int               `json:"concurrency"` // slots of a closed loop; null for an open one
	plainMeasurement
	Warnings []string  `json:"warnings"`
	Aborted  string    `json:"aborted,omitempty"`
	Note     note.Note `json:"note,omitzero"`
}

type plainMeasurement Measurement

// RejectedLine is a configuration that cannot run, as a line of the journal.
type RejectedLine struct {
	Knobs    Knobs     `json:"knobs"`
	Rejected string    `json:"rejected"` // why it cannot run
	Note     note.Note `json:"note,omitzero"`
}

// UnmarshalJSON reads what was written. The workload that it finds names
// the one of the trial; the rows of a trace are not in it.
func (m *Measurement) UnmarshalJSON(b []byte) error {
	p := plainMeasurement{Throughput: Throughput{Goodput: math.NaN()}, Latencies: unresolvedLatencies(), SendLag: UnresolvedSummary()}
	var told struct {
		note.Warnings
		Rejected string    `json:"rejected"` // why it cannot run
		Aborted  string    `json:"aborted"`
		Note     note.Note `json:"note"`
	}
	if err := errors.Join(wire.Unmarshal(b, &p), wire.Unmarshal(b, &told)); err != nil {
		return fmt.Errorf("read measurement: %w", err)
	}
	p.Warnings, p.Aborted = told.Read(), note.Reason{Text: told.Aborted, Note: told.Note}
	if told.Rejected != "" {
		p = plainMeasurement{Trial: Trial{Knobs: p.Trial.Knobs}, Rejected: note.Reason{Text: told.Rejected, Note: told.Note}}
	}
	if math.IsNaN(p.Trial.Rate) {
		p.Trial.Rate = 0
	}
	*m = Measurement(p)
	if err := m.check(); err != nil {
		return fmt.Errorf("%w: %w", ErrImpossible, err)
	}
	return nil
}

// ErrImpossible is of a line that is written well and cannot be of any trial.
var ErrImpossible = errors.New("no trial can have brought this")

// check refuses counts that are no counts, which a damaged or foreign file may hold.
func (m *Measurement) check() error {
	if m.Failed < 0 || m.Requests > 0 && m.Failed > m.Requests {
		return fmt.Errorf("%d of %d requests failed", m.Failed, m.Requests)
	}
	for _, c := range m.Counts {
		if c.K < 0 || c.K > c.N {
			return fmt.Errorf("%s: %d of %d are beyond the limit", c.Bound, c.K, c.N)
		}
	}
	return nil
}

// Overview sums up what trials decided.
type Overview struct {
	// Trials counts those that ran, Invalid those of them that could not be trusted,
	// Unsure those that neither met nor missed the objective.
	Trials, Invalid, Unsure int
	// Doubts are the reasons of the invalid ones, one of a kind, the commonest first.
	Doubts note.Notes
}

// OverviewOf counts what trials decided.
func OverviewOf(trials []Measurement) Overview {
	var s Overview
	var doubts note.Notes
	for i := range trials {
		m := &trials[i]
		if !m.Ran() {
			continue
		}
		s.Trials++
		switch {
		case !m.Valid && !m.Missed(): // what missed by more than the client could have counts
			s.Invalid++
			if len(m.Warnings) > 0 {
				// The first one is why.
				doubts = append(doubts, m.Warnings[0])
			}
		case m.Verdict == nil || m.Verdict.State == Unsure:
			s.Unsure++
		}
	}
	kinds := doubts.Groups()
	slices.SortStableFunc(kinds, func(a, b note.Notes) int { return cmp.Compare(len(b), len(a)) })
	for _, k := range kinds {
		s.Doubts = append(s.Doubts, k[0])
	}
	return s
}
