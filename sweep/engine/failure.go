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

// Failure says why an engine could not be started or did not keep running, and what follows for
// other knobs.
type Failure struct {
	Class Class `json:"class"`
	// Knobs are those that it failed with.
	Knobs measure.Knobs `json:"-"`
	// Stage is the stage of the start in which it failed; "serving" after the start.
	Stage string `json:"stage"`
	// Rate is the load under which its process ended, in requests per second; 0 for none.
	Rate float64 `json:"-"`
	// Cause quotes the log line that shows the cause, or says in words what was observed.
	Cause string `json:"cause"`
	// Exit says how its process ended; "" if it did not.
	Exit string `json:"exit"`
	// MaxModelLen is the longest sequence that would have fitted, in tokens, if the engine said so,
	// else 0.
	MaxModelLen int `json:"-"`
	// Log is the path of the whole log.
	Log string `json:"log"`
	// Retry says that the same knobs may work on another try: the failure had to do with the
	// machine at that moment.
	Retry bool `json:"-"`
	// scope says which other knobs fail likewise, in the notation of [rules].
	scope string
}

// Error returns the whole failure in one line.
func (f *Failure) Error() string { return f.Reason().Text }

// Reason returns the failure as a reason why an engine does not run.
func (f *Failure) Reason() note.Reason {
	var b strings.Builder
	tell := func(known bool, format string, a ...any) {
		if known {
			fmt.Fprintf(&b, format, a...)
		}
	}
	tell(f.Stage != "", " in stage %s", f.Stage)
	tell(f.Rate > 0, " under %.3g requests/s", f.Rate)
	tell(f.Exit != "", ", %s", f.Exit)
	tell(f.Cause != "", ": %s", f.Cause)
	tell(f.MaxModelLen > 0, " (a max_model_len of %d would fit)", f.MaxModelLen)
	tell(f.Class == denied, " (engine.api_key_env names the environment variable that holds its key)")
	return note.Because(note.EngineFailed, f.Class, &b)
}

// Final reports whether the engine denies access or does not know the model: starting it again
// changes nothing.
func (f *Failure) Final() bool { return f.Class == denied || f.Class == wrongModel }

// Ended reports whether nothing is left to answer: the process ended, or nobody listens.
func (f *Failure) Ended() bool { return f.Exit != "" || f.Class == unreachable }

// OfMachine reports whether the knobs hardly played a part in the failure: the engine was too late,
// said nothing, or found its port taken.
func (f *Failure) OfMachine() bool {
	return f.Class == Slow || f.Class == stalled || f.Class == mute || f.Class == portTaken
}

// Condemns reports whether an engine with knobs k is bound to fail in the same way. It never is on
// other GPUs or with another degree of parallelism, and a knob left to the engine is not comparable
// with a value.
func (f *Failure) Condemns(k measure.Knobs) bool {
	if k == f.Knobs {
		return true
	}
	was := f.Knobs
	if f.MaxModelLen > 0 && k.MaxModelLen > 0 && k.MaxModelLen <= f.MaxModelLen {
		return false
	}
	for _, n := range measure.KnobTable {
		if n.Get(k) != n.Get(was) && !covers(f.shares(n), n.Number(was), n.Number(k)) {
			return false
		}
	}
	return true
}

func (f *Failure) shares(n measure.Knob) byte {
	switch i := slices.Index(scoped, n.Name); {
	case n.Placement || n.Worded():
		return '='
	case f.scope == "", n.Name == "prefix_caching" && f.scope != sameKnobs:
		return '.'
	case n.Name == "max_model_len" && f.MaxModelLen > 0:
		return '.' // above the bound or left to the engine, though it may be below what failed
	case i >= 0:
		return f.scope[i]
	}
	// kv_blocks changes what memory is for, and sameKnobs means the prefix cache too.
	return '='
}

// covers reports whether another value of a knob fails like the one that failed; 0 is the engine's
// own choice, or not a number.
func covers(which byte, failed, value float64) bool {
	known := failed != 0 && value != 0
	return which == '.' || known && (which == '>' && value > failed || which == '<' && value < failed)
}

var (
	lengthBound = regexp.MustCompile(`(?i)the estimated maximum model length is ([\d,]+)|derived max_model_len \(max_position_embeddings=(\d+)`)
	looksWrong  = regexp.MustCompile(`(?i)\b(error|exception|fatal|panic|failed)\b|Error\b`)
	// A traceback quotes source code, after the prefix that vLLM gives each line of a process.
	quoted = regexp.MustCompile(`^(\([^)]* pid=\d+\) )?(ERROR [^\]]*\] )?\s*(raise |File ")`)
)

