package load

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"planner/sweep/measure"
	"planner/sweep/workload"
)

// joint is a trial of chat-like traffic with conversations of two turns.
func joint(turns int) measure.Trial {
	w := &workload.Workload{
		Class: "test", Arrivals: workload.Poisson, Turns: turns, Think: time.Second,
		Shapes: []workload.Shape{{Name: "test", Prompt: workload.Lengths{Dist: workload.Fixed, Value: 50}, Output: workload.Lengths{Dist: workload.Fixed, Value: 11}}},
	}
	slo := measure.SLO{Bounds: []measure.Bound{{Metric: measure.TTFT, Quantile: 0.9, Limit: 100 * time.Millisecond}}}
	return measure.Trial{Number: 1, Workload: w, Rate: 90, Warmup: 5 * time.Second, Window: 50 * time.Second, Cooldown: 2 * time.Second, Seed: 3, Objective: slo}
}

// seen is what one generator would see of the requests that it sends.
func seen(schedule []workload.Request) measure.Observation {
	o := measure.Observation{End: time.Minute, Server: unknownServer("")}
	h := newHistogram()
	for _, q := range schedule {
		wait := time.Duration(20+mix(uint64(q.ID))%100) * time.Millisecond
		o.Records = append(o.Records, measure.Record{ID: q.ID, Due: q.Due, Sent: q.Due, First: q.Due + wait, Last: q.Due + wait + 100*time.Millisecond,
			Prompt: q.Prompt, Output: q.Output, Asked: q.Output, Outcome: measure.OK})
		for range 10 {
			record(h, time.Duration(9_000+mix(uint64(q.ID))%2_000)*time.Microsecond)
		}
	}
	o.Gaps, o.ClassGaps = h, append(o.ClassGaps, h)
	return o
}

// stored is a part as it comes back from its file.
func stored(t *testing.T, p Part) Part {
	t.Helper()
	var b bytes.Buffer
	if err := p.Write(&b); err != nil {
		t.Fatal(err)
	}
	back, err := ReadPart(&b, p.Trial, p.Obs.Records)
	if err != nil {
		t.Fatal(err)
	}
	return back
}

// TestSharesJoin: three generators that each send their share of a schedule,
// conversations whole, bring together what one generator of all of it brings, to
// the last digit.
func TestSharesJoin(t *testing.T) {
	for _, turns := range []int{1, 2} {
		trial := joint(turns)
		schedule := trial.Schedule()
		sender := map[int]int{}
		var parts []Part
		for k := 1; k <= 3; k++ {
			share := Share{k, 3}
			own, mine, err := share.Pick(trial, schedule)
			if err != nil {
				t.Fatal(err)
			}
			for _, q := range mine {
				if sender[q.ID] != 0 || q.Parent > 0 && sender[q.Parent-1] != k {
					t.Fatalf("turns %d: request %d of %d by generator %d: sent by %d, its parent by %d", turns, q.ID, q.Parent, k, sender[q.ID], sender[q.Parent-1])
				}
				sender[q.ID] = k
			}
			if want := float64(len(schedule)) / 3; math.Abs(float64(len(mine))-want) > 5*math.Sqrt(want) {
				t.Errorf("turns %d: share %s has %d of %d requests", turns, share, len(mine), len(schedule))
			}
			parts = append(parts, stored(t, Part{Share: share, Trial: own, Start: time.Unix(1790000000, 0), Obs: seen(mine)}))
		}
		if len(sender) != len(schedule) {
			t.Errorf("turns %d: %d of %d requests are sent", turns, len(sender), len(schedule))
		}
		parts[0], parts[2] = parts[2], parts[0] // the order of the runs does not matter
		got, o, err := Join(parts)
		if err != nil {
			t.Fatal(err)
		}
		if o.Gaps.TotalCount() != int64(10*len(schedule)) || len(o.Doubts) > 0 {
			t.Errorf("turns %d: %d gaps, doubts %v", turns, o.Gaps.TotalCount(), o.Doubts)
		}
		o.Remarks, got.Why = nil, ""
		a, errA := json.Marshal(measure.Reduce(got, o))
		b, errB := json.Marshal(measure.Reduce(trial, seen(schedule)))
		if errA != nil || errB != nil || !bytes.Equal(a, b) {
			t.Errorf("turns %d: joined\n%s\nof one generator\n%s", turns, a, b)
		}
	}
}

