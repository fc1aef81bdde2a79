package measure

import (
	"cmp"
	"errors"
	"fmt"
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

// Observation is everything observed while a trial ran, on a real engine or a simulated one.
type Observation struct {
	Records []Record
	// End is when observation ended, counted from the start of the trial;
	// requests still in flight then are known to be at least that old.
	End time.Duration
	// Gaps holds the inter-token times of the requests due in the window; nil when
	// they were not recorded. ClassGaps, where it is given, splits them by Record.Class.
	Gaps      *Gaps
	ClassGaps []*hdrhistogram.Histogram
	// Unpaced says that the times per token are not those of the server, as where tokens came at
	// once; they count as not seen.
	Unpaced bool
	// Aborted says why the trial was ended early; empty if it was not.
	Aborted note.Reason
	// Rest is how long the server, in its last answer, asked not to be called again.
	Rest time.Duration
	// Took is how long a real engine was held, for more than the load too; 0 where the load alone
	// counts.
	Took time.Duration
	// Server is what the engine reports.
	Server Server
	// Doubts lists reasons to doubt the measurement that whoever ran the trial saw, such as a
	// client that was too slow.
	Doubts note.Notes
	// Pauses say how the client itself stood still, for at most Pause at a time: reasons to doubt
	// the measurement if a judgement depends on that much.
	Pauses note.Notes
	Pause  time.Duration
	// OtherLoad says that one of the doubts is that the load was not the one asked
	// for, such as prompts of other lengths.
	OtherLoad bool
	// Remarks are worth knowing but no reason to doubt the figures.
	Remarks note.Notes
}

// Server is what an engine reports about itself and a trial; nil for a figure that it does not
// give.
type Server struct {
	Engine Software `json:"engine"`
	// KVBlocks is the size of the KV cache in blocks of BlockTokens tokens.
	KVBlocks    *int `json:"kv_blocks"`
	BlockTokens *int `json:"block_tokens"`
	// MaxNumSeqs and MaxNumBatchedTokens are the knobs of that name as a real server gives them.
	MaxNumSeqs          *int `json:"max_num_seqs,omitempty"`
	MaxNumBatchedTokens *int `json:"max_num_batched_tokens,omitempty"`
	Preemptions         *int `json:"preemptions"` // evictions of running requests for lack of memory
	// HitRate is the share of prompt tokens found in the prefix cache.
	HitRate *float64 `json:"prefix_hit_rate"`
	// PeakKV is the largest share of the KV cache in use.
	PeakKV *float64 `json:"kv_peak"`
	// Time splits the engine's busy time by what bound it; nil when unknown.
	Time *TimeShares `json:"time_shares"`
}

// Knobs returns the knobs of a trial with those that nobody set as the server gives them.
func (s *Server) Knobs(k Knobs) Knobs {
	if s.MaxNumSeqs != nil && k.MaxNumSeqs == 0 {
		k.MaxNumSeqs = *s.MaxNumSeqs
	}
	if s.MaxNumBatchedTokens != nil && k.MaxNumBatchedTokens == 0 {
		k.MaxNumBatchedTokens = *s.MaxNumBatchedTokens
	}
	return k
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
	Fixed         float64 `json:"fixed"`         // the fixed cost of each step
	// Draft is what proposing tokens for speculative decoding takes.
	Draft float64 `json:"draft,omitempty"`
	// Idle is the share of the trial in which no step ran.
	Idle float64 `json:"idle"`
	// MBU and MFU are the achieved shares of peak memory bandwidth and of peak
	// compute while steps ran.
	MBU float64 `json:"mbu"`
	MFU float64 `json:"mfu"`
	// Watts is the mean power that one GPU draws, as modelled; 0 if unknown.
	Watts float64 `json:"gpu_watts,omitempty"`
	// Binding names the largest share.
	Binding string `json:"binding"`
}

// Count is what a trial shows of one bound. Searches work on counts, not on quantiles.
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
	// Phi is the dispersion by which Low and High were computed.
	Phi float64 `json:"phi"`
	// Cluster is how many of the N and K count as one observation: 1, and for ITL about the tokens
	// of a request, or of a clump of gaps if these are fewer.
	Cluster float64 `json:"cluster"`
	// Whole says that the N are the whole population, all requests of a trace, and no sample of it.
	Whole bool `json:"whole,omitempty"`
}

// Tally counts requests by how they ended.
type Tally struct {
	// Requests counts those due in the window (closed loop: all), Failed those of them that ended
	// badly, not those in flight, and Failures the failed ones by outcome.
	Requests int            `json:"requests"`
	Failed   int            `json:"failed"`
	Failures map[string]int `json:"failures"`
}

// Broken reports whether all requests failed, most of them for reasons other than speed.
func (t *Tally) Broken() bool { return t.Failed == t.Requests && t.Refuses() }

