package model

import (
	"math"

	"planner/internal/stat"
)

// Roofline times steps of one deployment. It is made by [NewRoofline], never changes afterwards and may be used
// by several goroutines.
//
// The form is affine per kernel: bytes or operations over a share of the data sheet's peak, plus a floor per
// layer and step. One pass of matrix products serves decodes and prompt chunks of a step together; weights are
// read once.
//
//	gemm   = ((weight bytes / e BW)^4 + (2 N T / e P)^4)^(1/4)     smooth maximum
//	step   = gemm + experts + head + KV + prefill attention + communication + elementwise + fixed
//
// With several pipeline stages a step is a round in which every running request advances once: the batch is cut
// into as many micro-batches as there are stages, all stages are busy, and the round takes as long as one
// micro-batch needs through all of them. That is right for an even split in the steady state; with fewer
// requests than stages the cut itself produces the bubbles. A prompt longer than a micro-batch's token budget
// spreads over several micro-batches, as vLLM schedules its next chunk while the previous one is under way; the
// time to fill an empty pipeline is left out. With several attention replicas (DP) the batch is that of one
// replica; the others are assumed to carry as many tokens, unless [Batch].Everywhere gives the sum.
type Roofline struct {
	dep  Deployment
	c    Constants
	args EngineArgs

	dense   weightStream
	tiled   bool // the dense matrices are read in tiles that depend on the number of rows
	wide    bool // routers are multiplied in fp32
	kernels ExpertKernels
	experts weightStream
	head    weightStream // the LM head; its time is the longer of reading and computing
	sample  float64      // seconds to sample from one row of the LM head
	// routing describes which experts a step visits.
	routing struct {
		logMiss  float64 // log of the chance that a token does not visit a given expert
		replicas float64 // attention replicas whose tokens meet in the experts
		ranks    float64 // ranks over which whole experts are spread; 1 when they are sliced
		active   float64
		perRank  float64 // whole experts per rank
		fullest  float64 // standard deviations by which the fullest rank exceeds the mean
		uneven   float64 // squared coefficient of variation of the popularity of experts
		apart    float64 // the same of ranks
		visits   float64 // visits to one expert per token
		tile     float64 // rows to which those of one expert are padded at most
		padded   float64 // least rows computed for an expert that is visited, beyond what is in BlockExpert
	}
	// kv is seconds (and bytes) per token of context read.
	kv struct {
		full, window           float64
		past                   float64 // full, for the context of a chunk
		math                   float64 // least value of full where every head multiplies one latent (MLA)
		query                  float64 // seconds per row that a decode computes, whatever it attends to
		fullBytes, windowBytes float64
		skew                   float64
		size                   int     // of the window, in tokens; 0: none
		chunked                bool    // it starts anew every size tokens
		rows                   float64 // query rows computed per decode in steps with prompts
	}
	// prefill is seconds per query-key pair.
	prefill struct {
		full, window           float64
		token                  float64 // per prompt token, whatever it attends to
		extra                  float64 // keys added to each query
		whole                  bool    // queries are computed against a full window, however short the context
		fullFlops, windowFlops float64 // operations per query-key pair and GPU
	}
	// reduce holds the all-reduces of a step; apart are those that stay unfused where the others are fused with
	// a norm.
	reduce struct {
		each, apart   collective
		count, aparts float64
		norms         float64 // all-reduces of the sums of squares for norms over all heads
		logits        float64 // bytes of a sampled row, which every GPU gathers (half an all-reduce)
	}
	// states are the costs of layers with a state on one GPU: seconds to read and write a request's state,
	// seconds per prompt token, and the bytes and operations of these.
	states struct{ request, token, bytes, flops float64 }
	// draft is the cost of proposing tokens: passes timed by times or, if that is nil, search seconds per
	// request for a search in the text.
	draft struct {
		passes int
		times  *Roofline
		search float64
	}
	// adapters are the seconds that LoRA adds to a step: always, per adapter in use, per token, and per adapter
	// that is loaded into a slot.
	adapters   struct{ floor, each, token, load float64 }
	hiddenSize float64 // bytes of one token's hidden state
	// handOver is the traffic between pipeline stages: seconds per step and per token.
	handOver struct{ step, token float64 }
	// toExperts is the traffic between attention replicas and experts.
	toExperts exchange
	// fixed are the costs that no data sheet explains, summed over layers.
	fixed struct {
		floor, request float64
		launch         float64 // the host's time to launch a step without graphs
		launchPieces   float64 // the host's time for a step that replays a graph per layer
		uniform        float64 // rows up to which a graph of decodes alone was captured
		intake, event  float64 // the front end's time to take in a request, and to stream a request's tokens of a step
		piecewise      bool    // all steps replay such pieces, not only those with chunks
		decodeOnly     bool    // only decode-only steps replay graphs
		largest        int     // tokens of the largest captured graph
		freeTokens     float64
		elementToken   float64
	}
}

