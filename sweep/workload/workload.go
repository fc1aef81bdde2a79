package workload

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// Process names how requests arrive. The zero value is invalid.
type Process int

// The arrival processes of the configuration. Gamma gaps have shape Burstiness
// and mean 1/rate: 1 is Poisson, below 1 burstier (coefficient of variation
// 1/sqrt(Burstiness)), as vLLM's benchmark defines it.
const (
	Poisson Process = 1 + iota
	Constant
	Gamma
	Trace
)

var processNames = []string{"", "poisson", "constant", "gamma", "trace"}

// String is the name that configurations use.
func (p Process) String() string {
	if p < Poisson || p > Trace {
		return fmt.Sprintf("Process(%d)", int(p))
	}
	return processNames[p]
}

// ParseProcess reads an arrival process's name.
func ParseProcess(s string) (Process, error) {
	if i := slices.Index(processNames, s); i > 0 {
		return Process(i), nil
	}
	return 0, fmt.Errorf("unknown arrivals %q; allowed: poisson, constant, gamma, trace", s)
}

// Prefix says which prompts begin alike.
type Prefix struct {
	// Groups is the number of distinct shared prefixes; 0 means none.
	Groups int `json:"groups"`
	// Tokens is the length of each, before and on top of the prompt's own.
	Tokens int `json:"tokens"`
	// Prompts limits the distinct prompts of a group, each with a length of its
	// own that stays fixed; 0 means that every prompt is new.
	Prompts int `json:"prompts,omitempty"`
}

// Shape is what one class of requests looks like.
type Shape struct {
	Name   string  `json:"name,omitempty"`
	Weight float64 `json:"weight,omitempty"`
	Prompt Lengths `json:"prompt"`
	Output Lengths `json:"output"`
	Prefix Prefix  `json:"prefix,omitzero"`
}

// Workload is what users ask of an engine: how long, how alike and in what
// rhythm. It holds no rate: a rate turns it into a schedule.
type Workload struct {
	// Class names the workload.
	Class string `json:"class"`
	// Shapes holds the components of a mix, one for a plain workload. Weights
	// are relative; a single component needs none.
	Shapes []Shape `json:"shapes,omitempty"`
	// Turns is the number of requests of one conversation; each carries the
	// whole conversation before it in its prompt. 0 and 1 mean no conversation.
	Turns int `json:"turns,omitempty"`
	// Think is the time between the intended times of two turns; a turn never
	// starts before the one before it has ended.
	Think time.Duration `json:"think_s,omitempty"`
	// Arrivals is the arrival process, and Burstiness the shape of Gamma gaps.
	Arrivals   Process `json:"arrivals"`
	Burstiness float64 `json:"burstiness,omitempty"`
	// Replay holds the rows of a trace, in order of arrival, when Arrivals is
	// Trace.
	Replay []TraceRow `json:"-"`
	// TraceFile is where Replay came from, for the record only.
	TraceFile string `json:"trace,omitempty"`
	// AnyRow makes schedules at a rate start at a row of the trace that the seed
	// draws, and go on from its end to its beginning: trials that are shorter than
	// the trace then see different parts of it.
	AnyRow bool `json:"any_row,omitempty"`
	// Timeout is how long a client waits for a whole request; 0 means forever.
	Timeout time.Duration `json:"timeout_s"`
	// MaxLen cuts prompt + output of one request; 0 means no limit.
	MaxLen int `json:"max_len_tokens,omitempty"`
	// Seed fixes what belongs to the workload rather than to one trial: the
	// identity and length of shared prompts.
	Seed uint64 `json:"seed"`
}

// Names lists the classes in the order of Request.Class.
func (w *Workload) Names() []string {
	if w.Arrivals == Trace {
		return []string{w.Class}
	}
	names := make([]string, len(w.Shapes))
	for i, s := range w.Shapes {
		names[i] = s.Name
		if s.Name == "" {
			names[i] = w.Class
		}
	}
	return names
}

// Longest is the largest prompt + output that a request of the workload can
// have, in tokens; 0 when a length has no upper end.
func (w *Workload) Longest() int {
	if w.Arrivals == Trace {
		n := 0
		for _, r := range w.Replay {
			n = max(n, r.Prompt+r.Output)
		}
		return n
	}
	longest := 0
	for _, s := range w.Shapes {
		p, o := s.Prompt.Longest(), s.Output.Longest()
		if p == 0 || o == 0 {
			return 0
		}
		n := p + o
		if w.Turns > 1 {
			n *= w.Turns
		}
		if s.Prefix.Groups > 0 {
			n += s.Prefix.Tokens
		}
		longest = max(longest, n)
	}
	return longest
}

// MeanTokens is the expected number of prompt and of output tokens of one
// request, shared prefixes and earlier turns included.
func (w *Workload) MeanTokens() (prompt, output float64) {
	if w.Arrivals == Trace {
		for _, r := range w.Replay {
			prompt += float64(r.Prompt)
			output += float64(r.Output)
		}
		n := float64(max(len(w.Replay), 1))
		return prompt / n, output / n
	}
	total := 0.0
	for _, s := range w.Shapes {
		weight := s.weight(len(w.Shapes))
		p, o := s.Prompt.Expected(), s.Output.Expected()
		if t := float64(w.Turns); t > 1 {
			p += (t - 1) / 2 * (p + o)
		}
		if s.Prefix.Groups > 0 {
			p += float64(s.Prefix.Tokens)
		}
		total += weight
		prompt += weight * p
		output += weight * o
	}
	return prompt / total, output / total
}

// SharedText is how many tokens of a request's prompt are, in the mean, one of the
// shared texts of the workload, and how many of these there are: prefixes, or whole
// prompts where these are limited too. A trace's are not counted.
func (w *Workload) SharedText() (tokens, texts float64) {
	total := 0.0
	for i := range w.Shapes {
		s := &w.Shapes[i]
		weight := s.weight(len(w.Shapes))
		total += weight
		if s.Prefix.Groups == 0 || w.Arrivals == Trace {
			continue
		}
		length := float64(s.Prefix.Tokens)
		if s.Prefix.Prompts > 0 {
			length += s.Prompt.Expected()
		}
		tokens += weight * length
		texts += float64(s.Prefix.Groups) * float64(max(s.Prefix.Prompts, 1))
	}
	return tokens / max(total, math.SmallestNonzeroFloat64), texts
}

func (s *Shape) weight(components int) float64 {
	if components == 1 {
		return 1
	}
	return s.Weight
}