// TestSharesArePoisson: the arrivals of a share are a Poisson process as those of
// the whole are: gaps whose standard deviation is their mean, and counts whose
// variance is theirs.
func TestSharesArePoisson(t *testing.T) {
	trial := joint(1)
	trial.Window = 20 * time.Minute
	_, mine, err := Share{2, 4}.Pick(trial, trial.Schedule())
	if err != nil {
		t.Fatal(err)
	}
	n, sum, squares := float64(len(mine)-1), 0.0, 0.0
	counts := map[int]float64{}
	for i := 1; i < len(mine); i++ {
		gap := (mine[i].Due - mine[i-1].Due).Seconds()
		sum += gap
		squares += gap * gap
		counts[int(mine[i].Due/(time.Second/4))]++
	}
	mean := sum / n
	if cv := math.Sqrt(squares/n-mean*mean) / mean; math.Abs(cv-1) > 0.03 || math.Abs(mean*trial.Rate/4-1) > 0.03 {
		t.Errorf("gaps of mean %v with a coefficient of variation of %v", mean, cv)
	}
	bins := int(mine[len(mine)-1].Due / (time.Second / 4))
	per, spread := n/float64(bins), 0.0
	for i := range bins {
		spread += (counts[i] - per) * (counts[i] - per) / float64(bins)
	}
	if d := spread / per; math.Abs(d-1) > 0.1 {
		t.Errorf("index of dispersion of counts %v", d)
	}
}

func TestSharesOfAClosedLoop(t *testing.T) {
	trial := measure.Trial{Concurrency: 7, Requests: 50}
	slots, sent := 0, 0
	for k := 1; k <= 3; k++ {
		own, mine, err := Share{k, 3}.Pick(trial, requests(50, 8, 4, 0))
		if err != nil || own.Requests != len(mine) || len(mine) < 16 {
			t.Errorf("share %d: %+v, %d requests, %v", k, own, len(mine), err)
		}
		slots += own.Concurrency
		sent += len(mine)
	}
	if slots != 7 || sent != 50 {
		t.Errorf("%d slots and %d requests, want 7 and 50", slots, sent)
	}
	if _, _, err := (Share{1, 8}).Pick(trial, requests(50, 8, 4, 0)); err == nil {
		t.Error("seven slots were shared by eight")
	}
	for _, bad := range []string{"", "1", "0/2", "3/2", "1/0", "-1/2", "a/b", "1/2/3", "1.5/2"} {
		if s, err := ParseShare(bad); err == nil {
			t.Errorf("%q was read as %v", bad, s)
		}
	}
}

// independent are two generators with seeds of their own, the second later by a
// while.
func independent(late time.Duration) []Part {
	a, b := joint(1), joint(1)
	b.Seed, b.Rate = 4, 30
	start := time.Unix(1790000000, 0)
	return []Part{
		{Trial: a, Start: start, Obs: seen(a.Schedule())},
		{Trial: b, Start: start.Add(late), Obs: seen(b.Schedule())},
	}
}

// TestIndependentJoin: the loads add up, the window is what the windows have in
// common, and times count from the earlier start.
func TestIndependentJoin(t *testing.T) {
	parts := independent(2 * time.Second)
	trial, o, err := Join(parts)
	if err != nil {
		t.Fatal(err)
	}
	if trial.Rate != 120 || trial.Warmup != 7*time.Second || trial.Window != 48*time.Second || trial.Cooldown != 2*time.Second || len(o.Doubts) > 0 {
		t.Errorf("trial %+v, doubts %v", trial, o.Doubts)
	}
	if n := len(parts[0].Obs.Records) + len(parts[1].Obs.Records); len(o.Records) != n {
		t.Errorf("%d records, want %d", len(o.Records), n)
	}
	for i, r := range o.Records {
		ttft, ok := r.TTFT()
		if r.ID != i || i > 0 && r.Due < o.Records[i-1].Due || !ok || ttft < 20*time.Millisecond || ttft >= 120*time.Millisecond {
			t.Fatalf("record %d: %+v", i, r)
		}
	}
	if o.Gaps != nil || o.ClassGaps != nil || !strings.Contains(strings.Join(o.Remarks, "\n"), "inter-token times: not joined") {
		t.Errorf("the gaps of two windows are joined: %v", o.Remarks)
	}
	if m := measure.Reduce(trial, o); !m.Valid || math.Abs(m.Sent-120) > 5*math.Sqrt(120.0/48) {
		t.Errorf("%v/s sent, valid %v: %v", m.Sent, m.Valid, m.Warnings)
	}
}

// TestIndependentLoopsJoin: of closed loops that end at different times every
// request counts, and inter-token times that are of the same window stay.
func TestIndependentLoopsJoin(t *testing.T) {
	parts := independent(0)
	for i := range parts {
		p := &parts[i]
		p.Trial.Rate, p.Trial.Warmup, p.Trial.Window, p.Trial.Cooldown = 0, 0, 0, 0
		p.Trial.Concurrency, p.Trial.Requests = 4, len(p.Obs.Records)
	}
	last := parts[1].Obs.Records[len(parts[1].Obs.Records)-1].Last
	parts[0].Obs.End, parts[1].Obs.End = last+10*time.Second, last
	for i := range parts[0].Obs.Records {
		r := &parts[0].Obs.Records[i]
		r.Due, r.Sent, r.First, r.Last = r.Due+9*time.Second, r.Sent+9*time.Second, r.First+9*time.Second, r.Last+9*time.Second
	}
	trial, o, err := Join(parts)
	if err != nil {
		t.Fatal(err)
	}
	m := measure.Reduce(trial, o)
	if want := trial.Requests; o.End != last+10*time.Second || m.Requests != want || o.Gaps == nil {
		t.Errorf("%d requests until %v, want %d until %v; gaps %v", m.Requests, o.End, want, last+10*time.Second, o.Gaps != nil)
	}
}