// weightStream is a set of matrices: the seconds to read all of them and to multiply one token with them.
type weightStream struct {
	read  float64
	token float64
	bytes float64 // per GPU
	flops float64 // per token and GPU
}

// smooth returns the combined time of reading and computing, divided into the two shares.
func smooth(read, compute float64) (weights, math_ float64) {
	r2, c2 := read*read, compute*compute
	r4, c4 := r2*r2, c2*c2
	sum := r4 + c4
	if sum == 0 {
		return 0, 0
	}
	t := math.Sqrt(math.Sqrt(sum))
	weights = t * r4 / sum
	return weights, t - weights
}

// NewRoofline precomputes the coefficients for a deployment. Zero arguments mean the engine's defaults. The
// error is that of [Deployment.Supports], which wraps [ErrNoFigure] if a figure of the GPU or the model is
// missing.
func NewRoofline(dep Deployment, c Constants, args EngineArgs) (*Roofline, error) {
	if err := dep.Supports(args); err != nil {
		return nil, err
	}
	dep = dep.Serving(args)
	r := &Roofline{dep: dep, c: c, args: args.withDefaults(dep)}
	r.kernels = r.args.experts(dep)
	r.args.Speculation = args.Speculation.scaled(c.Draft.Refusals)
	r.setMatrices()
	r.setAttention()
	r.setStates()
	r.setCommunication()
	r.setFixed()
	r.setAdapters()
	return r, r.setDrafter()
}

// Deployment returns the roofline's deployment, defaults filled in.
func (r *Roofline) Deployment() Deployment { return r.dep }

// Args returns the roofline's engine arguments, defaults filled in.
func (r *Roofline) Args() EngineArgs { return r.args }

// Constants returns the constants in use.
func (r *Roofline) Constants() Constants { return r.c }

// Window returns the window of the window layers in tokens, 0 if there are none.
func (r *Roofline) Window() int { return r.kv.size }

// Frontend returns the seconds that a request of promptTokens spends outside the engine's loop.
func (r *Roofline) Frontend(promptTokens int) float64 {
	return r.c.Frontend.Request + float64(promptTokens)*r.c.Frontend.PromptToken
}

// FrontEndBusy returns the share of their time for which the processes of an instance's API server are busy at a rate
// of requests/s of so many prompt tokens, each answered in so many events, and their number. Since 0.25 each tokenises
// prompts one after the other in a thread beside the one that does the rest (renderer_num_workers in vLLM's
// config/model.py; pull request 45759): the busier of the two counts. Steps do not wait for tokenising, so a rate beyond
// it is warned of and not limited.
func (r *Roofline) FrontEndBusy(rate, prompt, events float64) (share float64, processes int) {
	processes = r.args.frontEnds(r.dep)
	busy := r.c.Frontend.Intake + events*r.c.Frontend.Event
	if versionOf(r.args.EngineVersion).AtLeast(0, 25) {
		busy = max(busy, prompt*r.c.Frontend.PromptToken)
	}
	return rate * busy / float64(processes), processes
}

// Step returns the time of one step.
func (r *Roofline) Step(b Batch) StepTime {
	l := r.sums(&b)
	if r.dep.PP > 1 {
		l = l.micro(r.dep.PP, float64(r.args.MaxNumBatchedTokens))
	}
	t := r.time(&l)
	// The engine does not wait for its front end, but clients do: in the long run no more requests come in and no
	// more tokens are sent than it handles, however fast steps are. It does wait for its own process.
	answered := b.Sampled - b.Drafted
	t.waitFor(r.fixed.event*float64(answered) + r.fixed.intake*float64(answered-b.Decodes))
	t.waitFor(r.c.Fixed.Core * float64(answered))
	return t
}

