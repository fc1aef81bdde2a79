//go:build realengines

package realengines

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

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

// TestPredict is an experiment: it calibrates the simulated engine on two rates
// of a real vLLM and prints how its means at a third rate compare with what is
// measured there, beside the noise of three repetitions. No figure is asserted: a
// machine that does something else besides is measured with it.
func TestPredict(t *testing.T) {
	if testing.Short() {
		t.Skip("an experiment of five minutes that asserts nothing")
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
	d.measure(strconv.Itoa(predictedRate), "predicted")
	out, _ = d.must([]int{3, 4}, "simulate", "planner.toml", "--catalog", "gpus.toml", "--rate", strconv.Itoa(predictedRate), "--duration", "600s", "--json",
		"--set", "engine.kind=simulated", "--set", "engine.calibration=vllm.calibration")
	var simulated measure.Measurement
	if err := json.Unmarshal(out, &simulated); err != nil {
		t.Fatalf("%v in %.300s", err, out)
	}
	t.Logf("\n%s", compared(d.journal("predicted"), simulated))
}

// measure runs trials at some rates, each three times on other requests.
func (d *desk) measure(rates, run string) {
	d.t.Helper()
	d.must(nil, "sweep", "planner.toml", "--catalog", "gpus.toml", "--rates", rates, "--repeats", strconv.Itoa(repetitions),
		"--duration", "20s", "--warm-up", "3s", "--output", run)
	for _, m := range d.journal(run) {
		d.t.Logf("%g/s: %d requests, TTFT %v, TPOT %v, E2E %v, valid %v: %.300q", m.Trial.Rate, m.Requests, m.TTFT.Mean, m.TPOT.Mean, m.E2E.Mean, m.Valid, m.Warnings)
	}
}

// compared is a table of means: measured, with the standard deviation of the
// repetitions, and predicted.
func compared(seen []measure.Measurement, simulated measure.Measurement) string {
	var b strings.Builder
	fmt.Fprintf(&b, "at %d/s   measured, ms   sd of %d   predicted   error\n", predictedRate, len(seen))
	for _, metric := range []measure.Metric{measure.TTFT, measure.TPOT, measure.E2E} {
		sum, squares, n := 0.0, 0.0, float64(len(seen))
		for i := range seen {
			x := 1e3 * seen[i].Latency(metric).Mean.Seconds()
			sum, squares = sum+x, squares+x*x
		}
		mean := sum / n
		sd := math.Sqrt(max(squares/n-mean*mean, 0) * n / (n - 1))
		predicted := 1e3 * simulated.Latency(metric).Mean.Seconds()
		fmt.Fprintf(&b, "%-10v %10.2f %10.2f %12.2f %+7.1f %%\n", metric, mean, sd, predicted, 100*(predicted/mean-1))
	}
	return b.String()
}
