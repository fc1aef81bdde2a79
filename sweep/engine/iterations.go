package engine

import "encoding/json"

// readIterations picks a reading from TensorRT-LLM's page, a JSON list of the
// iterations since it was last asked for. An empty list is an idle engine.
func readIterations(page []byte) reading {
	r := (&series{}).read(nil)
	var all []struct {
		Active *float64 `json:"numActiveRequests"`
		Queued *float64 `json:"numQueuedRequests"`
		KV     *struct {
			Used   float64  `json:"usedNumBlocks"`
			Most   float64  `json:"maxNumBlocks"`
			Reused *float64 `json:"reusedBlocks"`
			Missed *float64 `json:"missedBlocks"`
		} `json:"kvCacheStats"`
	}
	if json.Unmarshal(page, &all) != nil {
		return r
	}
	if len(all) == 0 {
		r.running, r.waiting = 0, 0
		return r
	}
	last := all[len(all)-1]
	if last.Active != nil {
		r.running = *last.Active
	}
	if last.Queued != nil {
		r.waiting = *last.Queued
	}
	if kv := last.KV; kv != nil && kv.Most > 0 {
		r.kv = kv.Used / kv.Most
		if kv.Reused != nil && kv.Missed != nil {
			r.hits, r.queries = *kv.Reused, *kv.Reused+*kv.Missed
		}
	}
	return r
}
