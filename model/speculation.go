package model

import (
	"math"
	"slices"

	"planner/internal/list"
	"planner/internal/stat"
)

// DraftMethod is the source of the tokens that speculative decoding verifies.
type DraftMethod int

// The methods: none; the model's own multi-token prediction module (DeepSeek's MTP); a one-layer head trained
// on the model's hidden states (EAGLE-3); the tokens that followed the last few tokens earlier in the text
// (n-gram lookup); a smaller draft model.
const (
	NoDraft DraftMethod = iota
	DraftMTP
	DraftEagle
	DraftNGram
	DraftModel
)

// String is the method's name in configurations.
func (m DraftMethod) String() string { return m.names()[m] }

func (DraftMethod) names() []string { return []string{"", "mtp", "eagle", "ngram", "draft"} }

// Speculation is speculative decoding: in every step each decoding request brings Tokens proposed tokens, which
// the step verifies. The zero value is none.
type Speculation struct {
	Method DraftMethod
	Tokens int
	// Accepted[i] is the share of steps in which more than i proposed tokens are accepted, as vLLM logs it by
	// position.
	Accepted []float64
	// Draft is the shape of the draft model of DraftModel; nil without one.
	Draft *Arch
}

// On reports whether tokens are proposed.
func (s Speculation) On() bool { return s.Tokens > 0 }

// PerStep is the mean number of tokens that a request gains per step.
func (s Speculation) PerStep() float64 {
	sum := 1.0
	for _, p := range s.Accepted {
		sum += p
	}
	return sum
}

// Lookahead is the number of further tokens for which a step reserves KV cache: those that the draft model
// writes while it proposes.
func (s Speculation) Lookahead() int {
	if s.Method == DraftNGram {
		return 0
	}
	return s.Tokens
}

// scaled multiplies each proposed token's chance of rejection, given that those before it were accepted.
func (s Speculation) scaled(refusals float64) Speculation {
	out, before := slices.Clone(s.Accepted), 1.0
	for i, p := range s.Accepted {
		refused := 1.0
		if before > 0 {
			refused = min(1, (1-p/before)*refusals)
		}
		before = p
		out[i] = 1 - refused
		if i > 0 {
			out[i] *= out[i-1]
		}
	}
	s.Accepted = out
	return s
}

// AcceptedEach returns the shares by position if each proposed token has the same chance of acceptance, given
// that those before it were accepted.
func AcceptedEach(chance float64, tokens int) []float64 {
	return list.Times(tokens, func(i int) float64 { return math.Pow(chance, float64(i+1)) })
}

// AcceptedLength returns shares by position of the form of [AcceptedEach] with which a step yields length
// tokens on average: from 1, with none accepted, to 1 + tokens.
func AcceptedLength(length float64, tokens int) []float64 {
	_, chance := stat.Bisect(0, 1, 60, func(chance float64) bool {
		return (Speculation{Accepted: AcceptedEach(chance, tokens)}).PerStep() >= length
	})
	return AcceptedEach(chance, tokens)
}

// AcceptedByPosition extends the known shares of the first positions to more positions: the chance given
// acceptance of those before stays that of the last known one.
func AcceptedByPosition(known []float64, tokens int) []float64 {
	out := slices.Clone(known[:min(len(known), tokens)])
	last := 1.0
	if n := len(known); n > 1 && known[n-2] > 0 {
		last = known[n-1] / known[n-2]
	} else if n == 1 {
		last = known[0]
	}
	for len(out) < tokens {
		out = append(out, out[len(out)-1]*last)
	}
	return out
}

// eagleInputs and mtpInputs are the numbers of hidden states that a draft layer joins: EAGLE-3 those of three
// layers (arXiv 2503.01840), MTP the last one and the token's embedding (arXiv 2412.19437).
const eagleInputs, mtpInputs = 3, 2