func (r *Roofline) time(l *batchSums) StepTime {
	tokens, launches := l.all(), 1.0
	if tokens == 0 {
		return StepTime{}
	}
	var t StepTime
	if r.overlaps(l) {
		t, launches = r.halves(l), 2
	} else {
		t = r.work(l)
	}
	mixed := l.tokens > 0 || r.padded(tokens) > r.fixed.uniform
	eager := tokens/launches > float64(r.fixed.largest) || r.fixed.decodeOnly && mixed
	switch {
	case eager:
		t.waitFor(r.fixed.launch * launches)
	case r.fixed.piecewise || mixed:
		t.waitFor(r.fixed.launchPieces * launches)
	}
	return t
}

// work is the time of a step if nothing waits for the host.
func (r *Roofline) work(l *batchSums) StepTime {
	var t StepTime
	tokens := l.all()
	t.Weights, t.Compute = smooth(r.dense.read*r.tiles(tokens), r.dense.token*r.rows(tokens))
	if r.experts.bytes > 0 {
		passes := r.toExperts.passes(tokens)
		t.ExpertWeights, t.ExpertCompute = r.expertTime(r.padded(tokens) * l.replicas / passes)
		t.ExpertWeights, t.ExpertCompute = t.ExpertWeights*passes, t.ExpertCompute*passes
	}
	if l.sampled > 0 {
		t.Head = max(r.head.read, r.head.token*r.rows(l.sampled)) + r.sample*l.sampled
	}
	t.DecodeAttention = r.kvTime(l) + r.states.request*l.requests
	if l.tokens > 0 {
		windowPairs := l.windowPairs
		if r.prefill.whole {
			windowPairs = l.tokens * float64(r.kv.size)
		}
		t.PrefillAttention = r.prefill.full*l.pairs + r.prefill.window*windowPairs + (r.prefill.token+r.states.token)*l.tokens
	}
	if bytes := tokens * r.hiddenSize; r.reduce.count > 0 || r.reduce.aparts > 0 {
		t.Communication = r.reduce.count*r.reduce.each.time(bytes) + r.reduce.aparts*r.reduce.apart.time(bytes)
		t.Communication += r.reduce.norms*r.reduce.each.time(tokens*normSums) + r.reduce.apart.time(l.sampled*r.reduce.logits)/2
	}
	t.Communication += r.handOver.step + tokens*r.handOver.token + r.toExperts.time(tokens, l.replicas, r.fullest(tokens*l.replicas))
	if over := tokens - r.fixed.freeTokens; over > 0 {
		t.Elementwise = over * r.fixed.elementToken
	}
	t.Fixed = r.fixed.floor + l.requests*r.fixed.request
	if r.wide {
		t.Fixed += r.routerTime(r.padded(tokens))
	}
	if r.args.LoRA.On() {
		t.Fixed += r.adapterTime(l)
	}
	t.Total = t.Weights + t.Compute + t.ExpertWeights + t.ExpertCompute + t.Head + t.DecodeAttention +
		t.PrefillAttention + t.Communication + t.Elementwise + t.Fixed
	if r.args.Speculation.On() {
		t.Draft = r.draftTime(l)
		t.Total += t.Draft
	}
	return t
}

// rows returns how many rows of a large matrix product take as long to compute as these.
func (r *Roofline) rows(n float64) float64 {
	if n > 1 && r.c.Skinny > 1 {
		n += (r.c.Skinny - 1) * min(n, skinnyRows)
	}
	return n
}

// tiles returns the factor by which fp8 products' choice of tiles for these rows lengthens the reading of
// their matrices (CUTLASS on Hopper).
func (r *Roofline) tiles(rows float64) float64 {
	if !r.tiled || rows <= 16 {
		return 1
	}
	for i, most := range tileRows {
		if rows <= most {
			return r.c.Tiles[i]
		}
	}
	return r.c.Tiles[len(tileRows)-1]
}

