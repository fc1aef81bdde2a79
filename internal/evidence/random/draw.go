package main

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"planner/internal/list"
	"planner/model"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

// source draws drafts.
type source struct {
	*rand.Rand

	catalog *model.Catalog
	draft
	limits []relative
}

// drawn is draft i of a seed: the first that can run.
func drawn(catalog *model.Catalog, seed uint64, i int) draft {
	s := source{Rand: rand.New(rand.NewPCG(seed, uint64(i))), catalog: catalog}
	for {
		family := s.family()
		for range 100 {
			s.draft, s.limits = draft{}, nil
			s.deployment(family)
			s.workload()
			s.objective()
			if s.limit(s.limits) == nil {
				return s.draft
			}
		}
	}
}

func of[T any](s *source, values ...T) T { return values[s.IntN(len(values))] }

// logUniform draws between two ends.
func (s *source) logUniform(low, high float64) float64 {
	return low * math.Pow(high/low, s.Float64())
}

// family draws the models of one architecture.
func (s *source) family() []model.Arch {
	models := s.catalog.Models()
	slices.SortStableFunc(models, func(a, b model.Arch) int { return cmp.Compare(a.Family, b.Family) })
	return of(s, list.Groups(models, func(m model.Arch) string { return m.Family })...)
}

// deployment draws a model on GPUs, with the knobs of a server.
func (s *source) deployment(family []model.Arch) {
	m := of(s, family...)
	s.set("model.name", m.Name)
	if m.Native == model.FormatUnset || m.Native == model.BF16 || m.Native == model.FP16 {
		s.set("model.weights", of(s, model.BF16, model.FP8))
	}
	s.set("hardware.gpu", of(s, s.catalog.GPUs()...).Name)
	s.set("engine.tensor_parallel", 1<<s.IntN(4))
	seqs := 32 << s.IntN(6)
	s.set("knobs.max_num_seqs", seqs)
	s.set("knobs.max_num_batched_tokens", max(512<<s.IntN(6), seqs))
	s.set("knobs.gpu_memory_utilization", float64(80+s.IntN(16))/100)
}

// workload draws requests and their arrivals.
func (s *source) workload() {
	s.set("workload.seed", 1+s.IntN(1_000_000))
	prompt, output := s.logUniform(50, 6000), s.logUniform(20, 1500)
	kind := of(s, workload.Fixed, workload.Uniform, workload.Lognormal)
	s.set("workload.prompt", s.lengths(kind, prompt))
	s.set("workload.output", s.lengths(kind, output))
	s.arrive()
	extra := s.Float64()
	switch {
	case extra < 0.12:
		other := s.lengths(workload.Lognormal, s.logUniform(50, 6000))
		s.set("workload.mix", fmt.Sprintf(`[{ name = "a", weight = %.2f }, { name = "b", weight = 1, prompt = %s, output = %s }]`,
			s.logUniform(0.2, 5), other, s.lengths(workload.Lognormal, s.logUniform(20, 1500))))
	case extra < 0.24:
		s.prefix()
	case extra < 0.38:
		if s.IntN(3) == 0 {
			s.prefix()
		}
		s.set("workload.turns", 2+s.IntN(7))
		s.set("workload.think_time", fmt.Sprintf("%.1fs", s.logUniform(0.5, 30)))
	case extra < 0.46:
		s.Rows = 2000 + s.IntN(4000)
	}
}

func (s *source) prefix() {
	s.set("workload.prefix", fmt.Sprintf("{ groups = %d, tokens = %d }", int(s.logUniform(1, 100)), int(s.logUniform(100, 3000))))
}

func (s *source) arrive() {
	shape := of(s, 0, 0, 0, 0.5, 0.5, 0.25, 2, 2)
	if shape > 0 {
		s.set("workload.arrivals", "gamma")
		s.set("workload.burstiness", shape)
	}
}

// lengths draws a distribution of a family about a length.
func (s *source) lengths(kind workload.Dist, about float64) string {
	switch kind {
	case workload.Uniform:
		spread := 0.2 + 0.7*s.Float64()
		return fmt.Sprintf(`{ dist = "uniform", min = %.0f, max = %.0f }`, about*(1-spread), about*(1+spread))
	case workload.Lognormal:
		return fmt.Sprintf(`{ dist = "lognormal", median = %.0f, sigma = %.2f, min = %.0f, max = %.0f }`, about, 0.3+0.7*s.Float64(),
			max(about/20, 4), about*10)
	}
	return fmt.Sprintf(`{ dist = "fixed", value = %.0f }`, about)
}

// objective draws one to three limits, or goodput.
func (s *source) objective() {
	factor := func() float64 { return s.logUniform(1.2, 20) }
	if s.Float64() < 0.15 {
		parts := [][]measure.Metric{{measure.TTFT, measure.TPOT}, {measure.TTFT}, {measure.TTFT, measure.TPOT, measure.E2E}, {measure.E2E}}
		s.limits = []relative{{measure.Bound{Metric: measure.Goodput, Quantile: of(s, 0.9, 0.95, 0.99)}, of(s, parts...), factor()}}
		return
	}
	for range of(s, 1, 1, 2, 3) {
		quantile, _ := measure.ParseStat(of(s, measure.Stats()...))
		b := measure.Bound{Metric: of(s, measure.AllLatencies()...), Quantile: quantile}
		if !slices.ContainsFunc(s.limits, func(r relative) bool { return r.bound == b }) {
			s.limits = append(s.limits, relative{bound: b, factor: factor()})
		}
	}
}