func (s *logState) findCause(line string) {
	if m := lengthBound.FindStringSubmatch(line); m != nil && s.maxModelLen == 0 {
		s.maxModelLen, _ = strconv.Atoi(strings.ReplaceAll(m[1]+m[2], ",", ""))
	}
	lower, stage := strings.ToLower(line), stageOrder[s.stage]
	for i, r := range rules[:s.match] {
		if stage == stageServing && strings.HasPrefix(string(r.class), "args.") {
			continue // about a request, not the engine
		}
		if matches(r.text, lower) {
			s.match, s.cause, s.causeStage = i, line, stage
			break
		}
	}
	if looksWrong.MatchString(line) && !quoted.MatchString(line) && !slices.ContainsFunc(wrappers, func(w string) bool { return strings.Contains(line, w) }) {
		s.suspect = line
	}
}

// failure sums up what the log says of a failure; exit is how the process ended, nil if it did not.
// The cause is the first rule that matched, unless the exit status contradicts it.
func (s *logState) failure(k measure.Knobs, exit *syscall.WaitStatus) *Failure {
	f := &Failure{Class: unknownCause, Knobs: k, Stage: stageOrder[s.stage], Cause: printable.Line(cmp.Or(s.suspect, s.line), mostWords), scope: sameKnobs}
	if exit != nil {
		f.Exit = exitText(*exit)
	}
	if s.match < len(rules) {
		if r := rules[s.match]; r.exit == 0 || exit != nil && exit.ExitStatus() == r.exit {
			f.Class, f.Cause, f.Stage, f.scope, f.Retry = r.class, printable.Line(s.cause, mostWords), s.causeStage, r.scope, r.again
			f.MaxModelLen = s.maxModelLen
			f.narrow()
			return f
		}
	}
	switch {
	case exit == nil:
	case exit.Signal() == syscall.SIGKILL || exit.ExitStatus() == 137:
		// No rule matched, and only the kernel or a human kills this way: most often the host had
		// run out of memory.
		f.Class, f.Retry = killed, true
	case exit.Signaled():
		f.Class, f.Retry = crashed, true
	case exit.ExitStatus() == 0:
		f.Class = ended
		if f.Stage != stageServing {
			f.Cause = strings.TrimPrefix(f.Cause+"; an engine ends with its command, which must stay in the foreground", "; ")
		}
	}
	return f
}

// narrow settles what a failed allocation implies for other knobs, by the stage it failed in: while
// weights are loaded no knob helps; while the largest step is profiled the share of memory left for
// the cache does not matter.
func (f *Failure) narrow() {
	if f.Class != memOOM || f.scope[0] != '>' {
		return
	}
	switch f.Stage {
	case stageStart, stageWeights:
		f.Class, f.scope = "mem.weights", ""
	case stageProfile:
		f.scope = "." + f.scope[1:]
	}
}

// Class says why an engine failed.
type Class string

// The classes of failures, in addition to those of memory and arguments that the table of rules
// names.
const (
	unknownCause Class = "unknown"         // the log has no line that a rule knows
	portTaken    Class = "net.port"        // somebody else listens on its port
	killed       Class = "mem.kill"        // by signal 9 without a known line in the log, as the host's OOM killer does
	crashed      Class = "crash"           // it ended by another signal
	ended        Class = "exit.early"      // it ended by itself with status 0 though nobody asked it to
	missing      Class = "start.program"   // its program is not there or cannot be started
	stalled      Class = "start.stall"     // it wrote nothing to its log for too long while starting
	Slow         Class = "start.timeout"   // it was not ready in time
	mute         Class = "start.mute"      // it said that it was ready but did not answer a request
	denied       Class = "net.denied"      // it denies access: status 401 or 403
	failing      Class = "serve.failing"   // it answers requests with errors, even one at a time
	wrongModel   Class = "args.model"      // it serves no model of the requested name
	drifted      Class = "args.changed"    // it runs with other knobs than it was given
	hung         Class = "hang"            // it kept running but no longer answered
	unreachable  Class = "net.unreachable" // nobody answers at the URL of a server that should be running
	// memOOM is a failed allocation; the stage it failed in decides what else fails.
	memOOM Class = "mem.oom"
)

// scoped lists the knobs that the characters of a scope stand for, in order.
var scoped = []string{"gpu_memory_utilization", "max_num_seqs", "max_num_batched_tokens", "max_model_len"}

