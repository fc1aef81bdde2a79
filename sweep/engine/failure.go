package engine

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"planner/internal/note"
	"planner/internal/printable"
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
	// Rate is the load under which its process ended, in requests per second; 0 for none.
	Rate float64 `json:"-"`
	// Cause quotes the line of its log that tells the cause, or says in words
	// what was seen.
	Cause string `json:"cause"`
	// Exit is how its process ended; "" if it did not.
	Exit string `json:"exit"`
	// MaxModelLen is the longest sequence that would have fitted, where the
	// engine said so; 0 where not.
	MaxModelLen int `json:"-"`
	// Log is the path of the whole log.
	Log string `json:"log"`
	// scope says what else fails so, again that it may pass when tried once more.
	scope scope
	again bool
}

// Error says all of it in one line.
func (f *Failure) Error() string { return f.Reason().Text }

// Reason is the failure as what keeps an engine from running.
func (f *Failure) Reason() note.Reason {
	var b strings.Builder
	if f.Stage != "" {
		fmt.Fprintf(&b, " in stage %s", f.Stage)
	}
	if f.Rate > 0 {
		fmt.Fprintf(&b, " under %.3g requests/s", f.Rate)
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
	return note.Because(note.EngineFailed, f.Class, &b)
}

// Final reports whether the engine refuses who asks, or knows no such model: another
// start of it changes nothing.
func (f *Failure) Final() bool { return f.Class == denied || f.Class == wrongModel }

// OfMachine reports whether knobs hardly have a part in the failure: the engine was too
// late, said nothing, or had no port.
func (f *Failure) OfMachine() bool {
	return f.Class == Slow || f.Class == stalled || f.Class == mute || f.Class == portTaken
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
		if n.Get(k) != n.Get(was) && !f.shares(n).covers(n.Number(was), n.Number(k)) {
			return false
		}
	}
	return true
}

// shares says which values of a knob share the failure.
func (f *Failure) shares(n measure.Knob) direction {
	switch {
	case n.Placement:
		return equal
	case n.Name == "max_num_seqs":
		return f.scope.seqs
	case n.Name == "max_num_batched_tokens":
		return f.scope.tokens
	case n.Name == "gpu_memory_utilization":
		return f.scope.memory
	case n.Name == "max_model_len" && f.MaxModelLen > 0:
		return anyValue // above the bound, though it may be below what failed
	case n.Name == "max_model_len":
		return f.scope.length
	case n.Name == "prefix_caching" && f.scope != sameKnobs, f.scope == scope{}:
		return anyValue
	}
	// A pinned number of blocks, and the prefix cache, change what memory is for.
	return equal
}

// covers reports whether the value of a knob shares the fate of the one that
// failed; 0 is the engine's own choice.
func (d direction) covers(failed, value float64) bool {
	switch {
	case d == anyValue || value == failed:
		return true
	case failed == 0 || value == 0:
		return false
	case d == atLeast:
		return value > failed
	case d == atMost:
		return value < failed
	}
	return false
}

var (
	lengthBound = regexp.MustCompile(`(?i)the estimated maximum model length is ([\d,]+)|derived max_model_len \(max_position_embeddings=(\d+)`)
	looksWrong  = regexp.MustCompile(`(?i)\b(error|exception|fatal|panic|failed)\b|Error\b`)
)

func (s *logState) findCause(line string) {
	if m := lengthBound.FindStringSubmatch(line); m != nil && s.maxModelLen == 0 {
		s.maxModelLen, _ = strconv.Atoi(strings.ReplaceAll(m[1]+m[2], ",", ""))
	}
	lower, stage := strings.ToLower(line), stageOrder[s.stage]
	for i, r := range rules[:s.match] {
		if stage == stageServing && strings.HasPrefix(string(r.class), "args.") {
			continue // of a request, not of the engine
		}
		if !slices.ContainsFunc(r.all, func(text string) bool { return !strings.Contains(lower, text) }) {
			s.match, s.cause, s.causeStage = i, line, stage
			break
		}
	}
	if looksWrong.MatchString(line) && !slices.ContainsFunc(wrappers, func(w string) bool { return strings.Contains(line, w) }) {
		s.suspect = line
	}
}

// failure sums up, for an engine whose process ended as exit says; nil if it
// did not end. The cause is the first rule that matched, unless the exit
// contradicts it.
func (s *logState) failure(k measure.Knobs, exit *syscall.WaitStatus) *Failure {
	f := &Failure{Class: unknownCause, Knobs: k, Stage: stageOrder[s.stage], Cause: printable.Line(cmp.Or(s.suspect, s.line), mostWords), scope: sameKnobs}
	if exit != nil {
		f.Exit = exitText(*exit)
	}
	if s.match < len(rules) {
		if r := rules[s.match]; r.exit == 0 || exit != nil && exit.ExitStatus() == r.exit {
			f.Class, f.Cause, f.Stage, f.scope, f.again = r.class, printable.Line(s.cause, mostWords), s.causeStage, r.scope, r.again
			f.MaxModelLen = s.maxModelLen
			f.narrow()
			return f
		}
	}
	switch {
	case exit == nil:
	case exit.Signal() == syscall.SIGKILL || exit.ExitStatus() == 137:
		// Nothing in the log, and only the kernel or a human kills so: most
		// often there was no memory left on the host.
		f.Class, f.again = killed, true
	case exit.Signaled():
		f.Class, f.again = crashed, true
	case exit.ExitStatus() == 0:
		f.Class = ended
		if f.Stage != stageServing {
			f.Cause = strings.TrimPrefix(f.Cause+"; an engine ends with its command, which must stay in the foreground", "; ")
		}
	}
	return f
}

// narrow settles what a failed allocation condemns, by the stage it failed in:
// while weights are loaded no knob helps; while the largest step is profiled the
// share that is left for the cache does not matter.
func (f *Failure) narrow() {
	if f.Class != memOOM || f.scope.memory != atLeast {
		return
	}
	switch f.Stage {
	case stageStart, stageWeights:
		f.Class, f.scope = "mem.weights", scope{}
	case stageProfile:
		f.scope.memory = anyValue
	}
}
