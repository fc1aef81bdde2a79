package workload

import (
	"cmp"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"gonum.org/v1/gonum/stat/distuv"
)

// Streams of random numbers, one for each purpose, so that a draw added to one of them does not
// move the others.
const (
	streamArrival uint64 = 1 + iota
	streamClass
	streamPrompt
	streamOutput
	streamGroup
	streamBody
	streamStart
	streamThin  uint64 = 12
	streamScale uint64 = 13
)

// Schedule draws the requests that arrive within span at rate requests per second. A seed has one
// sequence of gaps of mean 1, which are divided by the rate, and lengths belong to the index of a
// request: two rates, or two servers, meet the same requests in the same order (common random
// numbers). A trace is replayed with its clock stretched or shrunk to the rate, as [Rates] means
// it; at rate 0 it keeps its own clock. It starts at its first row, or, with AnyRow and a rate, at
// one that the seed draws.
func (w *Workload) Schedule(rate float64, span time.Duration, seed uint64) []Request {
	if w.Arrivals == Trace {
		return w.replay(rate, span, seed)
	}
	return w.Follow(Profile{{Rate: rate, Length: span}}, seed)
}

// Slots draws the requests of a closed loop: n in all, each due when a slot
// becomes free, so Due is zero.
func (w *Workload) Slots(n int, seed uint64) []Request {
	if w.Arrivals == Trace {
		all := w.replay(0, math.MaxInt64, 0)
		if len(all) == 0 {
			return nil
		}
		out := make([]Request, n)
		for i := range out {
			out[i] = all[i%len(all)]
			out[i].ID, out[i].Due = i, 0
		}
		return out
	}
	d := w.drawer(seed)
	out := make([]Request, 0, n)
	for len(out) < n {
		out = d.conversation(out, 0, 1, 1)
	}
	return out
}

// gaps returns the source of inter-arrival gaps of mean 1.
func (w *Workload) gaps(seed uint64) func() float64 {
	src := rand.NewPCG(seed, streamArrival)
	switch w.Arrivals {
	case Poisson:
		rng := rand.New(src)
		return rng.ExpFloat64
	case Constant:
		return func() float64 { return 1 }
	case Gamma:
		g := distuv.Gamma{Alpha: w.Burstiness, Beta: w.Burstiness, Src: src}
		return g.Rand
	}
	panic("workload: schedule without an arrival process")
}

// drawer draws requests one after another from the streams of one seed.
type drawer struct {
	w                             *Workload
	seed                          uint64
	class, prompt, output, choice *rand.Rand
	cumulative                    []float64
}

func (w *Workload) drawer(seed uint64) *drawer {
	d := &drawer{
		w: w, seed: seed,
		class:  rand.New(rand.NewPCG(seed, streamClass)),
		prompt: rand.New(rand.NewPCG(seed, streamPrompt)),
		output: rand.New(rand.NewPCG(seed, streamOutput)),
		choice: rand.New(rand.NewPCG(seed, streamGroup)),
	}
	sum := 0.0
	for i := range w.Shapes {
		sum += w.Shapes[i].weight(len(w.Shapes))
		d.cumulative = append(d.cumulative, sum)
	}
	return d
}

// uniform draws from the open interval (0, 1), where quantile functions are
// finite.
func uniform(rng *rand.Rand) float64 {
	return (float64(rng.Uint64()>>11) + 0.5) / (1 << 53)
}

