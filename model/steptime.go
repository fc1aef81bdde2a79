package model

// Batch is what one step of one attention replica computes: decodes, each with one
// new token and perhaps proposed ones, and chunks of prompts.
type Batch struct {
	Decodes         int     // requests that decode
	Drafted         int     // proposed tokens that they bring along to be verified
	Context         int     // sum of their contexts in tokens, the new one included
	Longest         int     // the longest of those contexts
	Windowed        int     // sum of min(context, window) over them; unused without window layers
	WindowedGrowing int     // how many of them are below the window, and so still grow
	Chunks          []Chunk // prompt parts
	Sampled         int     // rows that go through the LM head
	Adapters        int     // different low-rank adapters in use
	Loads           int     // of them, those that are loaded first
	Everywhere      int     // tokens of the step over all attention replicas; 0: as many on each as here
}

// Tokens counts the tokens that the step computes.
func (b *Batch) Tokens() int {
	n := b.Decodes + b.Drafted
	for i := range b.Chunks {
		n += b.Chunks[i].Tokens
	}
	return n
}

// Chunk is a part of one prompt: Tokens new ones after Context that are computed or
// cached already.
type Chunk struct {
	Tokens  int
	Context int
}

// StepTime is the time of one step in seconds, by cause. The parts add up to Total.
type StepTime struct {
	Weights          float64 // dense matrices: the share spent streaming them
	Compute          float64 // dense matrices: the share spent computing
	ExpertWeights    float64 // routed experts, likewise
	ExpertCompute    float64
	Head             float64 // LM head
	DecodeAttention  float64 // reading the KV cache for decodes and for the contexts of chunks
	PrefillAttention float64 // scores and values of chunks
	Communication    float64 // between the GPUs of the instance
	Elementwise      float64 // norms, rotary embedding, activations of large steps
	Fixed            float64 // launches, kernel floors, scheduling
	Draft            float64 // proposing tokens for speculative decoding
	Host             float64 // what the GPUs wait for a host that launches kernel by kernel
	Total            float64
}

// Add accumulates another step n times, for averages over a run.
func (t *StepTime) Add(u StepTime, n float64) {
	t.Weights += n * u.Weights
	t.Compute += n * u.Compute
	t.ExpertWeights += n * u.ExpertWeights
	t.ExpertCompute += n * u.ExpertCompute
	t.Head += n * u.Head
	t.DecodeAttention += n * u.DecodeAttention
	t.PrefillAttention += n * u.PrefillAttention
	t.Communication += n * u.Communication
	t.Elementwise += n * u.Elementwise
	t.Fixed += n * u.Fixed
	t.Draft += n * u.Draft
	t.Host += n * u.Host
	t.Total += n * u.Total
}