// kvTime is the time to read keys and values. Unequal contexts pull a batch part of the way from its mean to
// its longest; the context of a chunk is read once.
func (r *Roofline) kvTime(l *batchSums) float64 {
	k := &r.kv
	full := k.full
	window := k.window
	if l.drafted > 0 {
		queries := 1 + l.drafted/l.decodes
		if r.dep.Arch.Attention.Sparse.Keys > 0 {
			window *= queries // an index selects for each
		} else {
			full = max(full, k.math*queries) // proposed tokens read the same cache
		}
	}
	if l.tokens > 0 {
		full, window = max(full, k.rows*r.prefill.full), max(window, k.rows*r.prefill.window)
	}
	t := k.query*(l.decodes+l.drafted) + full*(l.context+k.skew*(l.decodes*l.longest-l.context)) + k.past*l.past
	if k.size > 0 {
		longest := min(l.longest, float64(k.size))
		if k.chunked && l.longest > longest {
			longest *= l.decodes / (l.decodes + 1) // the mean of the largest of as many positions in a chunk
		}
		t += window*(l.windowed+k.skew*(l.decodes*longest-l.windowed)) + k.window*l.windowPast
	}
	return t
}

// padded returns the rows of a step that replays a CUDA graph: batches are padded up to the next captured size
// (1, 2, 4, every 8 to 256, every 16 above). Padding rows hold stale data and are routed to experts like any
// other, so a small batch visits more of them. Elsewhere padding is negligible.
func (r *Roofline) padded(tokens float64) float64 {
	switch {
	case tokens > float64(r.fixed.largest):
		return tokens
	case tokens <= 2:
		return math.Ceil(tokens)
	case tokens <= 4:
		return 4
	case tokens <= 256:
		tokens = 8 * math.Ceil(tokens/8)
	default:
		tokens = 16 * math.Ceil(tokens/16)
	}
	return min(tokens, float64(r.fixed.largest))
}

// touched returns the share of experts that at least one of the tokens visits, for a gamma distribution of
// the experts' popularity: 1-(1-k/E)^T under even routing.
func (r *Roofline) touched(tokens float64) float64 {
	visits := -tokens * r.routing.logMiss
	if math.IsInf(visits, 1) {
		return 1
	}
	uneven := r.routing.uneven
	if uneven == 0 {
		return -math.Expm1(-visits)
	}
	return -math.Expm1(-math.Log1p(uneven*visits) / uneven)
}

// expertTime is the time of the routed experts: those that at least one token visits are read. With whole
// experts per rank (EP) the fullest rank decides, both in experts to read and in tokens: the expected largest
// of as many normal draws.
func (r *Roofline) expertTime(tokens float64) (weights, compute float64) {
	to := &r.routing
	touched := r.touched(tokens)
	rows := tokens * to.visits
	each := r.experts.token * tokens * (1 + min(0.5, to.tile/rows)/2)
	if to.ranks > 1 {
		each *= r.fullest(tokens)
		touched = min(1, touched+to.fullest*math.Sqrt(touched*(1-touched)/to.perRank))
	}
	each = max(each, r.experts.token/to.visits*touched*to.padded)
	read := r.experts.read * touched
	both := math.Hypot(read, each)
	weights = both * read * read / (read*read + each*each)
	return weights, both - weights
}

// fullest returns how many times the mean's tokens the fullest rank of experts has, if all replicas have so many
// together.
func (r *Roofline) fullest(tokens float64) float64 {
	to := &r.routing
	if to.ranks <= 1 || tokens == 0 {
		return 1
	}
	return 1 + to.fullest*math.Sqrt(to.ranks/(tokens*to.active)+to.apart)
}

// fullestOf returns the expected largest of n standard normal draws (Blom 1958).
func fullestOf(n float64) float64 {
	return stat.NormalTail(2*(n-0.375)/(n+0.25) - 1)
}

// Growth returns by how much each further step of a decode-only batch is longer, while the batch stays the same
// and every context grows by one. It does not hold while the GPUs wait for the host ([StepTime].Host), while halves
// of the batch overlap ([Exchange].DBO), nor, with window layers, once a request reaches or leaves the window.
func (r *Roofline) Growth(b Batch) float64 {
	n := float64(b.Decodes)
	growth := r.kv.full * n
	if r.kv.size > 0 {
		growing, longest := float64(b.WindowedGrowing), 0.0
		if b.Longest < r.kv.size {
			longest = n
		}
		growth += r.kv.window * (growing + r.kv.skew*(longest-growing))
	}
	if r.dep.PP > 1 {
		// The cut divides contexts but not the longest one; its pull per request stays the same.
		growth /= max(1, min(float64(r.dep.PP), n))
	}
	return growth
}
