package main

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"planner/model"
	"planner/sweep/workload"
)

// openFile is a file of a served open-loop benchmark.
type openFile struct {
	ID             string `json:"id"`
	Model          string `json:"model"`
	Engine         string `json:"engine"`
	TensorParallel int    `json:"tensor_parallel"`
	Precision      string `json:"precision"`
	Knobs          struct {
		Seqs        int     `json:"max_num_seqs"`
		Tokens      int     `json:"max_num_batched_tokens"`
		Utilization float64 `json:"gpu_memory_utilization"`
		ModelLen    int     `json:"max_model_len"`
		Caching     bool    `json:"prefix_caching"`
	} `json:"knobs"`
	Blocks   int `json:"kv_blocks_reported"`
	Workload struct {
		Timeout  float64 `json:"client_timeout_s"`
		Prefix   int     `json:"prefix_tokens"`
		Question int     `json:"question_tokens"`
		Output   int     `json:"output_tokens"`
		Groups   int     `json:"prefix_groups"`
		Prompts  int     `json:"prompts_per_prefix"`
	} `json:"workload"`
	Measured []openStage `json:"measured"`
}

// openStage is one stage of such a benchmark.
type openStage struct {
	Rate      float64            `json:"rate_per_s"`
	Duration  float64            `json:"duration_s"`
	Completed float64            `json:"completed_per_s"`
	Prompt    float64            `json:"prompt_tokens_mean"`
	TTFT      map[string]float64 `json:"ttft_ms"`
	E2E       map[string]float64 `json:"e2e_ms"`
	TPOT      float64            `json:"tpot_mean_ms"`
}

// clientTimeout is that of the load generator where a file does not say.
const clientTimeout = 300 * time.Second

// readOpen reads the open-loop files of a folder.
func readOpen(dir string, catalog *model.Catalog, seed uint64) ([]server, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*-tp*-*.json"))
	if err != nil {
		return nil, err
	}
	var out []server
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		var f openFile
		if err := json.Unmarshal(data, &f); err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
		s, err := f.server(catalog, seed)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
		out = append(out, s)
	}
	return out, nil
}

// server turns a file into a server and its loads.
func (f *openFile) server(catalog *model.Catalog, seed uint64) (server, error) {
	dep, err := deployed(catalog, f.Model, "H100 SXM")
	if err != nil {
		return server{}, err
	}
	dep.TP, dep.Precision.Weights = f.TensorParallel, model.BF16
	s := server{file: f.ID, group: groupOpen, dep: dep, cache: f.Knobs.Caching}
	if strings.Contains(f.Precision, "fp8") {
		s.dep.Precision.Weights = model.FP8
		s.group = groupScout
	}
	s.limits = model.EngineArgs{
		MaxNumSeqs: f.Knobs.Seqs, MaxNumBatchedTokens: f.Knobs.Tokens, Utilization: f.Knobs.Utilization,
		MaxModelLen: f.Knobs.ModelLen, EngineVersion: strings.TrimPrefix(f.Engine, "vLLM "),
	}
	// What vLLM reports is in tokens, for which every group of layers takes blocks.
	m, err := model.MemoryPlan(s.dep, s.limits)
	if err != nil {
		return server{}, err
	}
	s.pool = f.Blocks * (m.Layout.FullGroups + m.Layout.WindowGroups)
	s.limits.KVBlocks = s.pool
	pool := f.prompts(seed)
	for i, stage := range f.Measured {
		l := load{
			label: fmt.Sprintf("%g/s", stage.Rate), requests: f.schedule(&stage, pool, seed+uint64(i)), timeout: clientTimeout,
			measured: figures{stage.TTFT["mean"], stage.E2E["mean"], stage.TPOT, stage.TTFT["p99"], stage.Completed},
		}
		if strings.HasSuffix(f.ID, "-reasoning") {
			s.group = groupOverload
		}
		s.loads = append(s.loads, l)
	}
	return s, nil
}

// prompts draws the distinct prompts that the load generator repeats: each has a
// prefix that its group shares and a question of its own. Retokenised text is some 4.7 %
// longer than asked for; lengths are spread over one block of the cache. The generator
// shuffles the prompts once and then sends them in that order again and again
// (inference-perf, shared prefix data: an index modulo the number of prompts).
func (f *openFile) prompts(seed uint64) []workload.Request {
	rng := rand.New(rand.NewPCG(seed, 11))
	mean := f.Measured[0].Prompt
	if mean == 0 {
		mean = 1.047 * float64(f.Workload.Prefix+f.Workload.Question)
	}
	prefix := int(math.Round(mean * float64(f.Workload.Prefix) / float64(f.Workload.Prefix+f.Workload.Question)))
	var out []workload.Request
	for g := range f.Workload.Groups {
		for p := range f.Workload.Prompts {
			total := int(math.Round(mean + 16*(rng.Float64()-0.5)))
			out = append(out, workload.Request{Prompt: total, Output: f.Workload.Output, Shared: []workload.Segment{
				{Content: workload.TraceContent(uint64(1 + g)), Tokens: prefix},
				{Content: workload.TraceContent(uint64(1000 + g*f.Workload.Prompts + p)), Tokens: total - prefix},
			}})
		}
	}
	rng.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}

// schedule draws one stage: exponential gaps, rescaled to fill it.
func (f *openFile) schedule(stage *openStage, prompts []workload.Request, seed uint64) []workload.Request {
	rng := rand.New(rand.NewPCG(seed, 12))
	n := int(math.Round(stage.Rate * stage.Duration))
	at, sum := make([]float64, n), 0.0
	for i := range at {
		sum += rng.ExpFloat64()
		at[i] = sum
	}
	out := make([]workload.Request, n)
	for i := range out {
		out[i] = prompts[i%len(prompts)]
		out[i].ID = i
		out[i].Due = time.Duration(at[i] / sum * stage.Duration * float64(time.Second))
	}
	return out
}