// Refuses reports whether requests failed, most of them by something that the server did other than
// being slow.
func (t *Tally) Refuses() bool {
	others := 0
	for o, name := range outcomeNames {
		if !Outcome(o).broken() {
			others += t.Failures[name]
		}
	}
	return 2*others < t.Failed
}

// Sheds reports whether the most frequent failure of a trial is that the server said that there are
// too many requests.
func (m *Measurement) Sheds() bool {
	said := m.Warnings.Of(note.FailedWith)
	if len(said) == 0 {
		return false
	}
	status, _, _ := strings.Cut(fmt.Sprint(said[0].Figures["detail"]), ":")
	return status == "429" || status == "503"
}

// Complaint describes the most frequent failure of a trial; "" if there was none.
func (m *Measurement) Complaint() string { return complaint(m.Warnings, m.Failures) }

// complaint describes the most frequent kind of failure: by the most frequent failure note if that
// is of this kind, as an example if not all requests of this kind failed with the same details,
// otherwise by its name.
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

// Throughput is what was processed per second of the window.
type Throughput struct {
	// Achieved counts requests that were completed in the window, Sent those that left the client
	// in it.
	Achieved float64 `json:"achieved_per_s"`
	Sent     float64 `json:"sent_per_s"`
	// PromptTokens are counted when the first token shows that they were
	// processed, OutputTokens when they were generated.
	PromptTokens float64 `json:"prompt_tokens_per_s"`
	OutputTokens float64 `json:"output_tokens_per_s"`
	// Goodput counts those of Achieved that met every bound on single requests; NaN without an
	// objective.
	Goodput float64 `json:"goodput_per_s"`
}

// Latencies are the four latencies of those requests due in the window that reached the event.
// Failed requests count in the verdict, as beyond every limit but those on means, and not here.
// Requests in flight at the end are censored at their age (Kaplan and Meier 1958): a quantile that
// depends on them is Unresolved, and so is the mean when they are more than 1 %.
type Latencies struct {
	TTFT Summary `json:"ttft_ms"`
	TPOT Summary `json:"tpot_ms"`
	ITL  Summary `json:"itl_ms"`
	E2E  Summary `json:"e2e_ms"`
	// ByPrompt relates TTFT to prompt lengths; nil if there is nothing to tell.
	ByPrompt *ByPrompt `json:"ttft_by_prompt,omitempty"`
}

