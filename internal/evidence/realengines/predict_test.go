//go:build realengines

package realengines

import (
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"testing"

	stats "gonum.org/v1/gonum/stat"

	"planner/model/calibrate"
	"planner/sweep/measure"
)

// processors is what users write into a catalog for hardware that is in none: one
// core at 2.7 GHz with AVX-512 for bf16, 128 operations a cycle by its data sheet,
// and a guess at what of the memory's bandwidth it gets. The calibration is to find
// what these are worth.
const processors = `
[[gpu]]
name = "two processors"
memory_gb = 16
mem_bandwidth_gbs = 20
bf16_dense_tflops = 0.35
scaleup_link = "none"
pcie_gbs_per_direction = 8
tdp_w = 50

source = "data sheet of the processor; bandwidth guessed"
`

// The rates of the prediction, in requests of 16 tokens a second: those that the
// simulated engine is calibrated on, and the one that it is to predict.
const (
	calibrationRates = "2,8"
	predictedRate    = 4
	repetitions      = 3
)

const (
	// within is the factor of the measured mean E2E that the predicted one must lie
	// within. A busy neighbour changes the speed of two processors by tens of per
	// cent between the calibration and the trials that it is held against; a model
	// or a fit that is wrong is off by more.
	within = 2
	// steady is the standard deviation of the repetitions, as a share of their mean,
	// beyond which the machine changed so much between them that they say nothing.
	steady = 0.3
)

// TestPredict calibrates the simulated engine on two rates of a real vLLM and holds
// its mean E2E at a third rate against what is measured there. It prints the other
// means as well, beside the noise of three repetitions.
func TestPredict(t *testing.T) {
	if testing.Short() {
		t.Skip("a prediction takes five minutes")
	}
	s := vllm()
	need(t, s)
	d := s.desk(t)
	d.write("gpus.toml", processors)
	toml, err := os.ReadFile(d.path("planner.toml"))
	if err != nil {
		t.Fatal(err)
	}
	d.write("planner.toml", strings.Replace(string(toml), "max_num_seqs = [16, 4]", "max_num_seqs = 16", 1)+"\n[hardware]\ngpu = \"two processors\"\n")

	d.measure(calibrationRates, "calibrated")
	out, _ := d.must(nil, "calibrate", "calibrated", "--config", "planner.toml", "--catalog", "gpus.toml", "-o", "vllm.calibration")
	t.Logf("%s", out)
	f, err := os.Open(d.path("vllm.calibration"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	fitted, err := calibrate.Read(f)
	if err != nil {
		t.Fatal(err)
	}
	seen := d.measure(strconv.Itoa(predictedRate), "predicted")
	out, _ = d.must([]int{3, 4}, "simulate", "planner.toml", "--catalog", "gpus.toml", "--rate", strconv.Itoa(predictedRate), "--duration", "600s", "--json",
		"--set", "engine.kind=simulated", "--set", "engine.version="+fitted.FittedTo.EngineVersion, "--set", "engine.calibration=vllm.calibration")
	var simulated measure.Measurement
	if err := json.Unmarshal(out, &simulated); err != nil {
		t.Fatalf("%v in %.300s", err, out)
	}
	t.Logf("at %d/s   measured, ms   sd of %d   predicted   error", predictedRate, len(seen))
	for _, metric := range []measure.Metric{measure.TTFT, measure.TPOT, measure.E2E} {
		mean, sd := meanOf(seen, metric)
		predicted := 1e3 * simulated.Latency(metric).Mean.Seconds()
		t.Logf("%-10v %10.2f %10.2f %12.2f %+7.1f %%", metric, mean, sd, predicted, 100*(predicted/mean-1))
		switch {
		case metric != measure.E2E:
		case sd > steady*mean:
			t.Skipf("SKIPPED: the repetitions differ too much to hold a prediction against: mean E2E %.1f ms, sd %.1f ms", mean, sd)
		case !(predicted > mean/within && predicted < mean*within):
			t.Errorf("mean E2E %.1f ms predicted, %.1f ms measured (sd %.1f ms): not within a factor of %d", predicted, mean, sd, within)
		}
	}
}

// measure runs trials at some rates, each three times on other requests, and returns
// those that planner trusts. Where these are fewer than two of a rate the machine
// does something else besides, and the test is skipped.
func (d *desk) measure(rates, run string) []measure.Measurement {
	d.t.Helper()
	d.must([]int{4}, "sweep", "planner.toml", "--catalog", "gpus.toml", "--rates", rates, "--repeats", strconv.Itoa(repetitions),
		"--duration", "20s", "--warm-up", "3s", "--output", run)
	var trusted []measure.Measurement
	of := map[string]int{}
	var doubts []string
	for _, m := range d.journal(run) {
		d.t.Logf("%g/s: %d requests, TTFT %v, TPOT %v, E2E %v, valid %v: %.300q", m.Trial.Rate, m.Requests, m.TTFT.Mean, m.TPOT.Mean, m.E2E.Mean, m.Valid, m.Warnings)
		if !m.Valid {
			doubts = append(doubts, m.Warnings.Texts()...)
			continue
		}
		trusted = append(trusted, m)
		of[strconv.FormatFloat(m.Trial.Rate, 'g', -1, 64)]++
	}
	for rate := range strings.SplitSeq(rates, ",") {
		if of[rate] < 2 {
			d.t.Skipf("SKIPPED: planner trusts %d of %d trials at %s/s: %.600q", of[rate], repetitions, rate, doubts)
		}
	}
	return trusted
}

// meanOf is the mean over trials of their mean latencies, in milliseconds, with the
// standard deviation between them.
func meanOf(seen []measure.Measurement, metric measure.Metric) (mean, sd float64) {
	all := make([]float64, len(seen))
	for i := range seen {
		all[i] = 1e3 * seen[i].Latency(metric).Mean.Seconds()
	}
	return stats.MeanStdDev(all, nil)
}
