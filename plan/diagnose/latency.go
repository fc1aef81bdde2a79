package diagnose

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"planner/model"
	"planner/sweep/measure"
)

// faster checks whether tokens arrive sooner than the hardware named can read the weights of the model named:
// if so, the data sheet is that of another server.
func (s *serverTrials) faster() *Finding {
	if s.bounds == nil || !(s.bounds.StreamTokensPerS > 0) {
		return nil
	}
	least := seconds(1 / s.bounds.StreamTokensPerS)
	for _, m := range s.whole() {
		if m.TPOT.P50 > 0 && m.TPOT.P50 < least {
			return &Finding{"faster_than_hardware", "faster than the hardware: tokens come sooner than the GPU that is named can read the weights",
				[]string{fmt.Sprintf("TPOT of %s in the median %s; reading the weights once takes %s at the bandwidth of the data sheet", ms(m.TPOT.P50), at(m), ms(least))},
				"look whether the server has this model, these weights, this GPU and as many of them, and engine.speculative where it guesses tokens ahead"}
		}
	}
	return nil
}

// prefill checks whether prompts take too long even at low load.
func (s *serverTrials) prefill() *Finding {
	m := s.low()
	if m == nil || m.ByPrompt == nil {
		return nil
	}
	short, long := m.ByPrompt.Short, m.ByPrompt.Long
	if long.Tokens < longer*short.Tokens || !(1-over(short.TTFT, long.TTFT) >= grows*(1-short.Tokens/long.Tokens)) {
		return nil
	}
	evidence := []string{fmt.Sprintf("TTFT of %s for prompts of %.0f tokens, %s for %.0f, in the median %s",
		ms(short.TTFT), short.Tokens, ms(long.TTFT), long.Tokens, at(m))}
	if limit := s.limitOf(measure.TTFT); limit > 0 && over(long.TTFT, limit) > nearLimit {
		evidence = append(evidence, fmt.Sprintf("that is %s the limit of %s, before any load", times(over(long.TTFT, limit)), ms(limit)))
	}
	if s.bounds != nil && s.bounds.IdleTTFT > 0 && over(m.TTFT.P50, seconds(s.bounds.IdleTTFT)) > slowerThan {
		evidence = append(evidence, fmt.Sprintf("%.1f times the modelled TTFT of an idle engine, %s; the data sheet's compute alone would take %s",
			over(m.TTFT.P50, seconds(s.bounds.IdleTTFT)), ms(seconds(s.bounds.IdleTTFT)), ms(seconds(s.bounds.PrefillSeconds))))
	}
	if len(evidence) == 1 {
		return nil // prompts take time, but none too much
	}
	t := m.Server.Time
	if t != nil && t.Communication >= linked && s.bounds != nil && s.bounds.IdleTTFT > beyondCompute*s.bounds.PrefillSeconds {
		return &Finding{"prefill", "prefill: the time to first token grows with the prompt at low load already, and the links between GPUs take most of it",
			append(evidence, fmt.Sprintf("communication takes %s of the steps", percent(t.Communication))),
			"less tensor_parallel, with weights in fp8 where they do not fit, or GPUs with faster links; a prefix cache if prompts share their beginnings, or a TTFT limit by length"}
	}
	return &Finding{"prefill", "prefill: the time to first token grows with the prompt at low load already", evidence,
		"larger max_num_batched_tokens (a long prompt takes fewer steps), more tensor_parallel, weights in fp8, a prefix cache if prompts share their beginnings, or a TTFT limit by length"}
}