// TestJoinDoubts: what makes a sum other traffic than was asked for is said, and
// makes the measurement invalid.
func TestJoinDoubts(t *testing.T) {
	for want, change := range map[string]func(p []Part){
		"sent the same requests": func(p []Part) { p[1].Trial.Seed = p[0].Trial.Seed },
		"shared prefixes of its own": func(p []Part) {
			p[0].Trial.Workload.Shapes[0].Prefix = workload.Prefix{Groups: 3, Tokens: 10}
			p[1].Trial.Workload.Shapes[0].Prefix = workload.Prefix{Groups: 3, Tokens: 10}
		},
		"ran together for 60 %":        func(p []Part) { p[1].Start = p[1].Start.Add(20 * time.Second) },
		"generator 2: client: was hot": func(p []Part) { p[1].Obs.Doubts = []string{"client: was hot"} },
	} {
		parts := independent(0)
		change(parts)
		trial, o, err := Join(parts)
		if err != nil {
			t.Errorf("%s: %v", want, err)
			continue
		}
		if m := measure.Reduce(trial, o); m.Valid || !strings.Contains(strings.Join(m.Warnings, "\n"), want) {
			t.Errorf("%s: valid %v: %v", want, m.Valid, m.Warnings)
		}
	}
}

func TestJoinRefuses(t *testing.T) {
	share := func(k, n int) Part {
		trial := joint(1)
		own, mine, err := Share{k, n}.Pick(trial, trial.Schedule())
		if err != nil {
			t.Fatal(err)
		}
		return Part{Share: Share{k, n}, Trial: own, Start: time.Unix(1790000000, 0), Obs: seen(mine)}
	}
	later, other, hot := share(2, 2), share(2, 2), independent(0)
	later.Start = later.Start.Add(time.Millisecond)
	other.Trial.Objective.Bounds = nil
	hot[1].Trial.Workload.Arrivals = workload.Constant
	for name, c := range map[string]struct {
		parts []Part
		want  string
	}{
		"one":             {[]Part{share(1, 2)}, "two at least"},
		"missing":         {[]Part{share(1, 3), share(2, 3)}, "2 parts of 3"},
		"twice":           {[]Part{share(1, 2), share(1, 2)}, "missing or there twice"},
		"of two wholes":   {[]Part{share(1, 2), share(2, 3)}, "not of one schedule"},
		"whole and part":  {append(independent(0)[:1], share(1, 2)), "not of one schedule"},
		"other start":     {[]Part{share(1, 2), later}, "no parts of one trial"},
		"other objective": {[]Part{share(1, 2), other}, "differ"},
		"other traffic":   {hot, "differ"},
		"hours apart":     {independent(time.Hour), "not run at the same time"},
	} {
		if _, _, err := Join(c.parts); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// TestStartAt: a trial begins at the instant that was asked for by the clock of
// the host, and not at all when that has passed.
func TestStartAt(t *testing.T) {
	url := serve(t, burst(true))
	at := time.Now().Add(700 * time.Millisecond).Round(0)
	c := &Client{URL: url, Model: "m", Stream: true, StartAt: at}
	run, err := c.Start(t.Context(), measure.Trial{Rate: 100, Window: 100 * time.Millisecond}, requests(8, 8, 4, 100))
	if err != nil {
		t.Fatal(err)
	}
	obs, err := run.Wait()
	if err != nil {
		t.Fatal(err)
	}
	if got := run.Report().Start; got.Round(0).Sub(at).Abs() > time.Microsecond {
		t.Errorf("began at %v, want %v", got, at)
	}
	for _, r := range obs.Records {
		if r.Sent < r.Due {
			t.Errorf("sent early: %+v", r)
		}
	}
	c.StartAt = time.Now().Add(-time.Second)
	if _, err := c.Run(t.Context(), measure.Trial{Rate: 100, Window: time.Second}, requests(8, 8, 4, 0)); err == nil || !strings.Contains(err.Error(), "was to start at") {
		t.Errorf("a start in the past: %v", err)
	}
	for _, text := range []string{"2/4", "1/1"} {
		if s, err := ParseShare(text); err != nil || fmt.Sprint(s) != text {
			t.Errorf("%s: %v %v", text, s, err)
		}
	}
}
