package report

import (
	"strings"
	"testing"

	"planner/plan/fleet"
)

func TestStaticFleetInWords(t *testing.T) {
	for n, want := range map[int]string{1: "1 replica keeps the objective with 97.0 %", 7: "7 replicas keep the objective with 97.0 %"} {
		if got := staticText(&fleet.Answer{Static: &fleet.StaticAnswer{Replicas: n, Attainment: fleet.Estimate{Value: 0.97, Low: 0.96, High: 0.98}}}); !strings.HasPrefix(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestShareOver: a share is 100 % only where nothing was missed.
func TestShareOver(t *testing.T) {
	for want, e := range map[string]fleet.Estimate{
		"95.8 % (94.9-96.4)":       {Value: 0.958, Low: 0.949, High: 0.964},
		"99.97 % (99.93-100.00)":   {Value: 0.9997, Low: 0.9993, High: 1},
		"99.998 % (99.981-99.999)": {Value: 0.99998, Low: 0.99981, High: 0.99999},
		"100.0 % (100.0-100.0)":    {Value: 1, Low: 1, High: 1},
	} {
		if got := shareOver(e); got != want {
			t.Errorf("%v: %q, want %q", e, got, want)
		}
	}
}
