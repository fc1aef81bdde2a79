package diagnose

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"planner/sweep/measure"
)

// failing finds requests that a server, or a proxy before it, does not answer although others are fast, in the
// trial with the lowest rate that has any. If the served ones are slow too, failures may be timeouts in a
// queue.
func failing(trials []measure.Measurement) *Finding {
	var worst *measure.Measurement
	for i := range trials {
		m := &trials[i]
		w := m.Trial.Workload
		waited := w != nil && w.Timeout > 0 && float64(m.E2E.P50) > quick*float64(w.Timeout)
		if m.Requests >= fewest && float64(m.Failed) > failed*float64(m.Requests) && m.E2E.P50 > 0 && !waited && (worst == nil || m.Trial.Rate < worst.Trial.Rate) {
			worst = m
		}
	}
	if worst == nil {
		return nil
	}
	return &Finding{"failing", "requests fail while those that are served are quick",
		[]string{fmt.Sprintf("%d of %d requests %s: %s", worst.Failed, worst.Requests, at(worst), worst.Complaint()),
			fmt.Sprintf("those that were served took %s in the median", ms(worst.E2E.P50))},
		"the server's log, and the limits on connections and on waiting requests of the server and of what stands before it"}
}

// batching checks for throughput that is left unused because of a limit on the time per token.
func (s *serverTrials) batching() *Finding {
	var within, beyond *measure.Measurement
	for _, m := range s.whole() {
		slow := s.missed(m, measure.TPOT, measure.ITL)
		switch {
		case m.Overloaded:
		case !slow:
			within = m
		case within != nil:
			beyond = m
		}
	}
	if within == nil || beyond == nil || !(beyond.OutputTokens >= gained*within.OutputTokens) || !(over(beyond.TPOT.P50, within.TPOT.P50) > 1.1) {
		return nil
	}
	pace := measure.ITL
	if s.missed(beyond, measure.TPOT) {
		pace = measure.TPOT
	}
	return &Finding{"batching", "the batching trade: throughput still grows where the pace of tokens ends the load",
		[]string{fmt.Sprintf("%.0f output tokens/s with a TPOT of %s in the median %s", within.OutputTokens, ms(within.TPOT.P50), at(within)),
			fmt.Sprintf("%.0f tokens/s (%+.0f %%) with %s %s, beyond the limit", beyond.OutputTokens, 100*(beyond.OutputTokens/within.OutputTokens-1), ms(beyond.TPOT.P50), at(beyond))},
		"a looser " + strings.ToUpper(pace.String()) + " limit buys throughput; without one, smaller max_num_batched_tokens keeps steps short, and more tensor_parallel or prefill on instances of its own moves the trade"}
}

// missed reports whether a trial exceeds a limit on one of the latencies.
func (s *serverTrials) missed(m *measure.Measurement, metrics ...measure.Metric) bool {
	return slices.ContainsFunc(s.slo.Latencies(), func(b measure.Bound) bool { return slices.Contains(metrics, b.Metric) && m.Bounded(b) > b.Limit })
}

// cache checks whether shared prefixes are found in the prefix cache.
func (s *serverTrials) cache() *Finding {
	for _, m := range s.trials {
		if w := m.Trial.Workload; w != nil && w.Turns > 1 && cacheless(m) {
			return &Finding{"cache_misses", "every turn of a conversation is computed anew: the prefix cache is off",
				[]string{fmt.Sprintf("each of %d turns begins with all that was said before", w.Turns)}, "prefix_caching = true"}
		}
	}
	for _, m := range s.whole() {
		w := m.Trial.Workload
		if w == nil || m.Overloaded {
			continue
		}
		prompt, _ := w.MeanTokens()
		tokens, texts := w.SharedText()
		share := tokens / prompt
		if !(share >= sharedPrompt) || float64(m.Requests) < texts {
			continue
		}
		evidence := s.notFound(m, share)
		if evidence == "" {
			continue
		}
		said := []string{fmt.Sprintf("%s of a prompt is shared with others: %.0f texts of %.0f tokens", percent(share), texts, tokens), evidence}
		if cacheless(m) {
			return &Finding{"cache_misses", "warm is no better than cold: the prefix cache is off", said, "prefix_caching = true"}
		}
		if pool := poolOf(m); pool > 0 && texts*tokens > pool*(1-used(m)) {
			said = append(said, fmt.Sprintf("they take %.0f tokens together, and the KV cache holds %.0f, of which requests use up to %s", texts*tokens, pool, percent(used(m))))
			return &Finding{"cache_eviction", "warm is no better than cold: what is shared is evicted before it is used again", said,
				"more KV cache (higher gpu_memory_utilization, kv_cache = \"fp8\", more tensor_parallel), or a router that sends a prefix to the same instance"}
		}
		return &Finding{"cache_misses", "warm is no better than cold: shared prefixes are not found in the cache", said,
			"whether prompts begin with the shared part to the token (no date or name ahead of it), and whether a router sends a prefix to the same instance"}
	}
	return nil
}

// cacheless reports whether a trial's server is known to have no prefix cache.
func cacheless(m *measure.Measurement) bool {
	return !m.Trial.Knobs.PrefixCaching && !m.Trial.Knobs.PrefixUnknown
}