// decode checks whether tokens are slow even at low load, and whether the bandwidth is used up or not.
func (s *serverTrials) decode() *Finding {
	m := s.low()
	if m == nil || m.TPOT.P50 <= 0 {
		return nil
	}
	evidence := []string{fmt.Sprintf("TPOT of %s in the median %s, with %.1f requests in flight", ms(m.TPOT.P50), at(m), inFlight(m))}
	if limit := cmp.Or(s.limitOf(measure.TPOT), s.limitOf(measure.ITL)); limit > 0 && over(m.TPOT.P50, limit) > nearLimit {
		evidence = append(evidence, fmt.Sprintf("%s the limit of %s", times(over(m.TPOT.P50, limit)), ms(limit)))
	}
	if s.bounds == nil || s.bounds.WeightSeconds <= 0 {
		if len(evidence) == 1 {
			return nil
		}
		return &Finding{"inefficiency", "tokens come slowly at low load; without model and hardware nobody can say whether the bandwidth is used up", evidence,
			"give model and hardware, which the roofline needs; then more tensor_parallel or less precision against bandwidth, CUDA graphs and the host's speed against overhead"}
	}
	ideal := s.bounds.ReadSeconds(inFlight(m))
	used := ideal / m.TPOT.P50.Seconds()
	if idle := s.bounds.IdleTPOT + ideal - s.bounds.WeightSeconds; over(m.TPOT.P50, seconds(idle)) > slowerThan {
		evidence = append(evidence, fmt.Sprintf("%.1f times what is modelled, %s", over(m.TPOT.P50, seconds(idle)), ms(seconds(idle))))
	}
	if len(evidence) == 1 {
		return nil // as fast as is asked and modelled
	}
	evidence = append(evidence, fmt.Sprintf("reading weights and KV cache once takes %s: %s of the bandwidth is used", ms(seconds(ideal)), percent(used)))
	if used >= streamed {
		return &Finding{"bandwidth", "bandwidth: tokens come as fast as the weights can be read, and that is slow", evidence,
			"fewer bytes a GPU: more tensor_parallel, weights or KV cache in fp8, or a GPU with more bandwidth; batching does not help one token"}
	}
	return &Finding{"inefficiency", "inefficiency: tokens come slowly at low load though most of the bandwidth is idle", evidence,
		"CUDA graphs (no --enforce-eager), async_scheduling, the attention backend, links between the GPUs; a profile of a few decode steps shows the gaps between kernels"}
}

// tight finds the latency nearest to its limit when requests hardly ever overlap.
func (s *serverTrials) tight() *Finding {
	m := s.low()
	if m == nil || len(s.slo.Bounds) == 0 || m.E2E.Mean <= 0 || inFlight(m) > 1 && (m.Achieved > alone*s.highest || inFlight(m) > few) {
		return nil
	}
	b := slices.MaxFunc(s.slo.Bounds, func(a, b measure.Bound) int {
		return cmp.Compare(over(m.Bounded(a), a.Limit), over(m.Bounded(b), b.Limit))
	})
	most := over(m.Bounded(b), b.Limit)
	if !(most > nearLimit) {
		return nil
	}
	name := strings.TrimSpace(b.Stat() + " " + strings.ToUpper(b.Metric.String()) + " " + b.Class)
	return &Finding{"tight_limit", "a tight limit: requests that are hardly ever together take most of it, so that load is not what fills it",
		[]string{fmt.Sprintf("%s of %s %s, with %.2g requests in flight: %s the limit of %s", name, ms(m.Bounded(b)), at(m), inFlight(m), times(most), ms(b.Limit))},
		"a looser limit, or one by length; else what makes a request that is alone faster: more tensor_parallel, weights in fp8, a faster GPU. More instances do not help"}
}

