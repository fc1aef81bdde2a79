package sim

import (
	"planner/model"
	"planner/sweep/measure"
)

// Observation is the result in the form that measured trials have, too. The
// engine's version is left for the caller, who knows it by name.
func (r *Result) Observation() measure.Observation {
	s := &r.Stats
	return measure.Observation{
		Records: r.Records, End: r.End, Gaps: r.Gaps, Aborted: r.Stopped,
		Server: measure.Server{
			Engine: measure.Software{Kind: "simulated"}, KVBlocks: &r.Blocks, BlockTokens: &r.BlockTokens, Preemptions: &s.Preemptions,
			HitRate: new(s.Cache.HitRate()), PeakKV: &s.KV.Peak, Time: r.timeShares(),
		},
	}
}

// timeShares splits the busy time by what bound it; nil if no step ran.
func (r *Result) timeShares() *measure.TimeShares {
	s := &r.Stats
	if s.Steps == 0 {
		return nil
	}
	t := measure.TimeShares{MBU: s.MBU, MFU: s.MFU, Binding: string(s.Time.Bound())}
	if end := r.End.Seconds() * float64(s.Loops); end > 0 {
		t.Idle = max(0, 1-s.Busy/end)
	}
	for _, share := range s.Time.Shares() {
		switch share.Bound {
		case model.BoundWeights:
			t.Weights = share.Share
		case model.BoundKV:
			t.KV = share.Share
		case model.BoundCompute:
			t.Compute = share.Share
		case model.BoundCommunication:
			t.Communication = share.Share
		case model.BoundFixed:
			t.Fixed = share.Share
		}
	}
	return &t
}
