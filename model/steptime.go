package model

// Batch is what one step of one attention replica computes: decodes, each with one new token and possibly
// proposed ones, and prompt chunks.
type Batch struct {
	Decodes         int     // decoding requests
	Drafted         int     // proposed tokens that these bring to be verified
	Context         int     // sum of their contexts in tokens, including the new one
	Longest         int     // the longest of those contexts
	Windowed        int     // sum of [Windowed] over them; unused without window layers
	WindowedGrowing int     // how many of them are below the window, or in chunks, and so still grow
	Chunks          []Chunk // prompt parts
	Sampled         int     // rows that go through the LM head
	Adapters        int     // different LoRA adapters in use
	Loads           int     // how many of these must be loaded first
	Everywhere      int     // tokens of the step over all attention replicas; 0: each has as many as this one
}

// Tokens counts the tokens that the step computes.
func (b *Batch) Tokens() int {
	n := b.Decodes + b.Drafted
	for i := range b.Chunks {
		n += b.Chunks[i].Tokens
	}
	return n
}

// Chunk is a part of one prompt: Tokens new tokens after Context tokens already computed or cached.
type Chunk struct {
	Tokens  int
	Context int
}

// StepTime is the time of one step in seconds, by cause. The parts add up to Total.
type StepTime struct {
	Weights          float64 // dense matrices: the share spent streaming them
	Compute          float64 // dense matrices: the share spent computing
	ExpertWeights    float64 // routed experts, divided likewise
	ExpertCompute    float64
	Head             float64 // LM head
	DecodeAttention  float64 // reading the KV cache for decodes and for the contexts of chunks
	PrefillAttention float64 // attention of chunks to the context and to themselves
	Communication    float64 // between the GPUs of the instance
	Elementwise      float64 // norms, rotary embedding, activations of large steps
	Fixed            float64 // launches, kernel floors, scheduling
	Draft            float64 // proposing tokens for speculative decoding
	Host             float64 // waiting for the host, which launches kernels, or a graph per layer, one by one, and streams tokens
	Total            float64
}

// waitFor lengthens a step to what the host needs for it.
func (t *StepTime) waitFor(host float64) {
	if host > t.Total {
		t.Host += host - t.Total
		t.Total = host
	}
}

// Add adds n times another step, for averages over a run.
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