// notFound returns evidence that a trial found too little of its prompts' shared part in the cache; "" if it
// found enough or that is unknown. Without a hit rate, a warm trial is compared with the cold one.
func (s *serverTrials) notFound(m *measure.Measurement, share float64) string {
	if rate := m.Server.HitRate; rate != nil {
		if *rate >= found*share || m.Trial.Warmup <= 0 {
			return ""
		}
		return fmt.Sprintf("%s of the prompt tokens were found in the cache %s", percent(*rate), at(m))
	}
	if !strings.Contains(m.Trial.Why, "warm") {
		return ""
	}
	for _, cold := range s.whole() {
		same := strings.Contains(cold.Trial.Why, "cold") && cold.Trial.Rate == m.Trial.Rate && cold.Trial.Concurrency == m.Trial.Concurrency
		if same && over(m.TTFT.P50, cold.TTFT.P50) > noFaster {
			return fmt.Sprintf("median TTFT of %s with a warm cache, %s with a cold one, %s", ms(m.TTFT.P50), ms(cold.TTFT.P50), at(m))
		}
	}
	return ""
}

// poolOf returns the size of the KV cache in tokens, 0 if unknown.
func poolOf(m *measure.Measurement) float64 {
	if m.Server.KVBlocks == nil || m.Server.BlockTokens == nil {
		return 0
	}
	return float64(*m.Server.KVBlocks) * float64(*m.Server.BlockTokens)
}

func used(m *measure.Measurement) float64 {
	if m.Server.PeakKV == nil {
		return 0
	}
	return *m.Server.PeakKV
}

// full returns the open-loop trial with the most throughput among those that did not keep up; nil if there is
// none.
func (s *serverTrials) full() (full *measure.Measurement) {
	for _, m := range s.trials {
		behind := !m.Trial.Closed() && (m.Overloaded || m.Achieved < saturatedPart*cmp.Or(m.Sent, m.Trial.Rate))
		if behind && m.Achieved > 0 && (full == nil || m.Achieved > full.Achieved) {
			full = m
		}
	}
	return full
}

// places checks whether max_num_seqs limits a saturated server to a batch so small that a larger one would cost
// little: tokens come about as fast as at low load, or fixed costs take most of the steps and the time per token
// grew by less than the square root of the batch, as it does not where the costs are of each request.
func (s *serverTrials) places() *Finding {
	m, low := s.full(), s.low()
	if m == nil || low == nil || m.Server.PeakKV == nil || used(m) > spareCache {
		return nil
	}
	seqs := placesOf(m)
	slower, t := over(m.TPOT.Mean, low.TPOT.Mean), m.Server.Time
	fixed := t != nil && t.Fixed >= mostlyFixed && slower < math.Sqrt(float64(seqs)/max(inFlight(low), 1))
	if seqs == 0 || inFlight(m) < float64(seqs) || !(slower < noSlower || fixed) {
		return nil
	}
	return &Finding{"queueing", "queueing: requests wait for a place in a batch that max_num_seqs keeps small",
		[]string{fmt.Sprintf("%s requests/s were completed %s, where the backlog grew", figure(m.Achieved), at(m)),
			fmt.Sprintf("with at most %d requests at once the TPOT is %s in the mean, and %s %s; the KV cache is used up to %s",
				seqs, ms(m.TPOT.Mean), ms(low.TPOT.Mean), at(low), percent(used(m)))}, "a higher max_num_seqs"}
}

// placesOf returns how many requests may run at once in all attention replicas, 0 if unknown.
func placesOf(m *measure.Measurement) int {
	return m.Trial.Knobs.MaxNumSeqs * max(m.Trial.Knobs.DataParallel, 1)
}

// host checks whether a saturated server does far less than its hardware allows: by the breakdown of its step
// time if known, which also distinguishes links and small batches from the host.
func (s *serverTrials) host() *Finding {
	full := s.full()
	if full == nil || s.places() != nil || s.bounds == nil || s.bounds.PromptsPerS <= 0 || s.bounds.OutputTokensPerS <= 0 {
		return nil
	}
	output := full.OutputTokens / full.Achieved
	if w := full.Trial.Workload; w != nil {
		if _, mean := w.MeanTokens(); mean > output { // only short answers complete in an overload that is cut off
			output = mean
		}
	}
	least := 1/s.bounds.PromptsPerS + output/s.bounds.OutputTokensPerS
	reached := full.Achieved * least
	t := full.Server.Time
	if !(reached < streamed) || t == nil && reached >= farBelow || t != nil && t.Fixed+t.Idle < mostlyFixed {
		return nil
	}
	evidence := []string{fmt.Sprintf("%s requests/s were completed %s, where the backlog grew; the data sheets allow %s: %s of it",
		figure(full.Achieved), at(full), figure(1/least), percent(reached))}
	if t != nil {
		evidence = append(evidence, fmt.Sprintf("MBU %s, MFU %s; fixed costs take %s of the steps, and none runs in %s of the time", percent(t.MBU), percent(t.MFU), percent(t.Fixed), percent(t.Idle)))
	}
	return &Finding{"host", "a saturated server does far less than the hardware allows: the host or the set-up", evidence,
		"the host's processors (tokenisation, streaming by one busy process: vLLM's --api-server-count), CUDA graphs, the GPUs' clocks and links (nvidia-smi), a proxy ahead of the server; `planner doctor` looks for the first of these"}
}
