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
