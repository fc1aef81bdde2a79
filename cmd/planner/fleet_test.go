package main

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"testing"
)

// fleetOf runs planner fleet and reads what its JSON says of attainment and replicas.
func fleetOf(t *testing.T, args ...string) (attainment, replicas float64) {
	t.Helper()
	var out, errs bytes.Buffer
	execute(t.Context(), append([]string{"planner", "fleet", "--json", "--no-static", "--quiet"}, args...), &out, &errs, &interrupts{})
	var answer struct {
		Attainment struct {
			Value float64 `json:"value"`
		} `json:"attainment"`
		Replicas struct {
			Mean struct {
				Value float64 `json:"value"`
			} `json:"mean"`
		} `json:"replicas"`
	}
	if err := json.Unmarshal(out.Bytes(), &answer); err != nil {
		t.Fatalf("%v: %s%s", err, out.Bytes(), errs.Bytes())
	}
	return answer.Attainment.Value, answer.Replicas.Mean.Value
}

// TestMeasuredFleet replays a case that llm-d measured: a static pool of eight served
// every request within its limits, and the autoscaled one 95.8 % at 5.93 replicas. What
// uncertain inputs do to that stands in docs/fleet.md.
func TestMeasuredFleet(t *testing.T) {
	const file = "testdata/fleet/llm-d.toml"
	if within, replicas := fleetOf(t, file, "--seeds", "1", "--set", "fleet.replicas=8"); within < 0.98 || replicas != 8 {
		t.Errorf("a static pool of 8: %.4f within the limits at %v replicas, measured 1", within, replicas)
	}
	within, replicas := fleetOf(t, file, "--seeds", "8")
	if math.Abs(within-0.958) > 0.02 || math.Abs(replicas-5.93) > 0.3 {
		t.Errorf("%.4f within the limits at %.2f replicas, measured 0.958 at 5.93", within, replicas)
	}
}

// TestInterruptedFleet wants a replay that is interrupted to end without an answer.
func TestInterruptedFleet(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, errs bytes.Buffer
	args := []string{"planner", "fleet", "testdata/fleet/llm-d.toml", "--set", `fleet.stages=[{rate=1,duration="60s"}]`}
	if code := execute(ctx, args, &out, &errs, &interrupts{}); code != exitInterrupted || out.Len() > 0 {
		t.Errorf("exit code %d, %s%s", code, out.Bytes(), errs.Bytes())
	}
}

// TestTooManyRequests wants traffic refused that memory may not hold.
func TestTooManyRequests(t *testing.T) {
	var out, errs bytes.Buffer
	args := []string{"planner", "fleet", "testdata/fleet/llm-d.toml", "--repeat", "2000"}
	if code := execute(t.Context(), args, &out, &errs, &interrupts{}); code != exitUsage || !bytes.Contains(errs.Bytes(), []byte("too many to replay")) {
		t.Errorf("exit code %d, %s", code, errs.Bytes())
	}
}
