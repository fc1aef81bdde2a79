package engine

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"planner/sweep/measure"
)

// Failure says why an engine could not be started or did not go on, and what
// that says about other knobs.
type Failure struct {
	Class Class `json:"class"`
	// Knobs are those that it failed with.
	Knobs measure.Knobs `json:"-"`
	// Stage is the one of the start that it failed in; "serving" behind it.
	Stage string `json:"stage"`
	// Cause quotes the line of its log that tells the cause, or says in words
	// what was seen.
	Cause string `json:"cause"`
	// Exit is how its process ended; "" if it did not.
	Exit string `json:"exit"`
	// MaxModelLen is the longest sequence that would have fitted, where the
	// engine said so; 0 where not.
	MaxModelLen int `json:"-"`
	// Log is the path of the whole log.
	Log   string `json:"log"`
	reach reach
	again bool
}

// Error says all of it in one line.
func (f *Failure) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "engine failed (%s)", f.Class)
	if f.Stage != "" {
		fmt.Fprintf(&b, " in stage %s", f.Stage)
	}
	if f.Exit != "" {
		fmt.Fprintf(&b, ", %s", f.Exit)
	}
	if f.Cause != "" {
		fmt.Fprintf(&b, ": %s", f.Cause)
	}
	if f.MaxModelLen > 0 {
		fmt.Fprintf(&b, " (a max_model_len of %d would fit)", f.MaxModelLen)
	}
	return b.String()
}

// Retry reports whether the same knobs may work when they are tried once more:
// what failed had to do with the machine at that moment.
func (f *Failure) Retry() bool { return f.again }

// Condemns reports whether an engine with knobs k is bound to fail in the same
// way. It never is on other GPUs or with another degree of parallelism, and a
// knob that is left to the engine compares with nothing but itself.
func (f *Failure) Condemns(k measure.Knobs) bool {
	if k == f.Knobs {
		return true
	}
	was := f.Knobs
	if f.MaxModelLen > 0 && k.MaxModelLen > 0 && k.MaxModelLen <= f.MaxModelLen {
		return false
	}
	for _, n := range measure.KnobTable {
		if n.Get(k) != n.Get(was) && !f.reaches(n).covers(n.Number(was), n.Number(k)) {
			return false
		}
	}
	return true
}

// reaches says which values of a knob share the failure.
func (f *Failure) reaches(n measure.Knob) way {
	switch {
	case n.Placement:
		return equal
	case n.Name == "max_num_seqs":
		return f.reach.seqs
	case n.Name == "max_num_batched_tokens":
		return f.reach.tokens
	case n.Name == "gpu_memory_utilization":
		return f.reach.share
	case n.Name == "max_model_len" && f.MaxModelLen > 0:
		return whatever // above the bound, though it may be below what failed
	case n.Name == "max_model_len":
		return f.reach.length
	case n.Name == "prefix_caching" && f.reach != self, f.reach == reach{}:
		return whatever
	}
	// A pinned number of blocks, and the prefix cache, change what memory is for.
	return equal
}

// covers reports whether the value of a knob shares the fate of the one that
// failed; 0 is the engine's own choice.
func (w way) covers(failed, value float64) bool {
	switch {
	case w == whatever || value == failed:
		return true
	case failed == 0 || value == 0:
		return false
	case w == atLeast:
		return value > failed
	case w == atMost:
		return value < failed
	}
	return false
}

// verdict finds the class of a failure line by line.
type verdict struct {
	// rank is the place in rules of the best match so far, len(rules) for none;
	// cause is its line.
	rank  int
	cause string
	// suspect is the last line that looks like an error and is no wrapper, last
	// the last line of all.
	suspect, last string
	// length is the bound that a line gave on max_model_len.
	length int
	stage  string
	lower  [][]string
}

func newVerdict() *verdict {
	v := &verdict{rank: len(rules), lower: make([][]string, len(rules))}
	for i, r := range rules {
		for _, text := range r.all {
			v.lower[i] = append(v.lower[i], strings.ToLower(text))
		}
	}
	return v
}

var (
	lengthBound = regexp.MustCompile(`(?i)the estimated maximum model length is ([\d,]+)|derived max_model_len \(max_position_embeddings=(\d+)`)
	looksWrong  = regexp.MustCompile(`(?i)\b(error|exception|fatal|panic|failed)\b|Error\b`)
)

// add looks at one line, seen in a stage of the start.
func (v *verdict) add(line, stage string) {
	v.last = line
	if m := lengthBound.FindStringSubmatch(line); m != nil && v.length == 0 {
		v.length, _ = strconv.Atoi(strings.ReplaceAll(m[1]+m[2], ",", ""))
	}
	lower := strings.ToLower(line)
	for i := range v.rank {
		if stage == stageServing && strings.HasPrefix(string(rules[i].class), "args.") {
			continue // of a request, not of the engine
		}
		if containsAll(lower, v.lower[i]) {
			v.rank, v.cause, v.stage = i, line, stage
			break
		}
	}
	if looksWrong.MatchString(line) && !isWrapper(line) {
		v.suspect = line
	}
}

func containsAll(s string, texts []string) bool {
	for _, t := range texts {
		if !strings.Contains(s, t) {
			return false
		}
	}
	return true
}

// failure sums up, for an engine whose process ended as exit says; nil if it
// did not end.
func (v *verdict) failure(k measure.Knobs, stage string, exit *Exit) *Failure {
	f := &Failure{Class: Unknown, Knobs: k, Stage: stage, reach: self}
	if exit != nil {
		f.Exit = exit.String()
	}
	if r := v.rule(exit); r != nil {
		f.Class, f.Cause, f.Stage, f.reach, f.again = r.class, oneLine(v.cause), v.stage, r.reach, r.again
		f.MaxModelLen = v.length
		f.narrow()
		return f
	}
	f.Cause = oneLine(v.suspect)
	if f.Cause == "" {
		f.Cause = oneLine(v.last)
	}
	if exit == nil {
		return f
	}
	switch {
	case exit.Signal == 9 || exit.Code == 137:
		// Nothing in the log, and only the kernel or a human kills so: most
		// often there was no memory left on the host.
		f.Class, f.again = Killed, true
	case exit.Signal != 0:
		f.Class, f.again = Crashed, true
	case exit.Code == 0:
		f.Class = Ended
	}
	return f
}

// rule is the first that matched and that the exit does not contradict.
func (v *verdict) rule(exit *Exit) *rule {
	if v.rank == len(rules) {
		return nil
	}
	r := &rules[v.rank]
	if r.exit != 0 && (exit == nil || exit.Code != r.exit) {
		return nil
	}
	return r
}

// narrow settles what a failed allocation condemns, by the stage it failed in:
// while weights are loaded no knob helps; while the largest step is profiled the
// share that is left for the cache does not matter.
func (f *Failure) narrow() {
	if f.Class != memOOM || f.reach.share != atLeast {
		return
	}
	switch f.Stage {
	case stageStart, stageWeights:
		f.Class, f.reach = "mem.weights", reach{}
	case stageProfile:
		f.reach.share = whatever
	}
}
