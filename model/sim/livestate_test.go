package sim

import (
	"testing"
	"time"

	"planner/sweep/workload"
)

// TestLiveState follows two requests through an engine that serves one at a time.
func TestLiveState(t *testing.T) {
	config := plain(false, 1)
	live := NewEngine(steady{0.010, 0}, config).Live()
	a, _ := live.Submit(0, workload.Request{Prompt: 100, Output: 3})
	b, _ := live.Submit(0, workload.Request{Prompt: 100, Output: 3})
	live.Advance(15*time.Millisecond, nil)
	s := live.State()
	if s.Running != 1 || s.Waiting != 1 || !live.Begun(a) || live.Begun(b) {
		t.Errorf("after one step: %+v, begun: %v %v", s, live.Begun(a), live.Begun(b))
	}
	used := blocksFor(100, config.Limits.BlockTokens)
	if want := float64(used) / float64(config.Limits.Blocks-1); s.KV < want || s.KV > want+1/float64(config.Limits.Blocks-1) {
		t.Errorf("share of blocks %v, want %v or one block more", s.KV, want)
	}
	live.Advance(35*time.Millisecond, nil)
	if s := live.State(); s.Running != 1 || s.Waiting != 0 || !live.Begun(a) || !live.Begun(b) || s.Cache.Queries != 200 && config.Limits.PrefixCaching {
		t.Errorf("while the second one runs: %+v", s)
	}
	live.Advance(time.Second, nil)
	if s := live.State(); s.Running+s.Waiting != 0 || s.KV != 0 || s.Preemptions != 0 {
		t.Errorf("at the end: %+v", s)
	}
}
