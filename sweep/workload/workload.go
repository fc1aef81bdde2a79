package workload

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"planner/internal/list"
	"planner/internal/wire"
)

// Process names how requests arrive. The zero value is invalid.
type Process string

// The arrival processes of the configuration. Gamma gaps have shape Burstiness
// and mean 1/rate: 1 is Poisson, below 1 burstier (coefficient of variation
// 1/sqrt(Burstiness)), as vLLM's benchmark defines it.
const (
	Poisson  Process = "poisson"
	Constant Process = "constant"
	Gamma    Process = "gamma"
	Trace    Process = "trace"
)

// UnmarshalText rejects an unknown process; an empty text is the zero value.
func (p *Process) UnmarshalText(b []byte) error {
	return readName(p, b, Poisson, Constant, Gamma, Trace)
}

// readName reads one of the names that are allowed, or nothing.
func readName[T ~string](v *T, b []byte, allowed ...T) error {
	if *v = T(b); *v != "" && !slices.Contains(allowed, *v) {
		return fmt.Errorf("unknown name %q; allowed: %v", *v, allowed)
	}
	return nil
}

// Prefix says how prompts share their beginnings.
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
	Name   string  `json:"name,omitempty"`   // the class
	Weight float64 `json:"weight,omitempty"` // its part of the requests, relative to the others'
	Prompt Lengths `json:"prompt"`           // tokens of a prompt, without shared prefixes
	Output Lengths `json:"output"`           // tokens of an answer
	Prefix Prefix  `json:"prefix,omitzero"`  // texts that prompts share
}

// MostTurns bounds the requests of a conversation: every turn of all of them is held while they are simulated.
const MostTurns = 1000

// Workload is what users ask of an engine: how long, how alike and in what
// rhythm. It holds no rate: a rate turns it into a schedule.
type Workload struct {
	// Class names the workload.
	Class string `json:"class"`
	// Shapes holds the components of a mix, one for a plain workload. Weights
	// are relative; a single component needs none.
	Shapes []Shape `json:"shapes,omitempty"`
	// Turns is the number of requests of one conversation, at most [MostTurns]; each carries the
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
	// Rates are those of the trace, nil without one: they say which of them a rate means.
	Rates *Rates `json:"trace_rates,omitempty"`
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
	return list.Map(w.Shapes, func(s Shape) string { return cmp.Or(s.Name, w.Class) })
}

// Share returns the share of the requests that are of a class: 1 for "", which stands for all, and
// for a class that is no component.
func (w *Workload) Share(class string) float64 {
	own := w.weight(func(s *Shape) bool { return s.Name == class })
	if class == "" || own == 0 {
		return 1
	}
	return own / w.weight(nil)
}

