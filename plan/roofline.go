package plan

import (
	"planner/internal/units"
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
		WeightStream: units.Milliseconds(b.WeightSeconds), StreamTokens: b.StreamTokensPerS, KVRead: units.Milliseconds(b.KVSeconds),
		KVEqualsWeights: b.KVEqualsWeights, Prefill: units.Milliseconds(b.PrefillSeconds), Prompts: b.PromptsPerS,
		Concurrency: b.Concurrency, ConcurrencyLimit: b.ConcurrencyLimit, OutputTokens: b.OutputTokensPerS,
		IdleTTFT: units.Milliseconds(b.IdleTTFT), IdleTPOT: units.Milliseconds(b.IdleTPOT), WeightBytesPerGPU: b.WeightBytesPerGPU,
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
		WeightSeconds: units.Seconds(w.WeightStream), StreamTokensPerS: w.StreamTokens, KVSeconds: units.Seconds(w.KVRead),
		KVEqualsWeights: w.KVEqualsWeights, PrefillSeconds: units.Seconds(w.Prefill), PromptsPerS: w.Prompts,
		Concurrency: w.Concurrency, ConcurrencyLimit: w.ConcurrencyLimit, OutputTokensPerS: w.OutputTokens,
		IdleTTFT: units.Seconds(w.IdleTTFT), IdleTPOT: units.Seconds(w.IdleTPOT), WeightBytesPerGPU: w.WeightBytesPerGPU,
	}
}
