package serve

import (
	"slices"
	"sync"

	"planner/sweep/workload"
)

// prefixes finds out which prompts begin alike, so that the engine's prefix
// cache can know it. Texts are compared block by block through a chain of hashes,
// as vLLM does it, but a prompt is described by few segments: the path of the
// earlier text with which it shares the most blocks, and what is its own.
//
// What has not been asked for lately is forgotten, long after the engine's pool
// has forgotten it: two generations of entries, of which the older one is dropped
// when the younger is full.
type prefixes struct {
	mu          sync.Mutex
	blockTokens int
	limit       int // entries in a generation
	young, old  map[uint64][]workload.Segment
	named       uint64
}

// newPrefixes serves a pool of so many blocks.
func newPrefixes(blocks, blockTokens int) *prefixes {
	return &prefixes{blockTokens: blockTokens, limit: 2 * blocks, young: map[uint64][]workload.Segment{}}
}

// identify fills in what a request's prompt shares with others. reply is the
// text that will be generated, which a later prompt may repeat. salt separates
// prompts that must not share anything.
func (d *prefixes) identify(q *workload.Request, salt uint64, prompt []int32, reply func(k int) int32) {
	prefix := d.chain(salt, prompt)
	d.mu.Lock()
	defer d.mu.Unlock()
	known := 0
	var path []workload.Segment
	for known < len(prefix) {
		p, ok := d.recall(prefix[known])
		if !ok {
			break
		}
		path = p
		known++
	}
	path = clip(path, known*d.blockTokens)
	if own := len(prompt) - known*d.blockTokens; own > 0 {
		path = append(path, workload.Segment{Content: d.name(), Tokens: own})
	}
	q.Shared = slices.Clip(path)
	q.Generated = d.name()
	whole := append(q.Shared, workload.Segment{Content: q.Generated, Tokens: q.Output})
	for _, h := range prefix[known:] {
		d.remember(h, whole)
	}
	h := salt
	if len(prefix) > 0 {
		h = prefix[len(prefix)-1]
	}
	at := len(prefix) * d.blockTokens
	for end := at + d.blockTokens; end <= len(prompt)+q.Output; end += d.blockTokens {
		for ; at < end; at++ {
			if at < len(prompt) {
				h = mix(h + uint64(prompt[at]))
			} else {
				h = mix(h + uint64(reply(at-len(prompt))))
			}
		}
		d.remember(h, whole)
	}
}

// chain hashes a text up to the end of each full block.
func (d *prefixes) chain(salt uint64, text []int32) []uint64 {
	hashes := make([]uint64, 0, len(text)/d.blockTokens)
	h := salt
	for i, id := range text {
		h = mix(h + uint64(id))
		if (i+1)%d.blockTokens == 0 {
			hashes = append(hashes, h)
		}
	}
	return hashes
}

// clip returns the part of a path that covers so many tokens.
func clip(path []workload.Segment, tokens int) []workload.Segment {
	var part []workload.Segment
	for _, s := range path {
		if tokens <= 0 {
			break
		}
		s.Tokens = min(s.Tokens, tokens)
		tokens -= s.Tokens
		part = append(part, s)
	}
	return part
}

func (d *prefixes) name() workload.Content {
	d.named++
	return workload.TraceContent(d.named)
}

func (d *prefixes) recall(h uint64) ([]workload.Segment, bool) {
	if p, ok := d.young[h]; ok {
		return p, true
	}
	p, ok := d.old[h]
	if ok {
		d.remember(h, p)
	}
	return p, ok
}

func (d *prefixes) remember(h uint64, path []workload.Segment) {
	if len(d.young) >= d.limit {
		d.old, d.young = d.young, make(map[uint64][]workload.Segment, d.limit/4)
	}
	d.young[h] = path
}

// forget makes all later prompts unlike all earlier ones.
func (d *prefixes) forget() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.young, d.old = map[uint64][]workload.Segment{}, nil
}
