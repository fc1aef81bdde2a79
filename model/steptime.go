package model

// Batch is what one step of one attention replica computes: decodes, each with one
// new token, and chunks of prompts.
type Batch struct {
	Decodes         int     // requests that decode
	Context         int     // sum of their contexts in tokens, the new one included
	Longest         int     // the longest of those contexts
	Windowed        int     // sum of min(context, window) over them; unused without window layers
	WindowedGrowing int     // how many of them are below the window, and so still grow
	Chunks          []Chunk // prompt parts
	Sampled         int     // rows that go through the LM head
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
	Total            float64
}

// Add accumulates another step, for averages over a run.
func (t *StepTime) Add(u StepTime) { t.AddScaled(u, 1) }

// AddScaled accumulates another step n times.
func (t *StepTime) AddScaled(u StepTime, n float64) {
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
	t.Total += n * u.Total
}

// Bound names what a step spends its time on.
type Bound string

// The bounds of a step. The LM head counts to the weights: it is a stream of its
// matrix below some 280 rows. Elementwise work counts to compute.
const (
	BoundNone          Bound = ""
	BoundWeights       Bound = "weights"
	BoundKV            Bound = "kv"
	BoundCompute       Bound = "compute"
	BoundCommunication Bound = "communication"
	BoundFixed         Bound = "fixed"
)

// Share is one bound's part of a time.
type Share struct {
	Bound Bound
	Share float64 // 0 to 1
}

// Shares returns the five shares in a fixed order; they add up to one. All are zero
// for a step that takes no time.
func (t StepTime) Shares() [5]Share {
	s := [5]Share{
		{BoundWeights, t.Weights + t.ExpertWeights + t.Head},
		{BoundKV, t.DecodeAttention},
		{BoundCompute, t.Compute + t.ExpertCompute + t.PrefillAttention + t.Elementwise},
		{BoundCommunication, t.Communication},
		{BoundFixed, t.Fixed},
	}
	for i := range s {
		if t.Total > 0 {
			s[i].Share /= t.Total
		} else {
			s[i].Share = 0
		}
	}
	return s
}

// Bound returns the largest of the shares, BoundNone for a step that takes no time.
func (t StepTime) Bound() Bound {
	best := Share{}
	for _, s := range t.Shares() {
		if s.Share > best.Share {
			best = s
		}
	}
	return best.Bound
}
