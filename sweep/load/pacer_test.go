package load

import (
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"planner/internal/evidence/must"
	"planner/internal/evidence/stattest"
	"planner/internal/note"
	"planner/internal/stat"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

// TestPacerKeepsTheSchedule: waits that end late do not delay those after them, and one that is
// overdue returns at once.
func TestPacerKeepsTheSchedule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newRuntimePacer(0)
		start := time.Now()
		for i := range 100 {
			due := start.Add(time.Duration(i) * 10 * time.Millisecond)
			if !p.until(t.Context(), due) {
				t.Fatal("not reached")
			}
			late := time.Since(due)
			switch {
			case i < 50 && late != 0:
				t.Fatalf("wait %d ended %v late", i, late)
			case i == 50:
				time.Sleep(105 * time.Millisecond) // The process stands still.
			case i > 60 && late != 0:
				t.Fatalf("wait %d ended %v late, long after the stop", i, late)
			}
		}
	})
}

func TestPacerEnds(t *testing.T) {
	p := must.Get(newPacer())
	ctx, cancel := context.WithCancel(t.Context())
	context.AfterFunc(ctx, p.close)
	time.AfterFunc(20*time.Millisecond, cancel)
	start := time.Now()
	if p.until(ctx, start.Add(time.Minute)) || time.Since(start) > 30*time.Second {
		t.Errorf("waited %v, though ended", time.Since(start))
	}
}

// arrivals sends requests at a rate and returns their send lags, and the gaps
// between them as they were sent.
func arrivals(t *testing.T, url string, rate float64, window time.Duration) (lags []time.Duration, gaps []float64) {
	c := &Client{URL: url, Model: "m", Stream: true, Engine: "vllm"}
	trial := measure.Trial{Workload: fixedLengths(8, 1, workload.Poisson), Rate: rate, Window: window, Seed: 11}
	obs := observe(t, c, trial, trial.Schedule())
	sent := []time.Duration{0}
	for _, r := range obs.Records {
		if r.Sent < r.Due {
			t.Fatalf("request %d left %v early", r.ID, r.Due-r.Sent)
		}
		lags = append(lags, r.Sent-r.Due)
		sent = append(sent, r.Sent)
	}
	slices.Sort(lags)
	slices.Sort(sent)
	for i := range sent[1:] {
		gaps = append(gaps, (sent[i+1] - sent[i]).Seconds())
	}
	return lags, gaps
}

// TestArrivals: what is sent is the Poisson process that was asked for, by a
// Kolmogorov-Smirnov test of its gaps and by their dispersion, and each request
// leaves when it is due. PLANNER_TIMING=1 adds the rates of 1, 10 and 1,000 a
// second, which take minutes or an idle machine, and the limits on the send lag.
func TestArrivals(t *testing.T) {
	url := serve(t, burst(false))
	for _, c := range []struct {
		rate   float64
		window time.Duration
		long   bool
	}{{100, 2 * time.Second, false}, {100, 20 * time.Second, true}, {1, 200 * time.Second, true}, {10, 60 * time.Second, true}, {1000, 20 * time.Second, true}} {
		if c.long != strict() {
			continue
		}
		t.Run(fmt.Sprintf("%g per s", c.rate), func(t *testing.T) {
			lags, gaps := arrivals(t, url, c.rate, c.window)
			distance, p := stattest.ExponentialKS(gaps, 1/c.rate)
			mean, square := 0.0, 0.0
			for _, g := range gaps {
				mean += g / float64(len(gaps))
				square += g * g / float64(len(gaps))
			}
			dispersion := (square - mean*mean) / (mean * mean)
			p50, p99 := stat.Quantile(lags, 0.5), stat.Quantile(lags, 0.99)
			t.Logf("%d requests: KS distance %.4f (p = %.2f), dispersion %.3f; send lag p50 %v p99 %v", len(gaps), distance, p, dispersion, p50, p99)
			if p < 0.001 {
				t.Errorf("gaps are not exponential: distance %.4f, p = %.4f", distance, p)
			}
			// The squared coefficient of variation has a standard error of
			// sqrt(8/n) for exponential gaps.
			if off := math.Abs(dispersion - 1); off > max(0.1, 3*math.Sqrt(8/float64(len(gaps)))) {
				t.Errorf("dispersion %.3f, want 1", dispersion)
			}
			// At 1 a second p99 is the second largest of 200: no figure to hold.
			if strict() && c.rate >= 10 && (p50 > 100*time.Microsecond || p99 > 500*time.Microsecond) {
				t.Errorf("send lag p50 %v p99 %v; want 0.1 and 0.5 ms", p50, p99)
			}
		})
	}
}

// TestStopped: a client that is stopped for a second shows that second in the latency from the
// intended time, reports it, and catches up.
func TestStopped(t *testing.T) {
	p := startProcess(t, "burst")
	c := &Client{URL: p.url, Model: "m", Stream: true, Engine: "vllm"}
	trial := measure.Trial{Workload: fixedLengths(8, 4, workload.Constant), Rate: 50, Window: 3 * time.Second}
	schedule := trial.Schedule()
	stop := exec.Command("sh", "-c", fmt.Sprintf("sleep 1; kill -STOP %d; sleep 1; kill -CONT %d", os.Getpid(), os.Getpid()))
	if err := stop.Start(); err != nil {
		t.Skip(err)
	}
	defer stop.Wait()
	obs, err := must.Get(c.Start(t.Context(), trial, schedule)).Wait()
	if err != nil || len(obs.Records) != len(schedule) {
		t.Fatalf("%d of %d requests, %v", len(obs.Records), len(schedule), err)
	}
	late, longest := 0, time.Duration(0)
	for _, rec := range obs.Records {
		d, ok := rec.TTFT()
		if !ok || rec.Outcome != measure.OK {
			t.Fatalf("%+v", rec)
		}
		if d > 300*time.Millisecond {
			late++
		}
		longest = max(longest, d)
	}
	if longest < 900*time.Millisecond || late < 30 {
		t.Errorf("longest TTFT %v, %d above 300 ms; want about 1 s and 35", longest, late)
	}
	if doubts := measure.Reduce(trial, obs).Warnings; !doubts.Has(note.ClientStood) || !doubts.Has(note.SendLag) {
		t.Errorf("doubts: %s", doubts)
	}
}
