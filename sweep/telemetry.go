package sweep

import (
	"fmt"
	"math"
	"time"

	"gonum.org/v1/gonum/stat"

	"planner/internal/note"
	"planner/sweep/engine"
	"planner/sweep/load"
	"planner/sweep/measure"
)

// EngineTelemetry is what was seen of an engine in one trial, besides the records of the requests.
// Durations that are not known are negative.
type EngineTelemetry struct {
	Trial int           `json:"trial"`
	Knobs measure.Knobs `json:"knobs"`
	// EngineTime is for how long the trial held the engine's GPUs: its load, what was left of it,
	// and the engine starts that it took.
	EngineTime time.Duration `json:"engine_time_s"`
	// Engine is the one that served, or that failed; its zero value stands for one that never got
	// to serve.
	Engine TrialEngine `json:"engine"`
	// Failure says why the knobs are rejected; nil if they are not.
	Failure *engine.Failure `json:"failure"`
	// RoundTrip is the round-trip time of the network to the engine.
	RoundTrip time.Duration `json:"round_trip_ms"`
	// ClientTTFT is the mean time from sending to the first token as the client saw it, over all
	// requests of the trial, for comparison with Said.TTFT.
	ClientTTFT time.Duration `json:"client_ttft_mean_ms"`
	// Gap says where the difference between the two arises, if it is above the noise: GapNetwork,
	// GapFrontEnd or GapClient; "" if it is not, or if they cannot be compared.
	Gap string `json:"ttft_gap"`
	// Said is what the engine said meanwhile.
	Said engine.Metrics `json:"said"`
	// Client is what the load generator says of itself; nil if it did not run.
	Client *load.Telemetry `json:"client"`
	// GPU sums up what the GPUs did; nil where there is none that can be asked.
	GPU *engine.GPUUse `json:"gpu"`
	// Notes are worth knowing, but no reason to doubt the trial.
	Notes note.Notes `json:"notes"`
}

// TrialEngine is an engine as a trial finds it.
type TrialEngine struct {
	Kind string `json:"kind"`
	// Command is the command line, without secrets; "" for one that ran already.
	Command string `json:"command"`
	// Log is the path of its whole log, "" if it has none here.
	Log string `json:"log"`
	// Fresh says that it was started, or reached, for this trial.
	Fresh bool `json:"started_for_this_trial"`
	// Without names the knobs that it has no option for.
	Without []string            `json:"not_applied"`
	Facts   engine.ServerFacts  `json:"facts"`
	Cold    time.Duration       `json:"cold_start_s"`
	Stages  []engine.StartStage `json:"stages"`
}

func newEngineTelemetry(t *measure.Trial) EngineTelemetry {
	return EngineTelemetry{Trial: t.Number, Knobs: t.Knobs, RoundTrip: -1, ClientTTFT: -1}
}

func (s *EngineTelemetry) serve(e *engine.Engine, fresh bool) {
	s.Engine = TrialEngine{Kind: e.Kind, Log: e.Log, Fresh: fresh, Without: e.Command.Without, Facts: e.Facts, Cold: e.Cold, Stages: e.Stages}
	if e.Done() != nil {
		s.Engine.Command = e.Command.String()
	}
}

func (s *EngineTelemetry) note(k note.Kind, figures ...any) {
	s.Notes = append(s.Notes, note.New(k, figures...))
}

// Where a gap between the times of client and server arises.
const (
	GapNetwork  = "network"
	GapFrontEnd = "front end"
	GapClient   = "client"
)

// Gaps between the times of client and server that are too small to mention: what a server's
// parsing and a client's wake-up take, and a share of the whole.
const (
	leastGap = 3 * time.Millisecond
	gapShare = 0.1
)

// compare sets the client's mean time to first token against the server's and explains a gap that
// is above the noise. Both means are over the same requests except at the ends of the trial; the
// noise is three standard errors of the mean, times the root of the share by which their numbers of
// requests differ.
func (s *EngineTelemetry) compare(records []measure.Record, v load.Telemetry) {
	var seen []float64
	for i := range records {
		if r := &records[i]; r.First >= 0 && r.Sent >= 0 {
			seen = append(seen, (r.First - r.Sent).Seconds())
		}
	}
	s.ClientTTFT = -1
	n := float64(len(seen))
	if n == 0 {
		return
	}
	mean, spread := stat.PopMeanStdDev(seen, nil)
	s.ClientTTFT = time.Duration(mean * float64(time.Second))
	if s.Said.TTFT < 0 || s.Said.FirstTokens == 0 {
		return
	}
	differ := math.Abs(n-float64(s.Said.FirstTokens)) / n
	noise := 3 * spread / math.Sqrt(n) * math.Sqrt(min(differ, 1))
	if differ > 0.2 {
		s.note(note.FirstTokensDiffer, s.Said.FirstTokens, n)
		return
	}
	gap, least := s.ClientTTFT-s.Said.TTFT, max(leastGap, time.Duration(gapShare*float64(s.ClientTTFT)), time.Duration(noise*float64(time.Second)))
	if gap < -least {
		s.Said.TTFT = -1 // not of these requests, who had their tokens sooner
	}
	if gap <= least {
		return
	}
	where := "the server's front end, ahead of where it starts its clock and behind where it stops it"
	s.Gap = GapFrontEnd
	switch {
	case v.Busy():
		s.Gap = GapClient
		where = fmt.Sprintf("the client, which used %.0f %% of its processors", 100*v.CPU)
	case v.Lag99 > gap:
		s.Gap = GapClient
		where = fmt.Sprintf("the client, which was late with sending too, by %v at p99", v.Lag99.Round(time.Microsecond))
	case s.RoundTrip > gap/2:
		s.Gap = GapNetwork
		where = fmt.Sprintf("the network, whose round trip is %v", s.RoundTrip.Round(time.Microsecond))
	}
	s.note(note.TTFTGap, s.ClientTTFT.Round(time.Microsecond), s.Said.TTFT.Round(time.Microsecond), where)
}
