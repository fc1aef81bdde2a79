package engine

import "strings"

// Class says why an engine failed.
type Class string

// The classes of failures, beside those of the memory and the arguments that
// the table of rules names.
const (
	// Unknown: it ended without a line that is known.
	Unknown Class = "unknown"
	// PortTaken: somebody else listens on its port.
	PortTaken Class = "net.port"
	// Killed: by signal 9 without a word, as the host's memory killer does.
	Killed Class = "mem.kill"
	// Crashed: it ended by a signal that is a fault of its own.
	Crashed Class = "crash"
	// Ended: it ended by itself with status 0 though nobody asked.
	Ended Class = "exit.early"
	// Missing: its program is not there or cannot be started.
	Missing Class = "start.program"
	// Stalled: it added nothing to its log for too long while starting.
	Stalled Class = "start.stall"
	// Slow: it was not ready in time.
	Slow Class = "start.timeout"
	// Mute: it said that it was ready and did not answer a request.
	Mute Class = "start.mute"
	// WrongModel: it serves no model of the name asked for.
	WrongModel Class = "args.model"
	// Drifted: it runs with other knobs than those it was given.
	Drifted Class = "args.changed"
	// Hung: it went on running and answered nothing any more.
	Hung Class = "hang"
	// Unreachable: nobody answers at the URL of a server that was to be there.
	Unreachable Class = "net.unreachable"
)

// way says which values of a knob share a failure with the value that failed.
type way int

const (
	whatever way = iota // the knob has nothing to do with it
	atLeast             // larger values fail too
	atMost              // smaller values fail too
	equal               // only the same value is known to fail
)

// reach says which other knob sets of the same hardware and parallel degrees
// fail for the same reason. The zero value says that all do.
type reach struct{ share, seqs, tokens, length way }

// self reaches nothing but the same knobs.
var self = reach{equal, equal, equal, equal}

// rule recognises one class of failure by texts that one line of the log holds.
type rule struct {
	class Class
	all   []string
	reach reach
	// exit is the exit status that must go with it; 0 means any.
	exit int
	// again: it may pass when it is tried once more.
	again bool
}

// rules are looked at in order: the first that any line of the log matches is
// the cause. Messages of wrappers are not among them. They are those of vLLM
// 0.10 to 0.32 unless another engine is named.
var rules = []rule{
	{class: "mem.busy", all: []string{"Free memory on device", "is less than desired GPU memory utilization"}, reach: reach{atLeast, whatever, whatever, whatever}, again: true},
	{class: "mem.no_kv", all: []string{"No available memory for the cache blocks"}, reach: reach{atMost, atLeast, atLeast, whatever}},
	{class: "mem.no_kv", all: []string{"Not enough memory. Please try to increase --mem-fraction-static"}, reach: reach{atMost, atLeast, atLeast, whatever}}, // SGLang
	{class: "mem.len", all: []string{"To serve at least one request with the model", "max seq len"}, reach: reach{atMost, atLeast, atLeast, atLeast}},
	{class: "mem.autofit", all: []string{"Cannot auto-fit max_model_len"}, reach: reach{atMost, atLeast, atLeast, whatever}},
	{class: "mem.weights", all: []string{"Failed to load model - not enough GPU memory"}},
	{class: "mem.sampler", all: []string{"CUDA out of memory occurred when warming up sampler with"}, reach: reach{atLeast, atLeast, whatever, whatever}},
	{class: memOOM, all: []string{"CUDA out of memory. Tried to allocate"}, reach: reach{atLeast, atLeast, atLeast, whatever}},
	{class: memOOM, all: []string{"HIP out of memory. Tried to allocate"}, reach: reach{atLeast, atLeast, atLeast, whatever}},
	{class: memOOM, all: []string{"Not enough memory to handle", "prefill tokens"}, reach: reach{atMost, whatever, atLeast, whatever}}, // TGI
	{class: memOOM, all: []string{"failed to allocate", "buffer"}, reach: reach{whatever, atLeast, atLeast, atLeast}},                  // llama.cpp
	{class: memOOM, all: []string{"OutOfMemoryError"}, reach: reach{atLeast, atLeast, atLeast, whatever}},
	{class: "mem.race", all: []string{"Error in memory profiling. Initial free memory"}, reach: self, again: true},
	{class: "mem.cpu", all: []string{"Available memory on node", "is less than desired CPU memory utilization"}, reach: reach{atLeast, whatever, whatever, whatever}},
	{class: "mem.cpu", all: []string{"on kv cache allocation is less than requested memory for kv"}, reach: reach{atLeast, whatever, whatever, whatever}},
	{class: "args.len", all: []string{"User-specified max_model_len", "is greater than the derived max_model_len"}, reach: reach{whatever, whatever, whatever, atLeast}},
	{class: "args.tokens", all: []string{"max_num_batched_tokens", "is smaller than max_model_len"}, reach: reach{whatever, whatever, atMost, atLeast}},
	{class: "args.seqs", all: []string{"max_num_batched_tokens", "must be greater than or equal to max_num_seqs"}, reach: reach{whatever, atLeast, atMost, whatever}},
	{class: "args.tp", all: []string{"Total number of attention heads", "must be divisible by tensor parallel size"}},
	{class: "args.quant", all: []string{"Quantization method specified in the model config", "does not match"}},
	{class: "args.quant", all: []string{"Unknown quantization method"}},
	{class: "args.dtype", all: []string{"The model type", "does not support float16"}},
	{class: "args.unsupported", all: []string{"Concurrent Partial Prefill is not supported"}},
	{class: PortTaken, all: []string{"address already in use"}, reach: self, again: true},
	{class: PortTaken, all: []string{"couldn't bind HTTP server socket"}, reach: self, again: true}, // llama-server
	{class: "net.hub", all: []string{"gated repo"}},
	{class: "net.hub", all: []string{"401 Client Error", "huggingface"}},
	{class: "net.hub", all: []string{"couldn't connect to 'https://huggingface.co'"}},
	{class: "net.hub", all: []string{"LocalEntryNotFoundError"}},
	{class: "disk.full", all: []string{"No space left on device"}},
	{class: Slow, all: []string{"Timed out waiting for engine core processes to start"}, reach: self, again: true},
	{class: "args.parse", all: []string{"error: unrecognized arguments"}, reach: self},
	{class: "args.parse", all: []string{"error: invalid argument"}, reach: self}, // llama-server
	{class: "args.parse", all: []string{"validation error"}, reach: self},
	{class: "model.load", all: []string{"error loading model"}}, // llama-server
	{class: "model.load", all: []string{"Unrecognized model in"}},
	{class: "args.unsupported", all: []string{"NotImplementedError"}, reach: self},
	// What depends on the exit status comes last: it would hide what is behind it.
	{class: "args.parse", all: []string{"error:"}, reach: self, exit: 2},
}

// memOOM is an allocation that failed; the stage it failed in decides what else
// fails.
const memOOM Class = "mem.oom"

// wrappers are messages about a failure elsewhere.
var wrappers = []string{
	"EngineCore failed to start", "Engine core initialization failed. See root cause above",
	"WorkerProc initialization failed due to an exception in a background process",
	"EngineCore encountered a fatal error", "Traceback (most recent call last)",
	"Application startup failed", "During handling of the above exception",
}

func isWrapper(line string) bool {
	for _, w := range wrappers {
		if strings.Contains(line, w) {
			return true
		}
	}
	return false
}