// Measurement is the result of a trial, with its doubts. In a file it is one line of the journal,
// or the answer of a single load point.
type Measurement struct {
	Trial Trial `json:",embed"`
	// Duration is the length of the window that was measured; shorter than the
	// trial's when the trial was ended early.
	Duration time.Duration `json:"duration_s"`
	// Took is how long a real engine was held; 0 where the trial's load alone counts.
	Took time.Duration `json:"took_s,omitzero"`
	Throughput
	// MeanPrompt and MeanOutput are the mean tokens per request in results without a workload; 0 is
	// not known.
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
	// Counts holds one entry per bound of the objective, in its order, and two more named
	// [ErrorsBound] and [ThroughputBound]; nil without an objective.
	Counts []Count `json:"counts,omitempty"`
	// Verdict is nil without an objective.
	Verdict *Verdict `json:"verdict"`
	// Overloaded says that the load exceeded what the server completes: the backlog kept growing.
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

// Ran reports whether there was a trial; there is none for a configuration that cannot run.
func (m *Measurement) Ran() bool { return m.Rejected.Text == "" }

// KeptUp reports whether the server kept up with an open loop.
func (m *Measurement) KeptUp() bool {
	return m.Ran() && !m.Trial.Closed() && m.Aborted.Text == "" && !m.Overloaded
}

// RanWith returns those of the trials that ran with a set of knobs.
func RanWith(trials []Measurement, k Knobs) []*Measurement {
	return list.Pointers(trials, func(m *Measurement) bool { return m.Trial.Knobs == k && m.Ran() })
}

// KnobSets returns the distinct knobs of the trials that ran, in the order of their first trial.
func KnobSets(trials []Measurement) []Knobs {
	ran := list.Filter(trials, func(m Measurement) bool { return m.Ran() })
	return list.Distinct(list.Map(ran, func(m Measurement) Knobs { return m.Trial.Knobs }))
}

// wholeLap is the largest relative difference of an offered rate from the trial's that comes of
// rounding the length of a window to whole laps of a trace.
const wholeLap = 1e-6

// EngineTime returns how long the trial held the engine, given its overhead besides the load.
func (m *Measurement) EngineTime(overhead time.Duration) time.Duration {
	t := m.Trial.Warmup + m.Duration + overhead
	if m.Aborted.Text == "" {
		t += m.Trial.Cooldown
	}
	return max(t, m.Took)
}

// Offered returns the offered rate, in the terms of the trial's rate. It is that rate, except for a
// trial that saw part of a trace: there it follows from how many requests arrived.
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

// Carried returns the rate, in requests per second, that the trial is evidence about. Without
// conversations it is the trial's rate. A turn is only sent when the one before it has ended, and a
// schedule begins with no conversations under way, so a trial whose warm-up is shorter than a
// conversation, or in which turns wait, sends less than is offered. If the trial met a bound (met),
// this holds at the rate that was sent. Otherwise it holds at the rate at which requests would have
// come had none waited: that they waited is the server's doing. Both follow from the trial's own
// schedule, so the random draw of requests plays no part in the comparison.
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

// Grew reports whether the backlog grew: the trial was overloaded, more requests stayed behind than
// the fluctuations of a server in balance explain, or any did in a trial that drifted.
func (m *Measurement) Grew() bool {
	flow, _ := m.Count(ThroughputBound)
	return m.Overloaded || flow.N > 0 && flow.Low > 0 || m.Drifted()
}

// Drifted reports whether the only doubt is that the trial was not stationary, and more requests
// came than left.
func (m *Measurement) Drifted() bool {
	flow, _ := m.Count(ThroughputBound)
	return !m.Valid && len(m.Warnings) > 0 && m.Warnings[0].Kind == note.NotStationary && // the last of the doubts, so here the only one
		flow.N > 0 && flow.Value > 0
}

// Missed reports whether the verdict is that the objective is missed.
func (m *Measurement) Missed() bool { return m.Verdict != nil && m.Verdict.State == Missed }

// Tells reports whether the measurement is evidence about its rate: it is valid, drifted, or missed
// the objective by more than its client can explain.
func (m *Measurement) Tells() bool { return m.Valid || m.Drifted() || m.Missed() }

// Doubt returns why the measurement is not valid: its first warning.
func (m *Measurement) Doubt() note.Note {
	if len(m.Warnings) == 0 {
		return note.Text("it is not valid")
	}
	return m.Warnings[0]
}

// Of returns the latencies of the requests of a class, of all for ""; all unresolved for a class
// that the trial did not have.
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

// Bounded returns the statistic that a bound limits; Unresolved where the sample does not give it,
// and for Goodput, which is a share and has none.
func (m *Measurement) Bounded(b Bound) time.Duration {
	if b.Metric == Goodput {
		return Unresolved
	}
	return m.Of(b.Class).Latency(b.Metric).Stat(b.Quantile)
}

// Written returns the measurement as a file holds it, a line of the journal. A rejected
// configuration has only its knobs and the reason. The kind of load that the trial did not have is
// null, and the notes stand there as sentences too.
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

// measurementFile is what a file holds of a measurement.
type measurementFile struct {
	Number      int                `json:"trial"` // its number in the run
	Knobs       Knobs              `json:"knobs"`
	Workload    *workload.Workload `json:"workload"`
	Rate        *float64           `json:"rate_per_s"`  // the offered rate; null for a closed loop and a trace on its own clock
	Concurrency *int               `json:"concurrency"` // slots of a closed loop; null for an open one
	plainMeasurement
	Warnings []string  `json:"warnings"`
	Aborted  string    `json:"aborted,omitempty"`
	Note     note.Note `json:"note,omitzero"`
}

type plainMeasurement Measurement

// RejectedLine is a configuration that cannot run, as a line of the journal and in place of a load point.
type RejectedLine struct {
	Knobs    Knobs     `json:"knobs"`
	Rejected string    `json:"rejected"` // why it cannot run
	Note     note.Note `json:"note,omitzero"`
}

// UnmarshalJSON reads what Written gives. The workload identifies that of the trial but lacks the
// rows of a trace.
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

// ErrImpossible is the error of a well-formed line that no trial can have produced.
var ErrImpossible = errors.New("no trial can have brought this")

// check refuses impossible counts, which a damaged or foreign file may hold.
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

// Overview sums up the outcomes of trials.
type Overview struct {
	// Trials counts those that ran, Invalid those of them that could not be trusted and did not
	// miss the objective all the same, Unsure the others that neither met nor missed it.
	Trials, Invalid, Unsure int
	// Doubts are the reasons of the invalid ones, one of each kind, the most frequent first.
	Doubts note.Notes
}

// OverviewOf sums up the outcomes of trials.
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
		case !m.Valid && !m.Missed(): // a miss that the client cannot explain counts
			s.Invalid++
			if len(m.Warnings) > 0 {
				// The first one is why.
				doubts = append(doubts, m.Warnings[0])
			}
		case m.Verdict == nil || m.Verdict.State == Unsure:
			s.Unsure++
		}
	}
	kinds := list.Groups(doubts, note.Note.Likeness)
	slices.SortStableFunc(kinds, func(a, b []note.Note) int { return cmp.Compare(len(b), len(a)) })
	for _, k := range kinds {
		s.Doubts = append(s.Doubts, k[0])
	}
	return s
}