// waits checks for late first tokens at loads at which nothing should wait.
func (s *serverTrials) waits() *Finding {
	limit := s.limitOf(measure.TTFT)
	var worst *measure.Measurement
	most := spike
	for _, m := range s.whole() {
		_, slow := s.slowest(m)
		ratio := over(slow, m.TTFT.P50)
		late := limit > 0 && s.missed(m, measure.TTFT) && 2*m.TTFT.P50 < limit || limit == 0 && ratio >= spikeNoLimit
		if m.Overloaded || m.Achieved > moderate*s.highest || !late || !(ratio >= most) {
			continue
		}
		worst, most = m, ratio
	}
	if worst == nil {
		return nil
	}
	m := worst
	stat, slow := s.slowest(m)
	evidence := []string{fmt.Sprintf("%s TTFT of %s, %.0f times the median of %s, %s, which is %s of the highest throughput seen",
		stat, ms(slow), most, ms(m.TTFT.P50), at(m), percent(m.Achieved/s.highest))}
	if b := m.ByPrompt; b != nil {
		evidence = append(evidence, fmt.Sprintf("the slowest 2 %% of the requests have prompts of %.0f tokens in the mean, all of them %.0f", b.Slow.Tokens, b.Mean))
		if s.lengthsAlone() || longAreSlow(m) {
			return &Finding{"mixed_lengths", "mixed lengths: the slowest TTFTs are those of the long prompts, most requests are fast", evidence,
				"a limit by length, or a pool of its own for the long prompts; long_prefill_token_threshold keeps short prompts from waiting behind long ones"}
		}
	}
	cause, next := s.cause(m)
	return &Finding{"queueing", "queueing: some first tokens come very late while most come soon", append(evidence, cause), next}
}

// slowest returns the p99 of the time to first token or, if the trial was too short for it, the highest
// quantile with a limit.
func (s *serverTrials) slowest(m *measure.Measurement) (stat string, value time.Duration) {
	if m.TTFT.P99 > 0 {
		return "p99", m.TTFT.P99
	}
	highest := 0.0
	for _, b := range s.slo.Latencies() {
		if v := m.Bounded(b); b.Metric == measure.TTFT && b.Class == "" && b.Quantile > highest && v > 0 {
			stat, value, highest = b.Stat(), v, b.Quantile
		}
	}
	return stat, value
}

// longAreSlow reports whether the slowest requests of a trial are those with long prompts.
func longAreSlow(m *measure.Measurement) bool {
	return m.ByPrompt != nil && m.ByPrompt.Slow.Tokens >= longer*m.ByPrompt.Mean
}

// lengthsAlone reports whether prompt lengths alone make first tokens late, at low load: under load short
// prompts wait behind long ones, so that the late requests are no longer only the long ones.
func (s *serverTrials) lengthsAlone() bool {
	m := s.low()
	return m != nil && longAreSlow(m) && over(m.TTFT.P99, m.TTFT.P50) >= spike
}

// cause says what requests of a trial may have waited for, and what to try.
func (s *serverTrials) cause(m *measure.Measurement) (evidence, next string) {
	seqs, lora, replicas := placesOf(m), model.LoRA{}, 1
	if s.bounds != nil {
		lora, replicas = s.bounds.LoRA, max(s.bounds.Replicas, 1)
	}
	flight := inFlight(m)
	// At most so many are in flight: the mean plus three standard deviations of a Poisson number.
	most := func(mean float64) float64 { return mean + 3*math.Sqrt(mean) }
	switch {
	case m.Server.Preemptions != nil && *m.Server.Preemptions > 0 || m.Server.PeakKV != nil && *m.Server.PeakKV >= fullPool:
		return "the KV cache was full, or requests were preempted", "more KV cache: higher gpu_memory_utilization, kv_cache = \"fp8\", more tensor_parallel; or shorter max_model_len"
	case seqs > 0 && most(flight) >= float64(seqs):
		return fmt.Sprintf("%.0f requests were in flight in the mean where max_num_seqs lets %d run", flight, seqs), "a higher max_num_seqs"
	case lora.Slots < lora.Adapters && lora.Distinct(most(flight/float64(replicas))) >= float64(lora.Slots):
		evidence = fmt.Sprintf("%s requests were in flight in the mean and choose among %d adapters, of which %d fit at once", figure(flight), lora.Adapters, lora.Slots)
		if replicas > 1 {
			evidence += fmt.Sprintf(" on each of %d replicas", replicas)
		}
		return evidence, "a larger engine.lora.slots"
	}
	return "neither max_num_seqs nor the KV cache explains it", "the time line of the trial: arrivals in bursts ask for headroom, pauses of the server for its log (garbage collection, compilation, other tenants)"
}
