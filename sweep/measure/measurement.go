package measure

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Observation is everything that running a trial brings back, on a real engine
// or a simulated one.
type Observation struct {
	Records []Record
	// End is when observation ended, counted from the start of the trial;
	// requests still in flight then are known to be at least that old.
	End time.Duration
	// Gaps holds the inter-token times of the requests due in the window, in
	// microseconds; nil when they were not recorded.
	Gaps *hdrhistogram.Histogram
	// Aborted says why the trial was ended early; empty if it was not.
	Aborted string
	// Server is what the engine says of itself.
	Server Server
	// Doubts lists reasons against the measurement's validity that whoever ran
	// it saw, such as a client that was too slow.
	Doubts []string
}

// Server is what an engine says of itself and of a trial. A figure that the
// engine does not give is negative.
type Server struct {
	Kind    string
	Version string
	// KVBlocks is the size of the KV cache in blocks of BlockTokens tokens.
	KVBlocks, BlockTokens int
	Preemptions           int
	// HitRate is the share of prompt tokens found in the prefix cache.
	HitRate float64
	// PeakKV is the largest share of the KV cache in use.
	PeakKV float64
	// Time splits the engine's busy time by what bound it; nil when unknown.
	Time *TimeShares
}

// TimeShares splits the time of the engine's steps, each a share of their sum,
// and gives how well the hardware was used.
type TimeShares struct {
	Weights       float64 `json:"weights"`
	KV            float64 `json:"kv"`
	Compute       float64 `json:"compute"`
	Communication float64 `json:"communication"`
	Fixed         float64 `json:"fixed"`
	// Idle is the share of the trial in which no step ran.
	Idle float64 `json:"idle"`
	// MBU and MFU are the achieved shares of peak memory bandwidth and of peak
	// compute while steps ran.
	MBU float64 `json:"mbu"`
	MFU float64 `json:"mfu"`
	// Binding names the largest share.
	Binding string `json:"binding"`
}

// Count is what one bound saw of a trial: N decided requests (for ITL: tokens),
// K of them beyond the limit. Searches live on counts, not on quantiles.
type Count struct {
	Bound string `json:"bound"`
	N     int    `json:"n"`
	K     int    `json:"k"`
}

// Measurement is a reduced trial with its doubts.
type Measurement struct {
	Trial Trial
	// Achieved is what was completed per second of the window, Sent what left.
	Achieved, Sent float64
	// Duration is the length of the window that was measured; shorter than the
	// trial's when the trial was ended early.
	Duration time.Duration
	// Requests counts those due in the window (closed loop: all), Failed those
	// of them without a good end, Failures the failed ones by outcome.
	Requests, Failed int
	Failures         map[string]int
	TTFT, TPOT       Summary
	ITL, E2E         Summary
	SendLag          Summary
	// PromptTokens and OutputTokens are per second of the window; Goodput is
	// the requests per second that met every bound.
	PromptTokens, OutputTokens, Goodput float64
	// Counts holds one entry a bound of the objective, in its order, and a last
	// one named "errors".
	Counts  []Count
	Classes map[string]ClassSummary
	Server  Server
	// Verdict is nil without an objective.
	Verdict *Verdict
	// Overloaded says that load outgrew the server: the backlog kept growing.
	Overloaded bool
	// Aborted says why the trial was ended early; empty if it was not.
	Aborted string
	// Rejected says why the configuration cannot run; then nothing was measured
	// and everything else but the trial is empty.
	Rejected string
	// Valid is false when the figures cannot be trusted; Warnings say why, and
	// what else is worth knowing.
	Valid    bool
	Warnings []string
}

// ClassSummary is what one component of a mix saw.
type ClassSummary struct {
	Requests, Failed     int
	TTFT, TPOT, ITL, E2E Summary
}

// Summary describes a latency. A quantile that the sample cannot resolve is
// Unresolved.
type Summary struct {
	Mean, P50, P90, P95, P99, P999 time.Duration
	N                              int
}

// Unresolved marks a statistic that the sample cannot give.
const Unresolved time.Duration = -1
