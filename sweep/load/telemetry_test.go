package load

import (
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"planner/internal/evidence/must"
	"planner/internal/note"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

func TestDoubts(t *testing.T) {
	good := Telemetry{Lag50: 30 * time.Microsecond, Lag99: 900 * time.Microsecond, due: 1000, left: 1002, CPU: 0.5, Processors: 2,
		gcPause: 200 * time.Microsecond, wait99: 500 * time.Microsecond, PeakInFlight: 500, openFiles: 1024}
	all := func(v Telemetry) note.Notes {
		d, _ := v.pauses(measure.SLO{})
		return append(v.doubts(), d...)
	}
	if d := all(good); len(d) != 0 {
		t.Errorf("a good trial: %q", d)
	}
	for want, change := range map[string]func(*Telemetry){
		"3 requests were not":   func(v *Telemetry) { v.dropped = 3 },
		"in which 1000 were":    func(v *Telemetry) { v.left = 980 },
		"used 90 %":             func(v *Telemetry) { v.CPU = 0.9 },
		"garbage collection":    func(v *Telemetry) { v.gcPause = 5 * time.Millisecond },
		"wait for a processor":  func(v *Telemetry) { v.wait99 = 5 * time.Millisecond },
		"stood still for 1.00":  func(v *Telemetry) { v.Stalls = note.Notes{note.New(note.ClientStood, time.Second, time.Second)} },
		"open-file limit of 10": func(v *Telemetry) { v.PeakInFlight = 1000 },
	} {
		v := good
		change(&v)
		if d := all(v); len(d) != 1 || !strings.Contains(d.String(), want) {
			t.Errorf("%q, want %q", d, want)
		}
	}
}

// TestSlowClient: a client that has too little of a processor for its load is
// reported as the limit, not the server.
func TestSlowClient(t *testing.T) {
	p := startProcess(t, "burst")
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	c := &Client{URL: p.url, Model: "m", Stream: true, Engine: "vllm"}
	const n = 12_000 // Due within 0.2 s: some three times what one core does.
	trial := measure.Trial{Workload: fixedLengths(16, 32, workload.Constant), Window: 200 * time.Millisecond}
	obs, err := c.Run(t.Context(), trial, requests(n, 16, 32, 60_000))
	if err != nil || len(obs.Records) != n {
		t.Fatalf("%d records, %v", len(obs.Records), err)
	}
	if doubts := measure.Reduce(trial, obs).Warnings; !doubts.Has(note.SendLag) {
		t.Errorf("doubts: %s", doubts)
	}
}

// TestSpend: the process's own figures come from the kernel and the runtime.
func TestSpend(t *testing.T) {
	spent := spending()
	for start := time.Now(); time.Since(start) < 30*time.Millisecond; {
	}
	runtime.GC()
	var v Telemetry
	spent(&v)
	if v.CPU <= 0 || v.Processors < 1 || v.gcPause <= 0 || v.gcPause > time.Second {
		t.Errorf("%+v", v)
	}
}

// TestSpendOfTheTrial: what the process spends while answers are counted, when the trial is over, is
// not laid upon the trial.
func TestSpendOfTheTrial(t *testing.T) {
	inner := wordServer(false, true)
	url := serve(t, func(c net.Conn, a asked) bool {
		switch {
		case strings.HasPrefix(a.head, "POST /tokenize"):
			for start := processCPU(); processCPU()-start < 300*time.Millisecond; {
			}
		case a.tokens == 3: // of the load
			time.Sleep(300 * time.Millisecond)
		}
		return inner(c, a)
	})
	c := &Client{URL: url, Model: "m", Engine: "tgi", Stream: true}
	run := must.Get(c.Start(t.Context(), measure.Trial{Concurrency: 1, Requests: 1}, requests(1, 40, 3, 0)))
	obs := must.Get(run.Wait())
	if v := run.Telemetry(); obs.Records[0].Output != 3 || v.CPU*float64(v.Processors) > 0.2 {
		t.Errorf("%d tokens, %.2f of a processor was used", obs.Records[0].Output, v.CPU*float64(v.Processors))
	}
}
