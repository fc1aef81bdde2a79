package model

import "math"

// batchSums is a batch in the quantities of the equations, as floats that can be scaled.
type batchSums struct {
	decodes, context, longest, windowed float64
	drafted                             float64 // proposed tokens of decodes
	adapters, loads                     float64
	tokens                              float64 // of chunks
	pairs, windowPairs                  float64 // query-key pairs of chunks
	past, windowPast                    float64 // contexts of chunks, each read once
	requests, sampled                   float64
	replicas                            float64 // number of batches like this one whose tokens meet in the experts
	chunks                              int
}

func (r *Roofline) sums(b *Batch) batchSums {
	l := batchSums{
		decodes: float64(b.Decodes), drafted: float64(b.Drafted), adapters: float64(b.Adapters), loads: float64(b.Loads), context: float64(b.Context), longest: float64(b.Longest),
		windowed: float64(b.Windowed), requests: float64(b.Decodes + len(b.Chunks)),
		sampled: float64(b.Sampled), chunks: len(b.Chunks), replicas: r.routing.replicas,
	}
	for i := range b.Chunks {
		t, past := float64(b.Chunks[i].Tokens), float64(b.Chunks[i].Context)
		l.tokens += t
		l.pairs += t * (past + t/2 + r.prefill.extra)
		l.past += past
		if r.kv.size > 0 {
			w := float64(r.kv.size)
			l.windowPairs += t * r.prefill.extra
			if r.kv.chunked {
				l.windowPairs += chunkedPairs(past+t, w) - chunkedPairs(past, w)
				l.windowPast += math.Mod(past, w)
				continue
			}
			l.windowPairs += windowedPairs(t, past, w)
			l.windowPast += min(past, w)
		}
	}
	if tokens := l.all(); b.Everywhere > 0 && tokens > 0 {
		l.replicas = float64(b.Everywhere) / tokens
	}
	return l
}

// windowedPairs returns the query-key pairs of t tokens after a context of past tokens in a layer with a window
// of w tokens.
func windowedPairs(t, past, w float64) float64 {
	growing := min(t, max(w-past, 0))
	return growing*(past+growing/2) + (t-growing)*w
}

// chunkedPairs returns the query-key pairs of the first t tokens in a layer whose window starts anew every w tokens.
func chunkedPairs(t, w float64) float64 {
	own := math.Mod(t, w)
	return (t-own)*w/2 + own*own/2
}

// Windowed returns how many keys the last token of a context attends to in a layer with a window: if it is chunked,
// those since it last started anew (make_local_attention_virtual_batches in vLLM's v1/attention/backends/utils.py,
// 0.10 to 0.33).
func Windowed(context, window int, chunked bool) int {
	if chunked {
		return (context-1)%window + 1
	}
	return min(context, window)
}

// windowed is the mean of [Windowed] around a mean context.
func (r *Roofline) windowed(context float64) float64 {
	w := float64(r.kv.size)
	if r.kv.chunked && context > w {
		return (w + 1) / 2
	}
	return min(context, w)
}

// micro returns the largest micro-batch when a batch is cut into at most n: decodes are spread evenly, chunks
// stay whole unless their tokens exceed the most per micro-batch.
func (l batchSums) micro(n int, most float64) batchSums {
	parts := max(1, min(float64(n), math.Ceil(l.tokens/most)))
	m := max(parts, min(float64(n), l.requests))
	c := max(parts, min(m, float64(l.chunks)))
	l.decodes /= m
	l.drafted /= m
	l.context /= m
	l.windowed /= m
	l.sampled /= m
	l.requests /= m
	l.tokens /= c
	l.pairs /= c
	l.windowPairs /= c
	l.past /= c
	l.windowPast /= c
	return l
}

// all counts the tokens of the batch.
func (l *batchSums) all() float64 { return l.decodes + l.drafted + l.tokens }