// draft returns the deployment of the draft model, false for a search in the text.
func (s Speculation) draft(dep Deployment) (Deployment, bool) {
	d := dep
	d.PP, d.DP, d.EP = 1, 1, false
	switch s.Method {
	case DraftMTP:
		d.Arch.Layers, d.Arch.Details.Joined = 1, mtpInputs
		d.Arch.MoE.Layers = min(1, d.Arch.MoE.Layers)
		d.Arch.Attention.WindowLayers, d.Arch.State, d.Arch.Bare = 0, RecurrentState{}, 0
		d.Arch.Attention.Sparse.Layers, d.Arch.Attention.Sparse.Whole = min(1, d.Arch.Attention.Sparse.Layers), 0
		if c := &d.Arch.Attention.Compressed; c.Present() { // this layer attends to the last tokens alone
			d.Arch.Attention.Sparse.Layers, c.FarLayers = 0, 0
		}
		d.DP, d.EP = dep.DP, dep.EP
	case DraftEagle:
		d.Precision = Precision{Weights: BF16, KV: dep.Precision.KV}
		d.Arch.Layers, d.Arch.Details.Joined = 1, eagleInputs
		d.Arch.MoE, d.Arch.Attention.MLA, d.Arch.Attention.Sparse, d.Arch.Attention.WindowLayers = MoE{}, MLA{}, Sparse{}, 0
		d.Arch.Attention.Compressed = Compression{}
		d.Arch.State, d.Arch.Bare, d.Arch.Details.BlockFP8 = RecurrentState{}, 0, false
		if d.Arch.Intermediate == 0 {
			// EAGLE heads for MoE models have the MLP of a dense model of their hidden size.
			d.Arch.Intermediate = 4 * d.Arch.Hidden
		}
	case DraftModel:
		d.Arch, d.Precision = *s.Draft, Precision{KV: dep.Precision.KV}
	default:
		return d, false
	}
	return d.Normal(), true
}

// weightBytes returns the draft model's weights on every GPU. MTP and EAGLE layers share the model's embedding
// and head.
func (s Speculation) weightBytes(dep Deployment) float64 {
	d, has := s.draft(dep)
	if !has {
		return 0
	}
	bytes := weightBytes(d)
	if s.Method != DraftModel {
		n := d.Arch.counts()
		bytes -= (n.embeddings + n.head) / float64(d.TP) * BF16.Bytes()
	}
	return bytes
}

// kvBytes returns the bytes per token in the draft model's cache on one GPU.
func (s Speculation) kvBytes(dep Deployment) float64 {
	d, has := s.draft(dep)
	if !has {
		return 0
	}
	return float64(d.Arch.attentionLayers()) * d.kvBytesPerLayer()
}

func (r *Roofline) setDrafter() error {
	s := r.args.Speculation
	if !s.On() {
		return nil
	}
	r.draft.search = r.c.Draft.Search
	dep, has := s.draft(r.dep)
	if !has {
		return nil
	}
	c := r.c
	c.Fixed.Step, c.Fixed.SyncStep, c.Fixed.Request = c.Draft.Pass, 0, 0
	args := r.args
	args.Speculation, args.Kernels.Sampler = Speculation{}, SamplerGreedy
	times, err := NewRoofline(dep, c, args)
	if err != nil {
		return err
	}
	r.draft.times, r.draft.passes = times, s.Tokens
	return nil
}

// draftTime returns the seconds to propose the next step's tokens: one pass over everything that the step
// computed, and one over the newest token for each further proposal.
func (r *Roofline) draftTime(l *batchSums) float64 {
	d := &r.draft
	if d.times == nil {
		return d.search * l.decodes
	}
	first := *l
	first.sampled = l.sampled - l.drafted
	if size := d.times.kv.size; size != r.kv.size {
		first.windowed = min(l.context, l.decodes*float64(size)) // as if contexts were alike
	}
	t := d.times.time(&first).Total
	if d.passes > 1 && first.sampled > 0 {
		next := batchSums{decodes: first.sampled, sampled: first.sampled, requests: first.sampled,
			context: l.context, longest: l.longest, windowed: first.windowed, replicas: l.replicas}
		t += float64(d.passes-1) * d.times.time(&next).Total
	}
	return t
}
