package main

import (
	"time"

	"planner/model"
	"planner/sweep/workload"
)

// metric is a figure of the table.
type metric int

const (
	metricTTFT metric = iota
	metricE2E
	metricTPOT
	metricP99
	metricCompleted
	metricTTFTMedian
	metricTPOTMedian
	metricTPOTP99
	metricE2EP99
	metricCount
)

func (m metric) String() string {
	return [...]string{"TTFT", "E2E", "TPOT", "p99 TTFT", "completed/s", "p50 TTFT", "p50 TPOT", "p99 TPOT", "p99 E2E"}[m]
}

// figures are what a benchmark reports of one load, by metric: milliseconds, requests per
// second. A figure that was not measured is zero.
type figures [metricCount]float64

// load is one load that a server saw and what was measured.
type load struct {
	label    string
	requests []workload.Request
	slots    int           // closed loop; 0: open loop
	timeout  time.Duration // of the client
	client   float64       // milliseconds of the client's own that its TTFT holds
	measured figures
	omitted  string // why it does not count in the errors; empty: it does
}

// server is one engine under loads that follow one another.
type server struct {
	file   string
	group  string
	dep    model.Deployment
	limits model.EngineArgs
	pool   int  // KV blocks that the engine reported, 0: unknown
	cache  bool // prefix caching
	// engineTimes says that TTFT counts from when the engine queued a request, so without
	// the front end.
	engineTimes bool
	loads       []load
}

// deployed is the deployment of a model on a GPU; in which format and on how many is left open.
func deployed(catalog *model.Catalog, name, gpu string) (dep model.Deployment, err error) {
	if dep.Arch, err = catalog.Model(name); err == nil {
		dep.Hardware, err = catalog.GPU(gpu)
	}
	return dep, err
}

// model and gpu are what is left out together.
func (s *server) model() string { return s.dep.Arch.Name }
func (s *server) gpu() string   { return s.dep.Hardware.Name }

// pair names the server's model with its GPU.
func (s *server) pair() string { return s.model() + ", " + s.gpu() }

// kind names the kind of the server's model: dense or of experts, by format.
func (s *server) kind() string {
	if s.dep.Arch.MoE.Present() {
		return "mixtures of experts"
	}
	return "dense models in " + s.dep.Precision.Weights.String()
}

// The groups of the table, in its order.
const (
	groupOpen     = "open loop, H100, vLLM 0.15.1"
	groupScout    = "open loop, Llama-4 Scout fp8, H100"
	groupOverload = "open loop, overloaded"
	groupClosed   = "closed loop, H100, H200 and B200"
	groupTrace    = "trace, Llama-3.1-8B, RTX PRO 6000"
)
