package plan

import (
	"math"
	"testing"
)

// Worked by hand: 120 / 21.03 = 5.7, so 6 instances and a spare of 8 GPUs at 2.50.
func TestSensitivity(t *testing.T) {
	p := solve(t, Demand{Rate: 100, Headroom: 0.2, Spare: 1, Zones: 3}, offer(21.03, 8, 2.5))
	want := map[string]struct {
		instances int
		perHour   float64
	}{
		"traffic +20 %": {12, 240}, // 144/21.03 = 6.8: 7, in zones 3*ceil(7/2)
		"traffic -20 %": {9, 180},  // 96/21.03 = 4.6: 5, 3*ceil(5/2)
		"one zone less": {12, 240}, // 2*6
		"sized by the median rate, not by the safe one": {9, 180}, // 120/22.08 = 5.4: 6, 3*3
		"price +15 %": {9, 207},
		"price -15 %": {9, 153},
	}
	for _, c := range p.Sensitivity {
		w := want[c.What]
		if c.Instances != w.instances || c.GPUs != 8*w.instances || math.Abs(*c.PerHour-w.perHour) > 1e-9 {
			t.Errorf("%s: %d instances, %g per hour, want %d and %g", c.What, c.Instances, *c.PerHour, w.instances, w.perHour)
		}
		delete(want, c.What)
	}
	if len(want) > 0 {
		t.Errorf("not there: %v", want)
	}
	if first := p.Sensitivity[0].What; first != "traffic +20 %" && first != "one zone less" {
		t.Errorf("%q comes first", first)
	}
	if moved := p.Moved("half", 0.5); moved.Instances != 18 || !moved.Approximate { // 120/10.5 = 11.4: 12, 3*6
		t.Errorf("%+v", moved)
	}
	if none := p.Moved("none", 0); none.GPUs != 0 || none.Reason.Text == "" {
		t.Errorf("%+v", none)
	}
}
