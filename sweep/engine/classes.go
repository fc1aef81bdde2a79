package engine

import "strings"

// Class says why an engine failed.
type Class string

// The classes of failures, beside those of the memory and the arguments that
// the table of rules names.
const (
	unknownCause Class = "unknown"         // it ended without a line that is known
	portTaken    Class = "net.port"        // somebody else listens on its port
	killed       Class = "mem.kill"        // by signal 9 without a word, as the host's memory killer does
	crashed      Class = "crash"           // it ended by a signal that is a fault of its own
	ended        Class = "exit.early"      // by itself with status 0 though nobody asked
	missing      Class = "start.program"   // its program is not there or cannot be started
	stalled      Class = "start.stall"     // it added nothing to its log for too long while starting
	Slow         Class = "start.timeout"   // it was not ready in time
	mute         Class = "start.mute"      // it said that it was ready and did not answer a request
	denied       Class = "net.denied"      // it refuses who asks: status 401 or 403
	failing      Class = "serve.failing"   // it answers requests with errors, one at a time too
	wrongModel   Class = "args.model"      // it serves no model of the name asked for
	drifted      Class = "args.changed"    // it runs with other knobs than those it was given
	hung         Class = "hang"            // it went on running and answered nothing any more
	unreachable  Class = "net.unreachable" // nobody answers at the URL of a server that was to be there
	// memOOM is an allocation that failed; the stage it failed in decides what else
	// fails.
	memOOM Class = "mem.oom"
)

// direction says which values of a knob share a failure with the value that failed.
type direction int

const (
	anyValue direction = iota // the knob has nothing to do with it
	atLeast                   // larger values fail too
	atMost                    // smaller values fail too
	equal                     // only the same value is known to fail
)

// scope says which other knob sets of the same hardware and parallel degrees
// fail for the same reason. The zero value says that all do.
type scope struct{ memory, seqs, tokens, length direction }

// sameKnobs is shared by nothing but the same knobs.
var sameKnobs = scope{equal, equal, equal, equal}

// rule recognises one class of failure by texts that one line of the log holds.
type rule struct {
	class Class
	all   []string
	scope scope
	// exit is the exit status that must go with it; 0 means any.
	exit int
	// again: it may pass when it is tried once more.
	again bool
}

