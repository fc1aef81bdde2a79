package plan

import (
	"strconv"

	"planner/model"
)

// rooflineJSON is the roofline of the chosen instance in a file, with what the
// data sheets allow and what of it is reached.
type rooflineJSON struct {
	WeightStream      float64 `json:"weight_stream_ms"`
	StreamTokens      float64 `json:"stream_tokens_per_s"`
	KVRead            float64 `json:"kv_read_ms"`
	KVEqualsWeights   float64 `json:"kv_equals_weights_requests"`
	Prefill           float64 `json:"prefill_ms"`
	Prompts           float64 `json:"prompts_per_s"`
	Concurrency       int     `json:"concurrency"`
	ConcurrencyLimit  int     `json:"concurrency_limit"`
	OutputTokens      float64 `json:"output_tokens_per_s"`
	IdleTTFT          float64 `json:"idle_ttft_ms"`
	IdleTPOT          float64 `json:"idle_tpot_ms"`
	WeightBytesPerGPU float64 `json:"weight_bytes_per_gpu"`
	// Ceiling is the rate at which decoding or prefill alone would take all of
	// the hardware, BoundBy which of them, Reached the share of it that the
	// maximum rate is; null where the tokens of a request are unknown.
	Ceiling *float64 `json:"ceiling_per_s"`
	BoundBy string   `json:"bound_by,omitempty"`
	Reached *float64 `json:"reached"`
}

// Ceiling is the highest rate in requests per second that the roofline allows an
// instance of the offer: the lower of what prefill and what decoding would take
// alone, with the name of the lower one. It is 0 where the tokens of a request
// are unknown.
func Ceiling(b *model.Bounds, o *Offer) (rate float64, by string) {
	if b.PromptsPerS > 0 {
		rate, by = b.PromptsPerS, "prefill"
	}
	if o.OutputTokens > 0 && b.OutputTokensPerS > 0 {
		if decode := b.OutputTokensPerS / o.OutputTokens; by == "" || decode < rate {
			rate, by = decode, "decode"
		}
	}
	return rate, by
}

func rooflineOf(b *model.Bounds, o *Offer) *rooflineJSON {
	if b == nil {
		return nil
	}
	w := &rooflineJSON{
		WeightStream: inMillis(b.WeightSeconds), StreamTokens: b.StreamTokensPerS, KVRead: inMillis(b.KVSeconds),
		KVEqualsWeights: b.KVEqualsWeights, Prefill: inMillis(b.PrefillSeconds), Prompts: b.PromptsPerS,
		Concurrency: b.Concurrency, ConcurrencyLimit: b.ConcurrencyLimit, OutputTokens: b.OutputTokensPerS,
		IdleTTFT: inMillis(b.IdleTTFT), IdleTPOT: inMillis(b.IdleTPOT), WeightBytesPerGPU: b.WeightBytesPerGPU,
	}
	if rate, by := Ceiling(b, o); rate > 0 {
		w.Ceiling, w.BoundBy, w.Reached = &rate, by, known(o.Rate.Value/rate)
	}
	return w
}

func (w *rooflineJSON) bounds() *model.Bounds {
	if w == nil {
		return nil
	}
	return &model.Bounds{
		WeightSeconds: inSeconds(w.WeightStream), StreamTokensPerS: w.StreamTokens, KVSeconds: inSeconds(w.KVRead),
		KVEqualsWeights: w.KVEqualsWeights, PrefillSeconds: inSeconds(w.Prefill), PromptsPerS: w.Prompts,
		Concurrency: w.Concurrency, ConcurrencyLimit: w.ConcurrencyLimit, OutputTokensPerS: w.OutputTokens,
		IdleTTFT: inSeconds(w.IdleTTFT), IdleTPOT: inSeconds(w.IdleTPOT), WeightBytesPerGPU: w.WeightBytesPerGPU,
	}
}

// inMillis and inSeconds convert at the edge. Twelve digits are written, so that
// what is read and written again stays the same to the byte.
func inMillis(seconds float64) float64 {
	ms, err := strconv.ParseFloat(strconv.FormatFloat(1e3*seconds, 'g', 12, 64), 64)
	if err != nil {
		return 1e3 * seconds
	}
	return ms
}

func inSeconds(ms float64) float64 { return ms / 1e3 }
