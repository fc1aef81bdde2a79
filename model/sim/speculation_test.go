package sim

import (
	"math"
	"testing"
	"time"

	"planner/model"
	"planner/sweep/workload"
)

func drafting(t *testing.T, chance float64, async model.Choice) *Engine {
	t.Helper()
	dep := model.Deployment{Arch: llama8B(), Hardware: h100()}
	args := model.EngineArgs{MaxModelLen: 8192, MaxNumSeqs: 64}
	args.Kernels.Async = async
	args.Speculation = model.Speculation{Method: model.DraftEagle, Tokens: 3, Accepted: model.AcceptedEach(chance, 3)}
	timer, config := modelled(t, dep, args, true)
	return NewEngine(timer, config)
}

// More acceptance never slows a request that is alone, request by request.
func TestMoreAcceptanceNeverSlows(t *testing.T) {
	for _, async := range []model.Choice{model.On, model.Off} {
		var last []time.Duration
		for _, chance := range []float64{0, 0.1, 0.3, 0.5, 0.51, 0.7, 0.9, 1} {
			requests := make([]workload.Request, 20)
			for i := range requests {
				requests[i] = workload.Request{ID: i, Prompt: 100 + 37*i, Output: 2 + 29*i}
			}
			r := simulate(drafting(t, chance, async), Load{Requests: requests, Slots: 1})
			var took []time.Duration
			for i := range r.Records {
				took = append(took, r.Records[i].Last-r.Records[i].First)
				// The same number of steps over contexts a few tokens longer.
				if last != nil && float64(took[i]) > 1.0001*float64(last[i]) {
					t.Errorf("async %v, acceptance %v: request %d takes %v, with less acceptance %v", async, chance, i, took[i], last[i])
				}
			}
			last = took
		}
	}
}

// The tokens of a step are 1 and those accepted: over many steps their mean is the one that
// was configured, with scheduling ahead and without.
func TestAcceptedTokensPerStep(t *testing.T) {
	for _, async := range []model.Choice{model.On, model.Off} {
		e := drafting(t, 0.6, async)
		var requests []workload.Request
		for i := range 40 {
			requests = append(requests, workload.Request{ID: i, Prompt: 64, Output: 1 + 500})
		}
		r := simulate(e, Load{Requests: requests, Slots: 1})
		steps := float64(r.stats.steps) - 40 // one is of the prompt
		if async == model.On {
			steps -= 40 // one is under way when the last token is known
		}
		if got, want := 40*500/steps, e.config.Speculation.PerStep(); math.Abs(got/want-1) > 0.03 {
			t.Errorf("async %v: %.3f tokens a step, want %.3f", async, got, want)
		}
	}
}