// Longest returns the largest prompt + output that a request of the workload can have, in tokens; 0
// if a length has no upper end.
func (w *Workload) Longest() int {
	if w.Arrivals == Trace {
		return list.Largest(w.Replay, func(r TraceRow) int { return r.Prompt + r.Output })
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

// MeanTokens returns the expected number of prompt and of output tokens of one request, shared
// prefixes and earlier turns included. If MaxLen cuts requests, they are the means of a sample.
func (w *Workload) MeanTokens() (prompt, output float64) {
	if w.Arrivals == Trace {
		for _, r := range w.Replay {
			prompt += float64(r.Prompt)
			output += float64(r.Output)
		}
		n := float64(max(len(w.Replay), 1))
		return prompt / n, output / n
	}
	if w.cuts() {
		all := w.sample(sampledTokens / max(w.Turns, 1))
		for i := range all {
			prompt += float64(all[i].Prompt)
			output += float64(all[i].Output)
		}
		n := float64(max(len(all), 1))
		return prompt / n, output / n
	}
	for _, s := range w.Shapes {
		weight := s.weight(len(w.Shapes))
		p, o := s.Prompt.Expected(), s.Output.Expected()
		if t := float64(w.Turns); t > 1 {
			p += (t - 1) / 2 * (p + o)
		}
		if s.Prefix.Groups > 0 {
			p += float64(s.Prefix.Tokens)
		}
		prompt += weight * p
		output += weight * o
	}
	total := w.weight(nil)
	return prompt / total, output / total
}

// SharedText returns the mean number of tokens of a request's prompt that are a shared text of the
// workload, and how many such texts there are: prefixes, or whole prompts if these are limited too.
// Those of a trace are not counted.
func (w *Workload) SharedText() (tokens, texts float64) {
	for i := range w.Shapes {
		s := &w.Shapes[i]
		if s.Prefix.Groups == 0 || w.Arrivals == Trace {
			continue
		}
		length := float64(s.Prefix.Tokens)
		if s.Prefix.Prompts > 0 {
			length += s.Prompt.Expected()
		}
		tokens += s.weight(len(w.Shapes)) * length
		texts += float64(s.Prefix.Groups) * float64(max(s.Prefix.Prompts, 1))
	}
	return tokens / max(w.weight(nil), math.SmallestNonzeroFloat64), texts
}

// weight returns the total weight of the components for which is holds, of all for nil.
func (w *Workload) weight(is func(*Shape) bool) (total float64) {
	for i := range w.Shapes {
		if s := &w.Shapes[i]; is == nil || is(s) {
			total += s.weight(len(w.Shapes))
		}
	}
	return total
}

func (s *Shape) weight(components int) float64 {
	if components == 1 {
		return 1
	}
	return s.Weight
}

// classShapes are the four traffic classes that a configuration can name. They are planner's own:
// round figures in the range of the public Azure, BurstGPT and Mooncake traces, lognormal with
// sigma 0.8 and clipped. They stand for a kind of traffic, not for anyone's in particular: a trace
// of one's own is better.
var classShapes = []Shape{
	{Name: "chat", Prompt: lognormal(500, 50, 4000), Output: lognormal(200, 10, 2000)},
	{Name: "code", Prompt: lognormal(1500, 200, 8000), Output: lognormal(500, 50, 4000)},
	{Name: "long-context-qa", Prompt: lognormal(16000, 2000, 128000), Output: lognormal(300, 20, 2000)},
	{Name: "summarization", Prompt: lognormal(4000, 500, 32000), Output: lognormal(150, 50, 500)},
}

func lognormal(median float64, low, high int) Lengths {
	return Lengths{Dist: Lognormal, Median: median, Sigma: 0.8, Min: low, Max: high}
}

// Class returns the shape of a named traffic class.
func Class(name string) (Shape, error) {
	for _, s := range classShapes {
		if strings.EqualFold(s.Name, name) {
			return s, nil
		}
	}
	return Shape{}, fmt.Errorf("unknown class %q; allowed: %s", name, strings.Join(ClassNames(), ", "))
}

// Words describes the traffic in a few words: its class, or the lengths if these are not those of
// the class, and what requests share.
func (w *Workload) Words() string {
	words := w.Class
	if w.OwnLengths() {
		words = w.Shapes[0].Lengths()
	}
	if len(w.Shapes) == 1 {
		words += w.Shapes[0].Prefix.words()
	}
	if w.Turns > 1 {
		words += fmt.Sprintf(", conversations of %d turns", w.Turns)
	}
	return words
}

// OwnLengths reports whether all requests have lengths other than those of the workload's class.
func (w *Workload) OwnLengths() bool {
	if len(w.Shapes) != 1 {
		return false
	}
	class, _ := Class(w.Class)
	return w.Shapes[0].Lengths() != class.Lengths()
}

// words describes the prefixes, after a comma; "" if there are none.
func (p Prefix) words() string {
	words := ""
	if p.Groups > 0 {
		words = fmt.Sprintf(", %d shared prefixes of %d tokens", p.Groups, p.Tokens)
	}
	if p.Groups > 0 && p.Prompts > 0 {
		words += fmt.Sprintf(" with %d prompts each", p.Prompts)
	}
	return words
}

// Words describes the lengths of a component and what its requests share.
func (s Shape) Words() string { return s.Lengths() + s.Prefix.words() }

// Lengths describes the lengths of the prompts and of the outputs.
func (s Shape) Lengths() string {
	return fmt.Sprintf("prompts %s, outputs %s", s.Prompt.Words(), s.Output.Words())
}

// ClassNames lists the named traffic classes.
func ClassNames() []string {
	return list.Map(classShapes, func(s Shape) string { return s.Name })
}

// Written returns the workload as a file holds it: the rows of a trace and the samples of an
// empirical length stay in their files, and a client that waits forever has null for its timeout.
func (w *Workload) Written() any {
	v := fields(*w)
	if v.Timeout <= 0 {
		v.Timeout = -1
	}
	return v
}

// fields is a workload as it is written.
type fields Workload

// UnmarshalJSON reads a description. The result identifies the workload in a report; if its draws
// lie in other files, as those of a trace do, it cannot make a schedule.
func (w *Workload) UnmarshalJSON(b []byte) error {
	var v fields
	if err := wire.Unmarshal(b, &v); err != nil {
		return fmt.Errorf("read workload: %w", err)
	}
	v.Timeout = max(v.Timeout, 0)
	*w = Workload(v)
	return nil
}

// Alike reports whether two workloads are written alike, but for what does not make them different
// ones: the seed, the engine's longest request, the file of a trace, and its rates if they do not
// change what a rate means. The rows of a trace and the samples of an empirical length are not
// compared, as a workload that was read back does not hold them. A nil workload is like any other.
func (w *Workload) Alike(other *Workload) bool {
	if w == nil || other == nil {
		return true
	}
	a, b := *w, *other
	a.Seed, a.MaxLen, a.TraceFile = b.Seed, b.MaxLen, b.TraceFile
	if a.Rates.Peak() == b.Rates.Peak() {
		a.Rates = b.Rates
	}
	x, errX := wire.Marshal(&a)
	y, errY := wire.Marshal(&b)
	return errX != nil || errY != nil || bytes.Equal(x, y)
}