// conversation appends one conversation that starts at due.
func (d *drawer) conversation(out []Request, due, span time.Duration, turns int) []Request {
	class := d.pick()
	s := &d.w.Shapes[class]
	shared, prefix := d.prefix(s)
	parent, over := 0, false
	for t := range turns {
		// Every turn draws, even after the end, so that the next conversation is the same whatever
		// the rate.
		own, output := s.Prompt.Quantile(uniform(d.prompt)), s.Output.Quantile(uniform(d.output))
		if over {
			continue
		}
		r := Request{ID: len(out), Due: due + time.Duration(t)*d.w.Think, Output: output, Shared: shared, Parent: parent, Class: class}
		if s.Prefix.Prompts > 0 && t == 0 {
			r.Prompt = prefix
		} else {
			r.Prompt = prefix + own
		}
		r.cut(d.w.MaxLen)
		if over = r.Due >= span || (t > 0 && r.Prompt <= prefix); over {
			continue
		}
		if turns > 1 {
			r.Own = contentOf(kindOwn, d.seed, uint64(r.ID))
			r.Generated = contentOf(kindOutput, d.seed, uint64(r.ID))
			shared = slices.Concat(r.Shared, []Segment{{r.Own, r.Prompt - r.SharedTokens()}, {r.Generated, r.Output}})
		}
		out = append(out, r)
		prefix, parent = r.Prompt+r.Output, r.ID+1
	}
	return out
}

// Sample sizes: conversations for their mean number of turns, and requests for their mean lengths,
// within 1 %.
const (
	sampledTurns  = 1000
	sampledTokens = 20_000
)

// meanTurns returns the mean number of requests of a conversation: fewer than Turns if some reach
// MaxLen earlier.
func (w *Workload) meanTurns() float64 {
	if w.Turns <= 1 || !w.cuts() {
		return float64(max(w.Turns, 1))
	}
	return float64(len(w.sample(sampledTurns))) / sampledTurns
}

func (w *Workload) cuts() bool {
	longest := w.Longest()
	return w.MaxLen > 0 && (longest == 0 || longest > w.MaxLen)
}

func (w *Workload) sample(conversations int) (all []Request) {
	d := w.drawer(w.Seed)
	for range conversations {
		all = d.conversation(all, 0, math.MaxInt64, max(w.Turns, 1))
	}
	return all
}

// cut shortens a request that is longer than an engine takes: first the
// prompt, to leave room for one output token, then the output.
func (r *Request) cut(maxLen int) {
	if maxLen == 0 {
		return
	}
	r.Prompt = min(r.Prompt, maxLen-1)
	r.Output = min(r.Output, maxLen-r.Prompt)
	left := r.Prompt
	for i, s := range r.Shared {
		if s.Tokens >= left {
			r.Shared = slices.Clone(r.Shared[:i+1])
			r.Shared[i].Tokens = left
			return
		}
		left -= s.Tokens
	}
}

func (d *drawer) pick() int {
	u := uniform(d.class) * d.cumulative[len(d.cumulative)-1]
	i, _ := slices.BinarySearch(d.cumulative, u)
	return min(i, len(d.cumulative)-1)
}

// prefix draws which shared text the request begins with, and how many tokens
// that text has.
func (d *drawer) prefix(s *Shape) ([]Segment, int) {
	u, v := uniform(d.choice), uniform(d.choice)
	if s.Prefix.Groups == 0 {
		return nil, 0
	}
	group := uint64(u * float64(s.Prefix.Groups))
	key := d.w.Seed ^ Mix64(group)
	shared := []Segment{{contentOf(kindPrefix, key, hashName(s.Name)), s.Prefix.Tokens}}
	if s.Prefix.Prompts == 0 {
		return shared, s.Prefix.Tokens
	}
	body := uint64(v * float64(s.Prefix.Prompts))
	rng := rand.New(rand.NewPCG(key^body, streamBody))
	tokens := s.Prompt.Quantile(uniform(rng))
	return append(shared, Segment{contentOf(kindBody, key, body), tokens}), s.Prefix.Tokens + tokens
}

// hashName is FNV-1a over a name. Hashing the name of a class keeps the components of a mix from
// sharing prefixes.
func hashName(s string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(s))
	return h.Sum64()
}

func ordered(out []Request, turns int) []Request {
	if turns == 1 {
		return out
	}
	slices.SortFunc(out, func(a, b Request) int { return cmp.Or(cmp.Compare(a.Due, b.Due), a.ID-b.ID) })
	now := make([]int, len(out))
	for i, r := range out {
		now[r.ID] = i
	}
	for i := range out {
		out[i].ID = i
		if p := out[i].Parent; p > 0 {
			out[i].Parent = now[p-1] + 1
		}
	}
	return out
}
