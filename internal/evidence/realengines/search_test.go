//go:build realengines

package realengines

import (
	"encoding/json"
	"fmt"
	"strconv"
	"testing"
	"time"

	"planner/internal/list"
	"planner/sweep/measure"
)

// found is what `planner search --json` prints.
type found struct {
	MaxRate *struct {
		Value float64 `json:"value"`
		Low   float64 `json:"low"`
		High  float64 `json:"high"`
	} `json:"max_rate_per_s"`
	Trials  int     `json:"trials"`
	Seconds float64 `json:"engine_time_s"`
	Outcome string  `json:"outcome"`
	Reason  string  `json:"reason"`
}

func (f found) String() string {
	rate := "no rate"
	if f.MaxRate != nil {
		rate = fmt.Sprintf("%.3g/s [%.3g, %.3g]", f.MaxRate.Value, f.MaxRate.Low, f.MaxRate.High)
	}
	return fmt.Sprintf("%s: %s, %d trials in %.0f s; %s", f.Outcome, rate, f.Trials, f.Seconds, f.Reason)
}

// reserve is the time that searches leave to the tests behind them.
const reserve = 12 * time.Minute

// The maximum rate under a limit on the p90 of the whole time is found, for each
// set of knobs, to the precision of the configuration: 25 %.
//
// What a search cannot do on a machine that does something else besides, planner
// says itself: its client was late, or the budget ended first. The former is tried
// once more on other requests; then the search is given up, with what it said.
func TestSearch(t *testing.T) {
	each(t, func(t *testing.T, s subject) {
		for _, seqs := range s.seqs {
			t.Run(fmt.Sprintf("max_num_seqs=%d", seqs), func(t *testing.T) {
				d := s.desk(t)
				var said []string
				for seed := 1; seed <= 2; seed++ {
					timeFor(t, reserve, said...)
					f, trials := d.search(seqs, seed)
					if f.Outcome == "found" {
						checkFound(t, f)
						return
					}
					bad := untrusted(trials)
					said = append(said, fmt.Sprintf("%v (%d of %d trials not to be trusted)", f, bad, len(trials)))
					if bad == 0 {
						break
					}
				}
				t.Skipf("SKIPPED: this machine does not let a search reach its precision: %q", said)
			})
		}
	})
}

// search runs one search. A machine so slow that an idle engine misses the limit
// ends the test.
func (d *desk) search(seqs, seed int) (found, []measure.Measurement) {
	d.t.Helper()
	run := fmt.Sprintf("search-%d", seed)
	const infeasible, undecided = 3, 4
	out, code := d.must([]int{infeasible, undecided}, "search", "planner.toml", "--json", "--output", run,
		"--set", "knobs.max_num_seqs="+strconv.Itoa(seqs), "--set", "workload.seed="+strconv.Itoa(seed))
	var f found
	if err := json.Unmarshal(out, &f); err != nil {
		d.t.Fatalf("%v in %s", err, out)
	}
	trials := d.journal(run)
	for _, m := range trials {
		d.t.Logf("%.3g/s: %d requests, %d failed %v, E2E %v, aborted %q, overloaded %v, valid %v: %.400q", m.Trial.Rate, m.Requests, m.Failed, m.Failures, m.E2E.Mean,
			m.Aborted.Text, m.Overloaded, m.Valid, m.Warnings)
	}
	d.t.Log(f)
	if code == infeasible {
		d.t.Skipf("SKIPPED: the engine does not meet the limit on this machine at any rate: %v", f)
	}
	if (code == undecided) != (f.Outcome != "found") || (f.MaxRate == nil) != (f.Outcome == "undecided") {
		d.t.Errorf("exit code %d: %s", code, out)
	}
	return f, trials
}

// checkFound checks that a result is as narrow as was asked for.
func checkFound(t *testing.T, f found) {
	t.Helper()
	r := f.MaxRate
	if r.Value <= 0 || r.Low > r.Value || r.High < r.Value || (r.High-r.Low)/2 > 0.25*r.Value*1.01 {
		t.Errorf("%v is not an interval of 25 %%", f)
	}
}

// untrusted counts the trials whose figures planner does not trust.
func untrusted(trials []measure.Measurement) int {
	return list.Count(trials, func(m measure.Measurement) bool { return !m.Valid })
}