// sameKnobs is the scope of a failure that only the same knobs share.
const sameKnobs = "===="

// rules recognise the classes of failures by log lines. The first rule in the table that any line
// matches is the cause. Messages of wrappers are not among them. They follow vLLM 0.10 to 0.33
// unless another engine is named.
var rules = []struct {
	class Class
	// text is in lower case: alternatives separated by bars, each of parts separated by asterisks.
	text string
	// scope says which other knobs on the same hardware and parallel degrees fail for the same
	// reason: all for "", else by one character for each knob in scoped: "." if the knob does not
	// matter, ">" if larger values fail too, "<" if smaller ones do, and "=" if only the same value
	// is known to.
	scope string
	// exit is the exit status that must accompany it; 0 means any.
	exit int
	// again: it may pass on another try.
	again bool
}{
	{class: "mem.busy", text: "free memory on device*is less than desired gpu memory utilization", scope: ">...", again: true},
	{class: "mem.no_kv", text: "no available memory for the cache blocks|not enough memory. please try to increase --mem-fraction-static", scope: "<>>."}, // with SGLang
	{class: "mem.len", text: "to serve at least one request with the model*max seq len", scope: "<>>>"},
	{class: "mem.autofit", text: "cannot auto-fit max_model_len", scope: "<>>."},
	{class: "mem.weights", text: "failed to load model - not enough gpu memory"},
	{class: "mem.sampler", text: "cuda out of memory occurred when warming up sampler with", scope: ">>.."},
	{class: memOOM, text: "cuda out of memory. tried to allocate|hip out of memory. tried to allocate", scope: ">>>."},
	{class: memOOM, text: "not enough memory to handle*prefill tokens", scope: "<.>."}, // with TGI
	{class: memOOM, text: "failed to allocate*buffer", scope: ".>>>"},                  // with llama.cpp
	{class: memOOM, text: "outofmemoryerror", scope: ">>>."},
	{class: "mem.race", text: "error in memory profiling. initial free memory", scope: sameKnobs, again: true},
	{class: "mem.cpu", text: "available memory on node*is less than desired cpu memory utilization|on kv cache allocation is less than requested memory for kv", scope: ">..."},
	{class: "args.len", text: "user-specified max_model_len*is greater than the derived max_model_len", scope: "...>"},
	{class: "args.tokens", text: "max_num_batched_tokens*is smaller than max_model_len", scope: "..<>"},
	{class: "args.seqs", text: "max_num_batched_tokens*must be greater than or equal to max_num_seqs", scope: ".><."},
	{class: "args.tp", text: "total number of attention heads*must be divisible by tensor parallel size"},
	{class: "args.quant", text: "quantization method specified in the model config*does not match|unknown quantization method"},
	{class: "args.dtype", text: "the model type*does not support float16"},
	{class: "args.unsupported", text: "concurrent partial prefill is not supported"},
	{class: portTaken, text: "address already in use|couldn't bind http server socket", scope: sameKnobs, again: true}, // with llama-server
	{class: "net.hub", text: "gated repo|401 client error*huggingface|couldn't connect to 'https://huggingface.co'|localentrynotfounderror"},
	{class: "disk.full", text: "no space left on device"},
	{class: Slow, text: "timed out waiting for engine core processes to start", scope: sameKnobs, again: true},
	{class: "args.parse", text: "error: unrecognized arguments|error: invalid argument|validation error", scope: sameKnobs}, // with llama-server
	{class: "model.load", text: "error loading model|unrecognized model in"},                                                // with llama-server
	{class: "args.unsupported", text: "notimplementederror", scope: sameKnobs},
	// Rules that depend on the exit status come last: they would hide those after them.
	{class: "args.parse", text: "error:", scope: sameKnobs, exit: 2},
}

// matches reports whether a lower-case line holds all parts of one of the alternatives of a rule.
func matches(texts, line string) bool {
	for text := range strings.SplitSeq(texts, "|") {
		if !slices.ContainsFunc(strings.Split(text, "*"), func(part string) bool { return !strings.Contains(line, part) }) {
			return true
		}
	}
	return false
}

// wrappers are messages that only report a failure elsewhere.
var wrappers = []string{
	"EngineCore failed to start", "Engine core initialization failed. See root cause above",
	"WorkerProc initialization failed due to an exception in a background process",
	"EngineCore encountered a fatal error", "Traceback (most recent call last)",
	"Application startup failed", "During handling of the above exception",
	"slurmstepd", "srun: ", // of a step on several nodes: the process of another node ended first
}