// rules are looked at in order: the first that any line of the log matches is
// the cause. Messages of wrappers are not among them. They are those of vLLM
// 0.10 to 0.33 unless another engine is named.
var rules = inLowerCase([]rule{
	{class: "mem.busy", all: []string{"Free memory on device", "is less than desired GPU memory utilization"}, scope: scope{atLeast, anyValue, anyValue, anyValue}, again: true},
	{class: "mem.no_kv", all: []string{"No available memory for the cache blocks"}, scope: scope{atMost, atLeast, atLeast, anyValue}},
	{class: "mem.no_kv", all: []string{"Not enough memory. Please try to increase --mem-fraction-static"}, scope: scope{atMost, atLeast, atLeast, anyValue}}, // SGLang
	{class: "mem.len", all: []string{"To serve at least one request with the model", "max seq len"}, scope: scope{atMost, atLeast, atLeast, atLeast}},
	{class: "mem.autofit", all: []string{"Cannot auto-fit max_model_len"}, scope: scope{atMost, atLeast, atLeast, anyValue}},
	{class: "mem.weights", all: []string{"Failed to load model - not enough GPU memory"}},
	{class: "mem.sampler", all: []string{"CUDA out of memory occurred when warming up sampler with"}, scope: scope{atLeast, atLeast, anyValue, anyValue}},
	{class: memOOM, all: []string{"CUDA out of memory. Tried to allocate"}, scope: scope{atLeast, atLeast, atLeast, anyValue}},
	{class: memOOM, all: []string{"HIP out of memory. Tried to allocate"}, scope: scope{atLeast, atLeast, atLeast, anyValue}},
	{class: memOOM, all: []string{"Not enough memory to handle", "prefill tokens"}, scope: scope{atMost, anyValue, atLeast, anyValue}}, // TGI
	{class: memOOM, all: []string{"failed to allocate", "buffer"}, scope: scope{anyValue, atLeast, atLeast, atLeast}},                  // llama.cpp
	{class: memOOM, all: []string{"OutOfMemoryError"}, scope: scope{atLeast, atLeast, atLeast, anyValue}},
	{class: "mem.race", all: []string{"Error in memory profiling. Initial free memory"}, scope: sameKnobs, again: true},
	{class: "mem.cpu", all: []string{"Available memory on node", "is less than desired CPU memory utilization"}, scope: scope{atLeast, anyValue, anyValue, anyValue}},
	{class: "mem.cpu", all: []string{"on kv cache allocation is less than requested memory for kv"}, scope: scope{atLeast, anyValue, anyValue, anyValue}},
	{class: "args.len", all: []string{"User-specified max_model_len", "is greater than the derived max_model_len"}, scope: scope{anyValue, anyValue, anyValue, atLeast}},
	{class: "args.tokens", all: []string{"max_num_batched_tokens", "is smaller than max_model_len"}, scope: scope{anyValue, anyValue, atMost, atLeast}},
	{class: "args.seqs", all: []string{"max_num_batched_tokens", "must be greater than or equal to max_num_seqs"}, scope: scope{anyValue, atLeast, atMost, anyValue}},
	{class: "args.tp", all: []string{"Total number of attention heads", "must be divisible by tensor parallel size"}},
	{class: "args.quant", all: []string{"Quantization method specified in the model config", "does not match"}},
	{class: "args.quant", all: []string{"Unknown quantization method"}},
	{class: "args.dtype", all: []string{"The model type", "does not support float16"}},
	{class: "args.unsupported", all: []string{"Concurrent Partial Prefill is not supported"}},
	{class: portTaken, all: []string{"address already in use"}, scope: sameKnobs, again: true},
	{class: portTaken, all: []string{"couldn't bind HTTP server socket"}, scope: sameKnobs, again: true}, // llama-server
	{class: "net.hub", all: []string{"gated repo"}},
	{class: "net.hub", all: []string{"401 Client Error", "huggingface"}},
	{class: "net.hub", all: []string{"couldn't connect to 'https://huggingface.co'"}},
	{class: "net.hub", all: []string{"LocalEntryNotFoundError"}},
	{class: "disk.full", all: []string{"No space left on device"}},
	{class: Slow, all: []string{"Timed out waiting for engine core processes to start"}, scope: sameKnobs, again: true},
	{class: "args.parse", all: []string{"error: unrecognized arguments"}, scope: sameKnobs},
	{class: "args.parse", all: []string{"error: invalid argument"}, scope: sameKnobs}, // llama-server
	{class: "args.parse", all: []string{"validation error"}, scope: sameKnobs},
	{class: "model.load", all: []string{"error loading model"}}, // llama-server
	{class: "model.load", all: []string{"Unrecognized model in"}},
	{class: "args.unsupported", all: []string{"NotImplementedError"}, scope: sameKnobs},
	// What depends on the exit status comes last: it would hide what is behind it.
	{class: "args.parse", all: []string{"error:"}, scope: sameKnobs, exit: 2},
})

func inLowerCase(rules []rule) []rule {
	for _, r := range rules {
		for i, text := range r.all {
			r.all[i] = strings.ToLower(text)
		}
	}
	return rules
}

// wrappers are messages about a failure elsewhere.
var wrappers = []string{
	"EngineCore failed to start", "Engine core initialization failed. See root cause above",
	"WorkerProc initialization failed due to an exception in a background process",
	"EngineCore encountered a fatal error", "Traceback (most recent call last)",
	"Application startup failed", "During handling of the above exception",
	"slurmstepd", "srun: ", // of a step of several nodes: one of the others ended first
}
