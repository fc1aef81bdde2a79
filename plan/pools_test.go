package plan

import (
	"math"
	"testing"
)

// TestPoolsByHand: 40 requests/s of two classes, 30 and 10. A pool for the first needs
// 30 x 1.2 / 9 = 4 instances and a spare, of 2 GPUs at $3: 10 GPUs, $30. One for the second
// needs 10 x 1.2 / 2 = 6 and a spare, of 1 GPU at $2: 7 GPUs, $14. One pool for both at 2.4
// a second needs 20 instances and a spare, of 2 GPUs at $3: 42 GPUs, $126.
func TestPoolsByHand(t *testing.T) {
	d := Demand{Rate: 40, Headroom: 0.2, Spare: 1, Zones: 1}
	part := func(share float64) Demand {
		of := d
		of.Rate *= share
		return of
	}
	one := solve(t, d, offer(2.4, 2, 3))
	chat, code := solve(t, part(0.75), offer(9, 2, 3)), solve(t, part(0.25), offer(2, 1, 2))
	each := []Pool{{Class: "chat", Share: 0.75, Plan: chat}, {Class: "code", Share: 0.25, Plan: code}}
	p := NewPools(d, each, one)
	if one.Fleet.GPUs != 42 || chat.Fleet.GPUs != 10 || code.Fleet.GPUs != 7 {
		t.Fatalf("%d, %d and %d GPUs", one.Fleet.GPUs, chat.Fleet.GPUs, code.Fleet.GPUs)
	}
	if p.Recommended != PoolEach || p.Instances != 12 || p.GPUs != 17 || *p.PerHour != 44 || p.Reason.Text != "" {
		t.Errorf("pools %+v", p)
	}
	// 10 x 0.3 + 7 x 0.2 kW, and $44 an hour of 40 x 3600 requests: $0.3056 a thousand.
	chat.Fleet.KW, code.Fleet.KW = 3, 1.4
	a := p.Alternative()
	if a.Fleet.GPUs != 17 || a.Fleet.Instances != 12 || a.Fleet.KW != 4.4 || math.Abs(*a.Cost.PerHour-44) > 1e-9 || math.Abs(*a.Cost.PerThousandRequests-44/144.) > 1e-9 {
		t.Errorf("all pools together %+v, %+v", a.Fleet, a.Cost)
	}
	// 36 x 1.2 / 9 = 4.8 and 12 x 1.2 / 2 = 7.2: 6 instances of 2 GPUs and 9 of 1.
	for _, c := range p.Sensitivity {
		if c.What == "traffic +20 %" && (c.Instances != 15 || c.GPUs != 21 || *c.PerHour != 54) || c.What == "price -15 %" && (c.GPUs != 17 || math.Abs(*c.PerHour-0.85*44) > 1e-9) {
			t.Errorf("%+v", c)
		}
	}
	if len(p.Sensitivity) != 5 {
		t.Errorf("%d changes, want 5", len(p.Sensitivity))
	}
	if cheap := solve(t, d, offer(24, 2, 3)); NewPools(d, each, cheap).Recommended != OnePool {
		t.Errorf("3 instances of 2 GPUs at $18 are dearer than the pools at $44")
	}
	d.MaxGPUs = 16
	if p = NewPools(d, each, one); p.Recommended != OnePool || p.GPUs != 17 || p.Reason.Text == "" {
		t.Errorf("17 GPUs where 16 are allowed: %+v", p)
	}
	each[1] = Pool{Class: "code", Share: 0.25, Why: "no"}
	if p = NewPools(d, each, nil); p.Recommended != OnePool || p.GPUs != 0 || p.PerHour != nil || p.Reason.Text == "" {
		t.Errorf("a class without a plan: %+v", p)
	}
	d.MaxGPUs, chat.Cost.PerHour = 0, nil
	each[1].Plan = code
	if p = NewPools(d, each, one); p.PerHour != nil || p.Recommended != PoolEach {
		t.Errorf("17 GPUs instead of 42, one of them without a price: %+v", p)
	}
}
