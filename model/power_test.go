package model

import (
	"testing"

	"planner/internal/evidence/must"
)

// The published figures of whole servers that power.go names, and what must hold of any.
func TestPower(t *testing.T) {
	dep := deploy(t, "Llama-3.1-8B", "H100 SXM", 1)
	args := EngineArgs{MaxNumSeqs: 256}
	r := must.Get(NewRoofline(dep, ConstantsFor(dep.Hardware, args), args))
	watts := func(b Batch) float64 {
		mbu, mfu := r.Achieved(r.Work(b), r.Step(b).Total)
		return r.Power(mbu, mfu, 1)
	}
	one := watts(Batch{Decodes: 1, Context: 1000, Longest: 1000, Sampled: 1})
	many := watts(Batch{Decodes: 128, Context: 128000, Longest: 1000, Sampled: 128})
	prompt := watts(Batch{Chunks: []Chunk{{Tokens: 8192}}, Sampled: 1})
	for _, c := range []struct {
		what        string
		watts, want float64
	}{{"one request", one, 300}, {"128 requests", many, 600}, {"a long prompt", prompt, 700}} {
		if c.watts < c.want*(1-PowerError) || c.watts > c.want*(1+PowerError) {
			t.Errorf("%s draws %.0f W, published %.0f", c.what, c.watts, c.want)
		}
	}
	rest, half := r.Power(0, 0, 0), r.Power(0.5, 0.5, 0.5)
	if !(rest > 0 && rest < half && half < r.Power(0.5, 0.5, 1) && prompt <= dep.Hardware.TDP) {
		t.Errorf("at rest %.0f W, half of the time %.0f, prompt %.0f", rest, half, prompt)
	}
}
