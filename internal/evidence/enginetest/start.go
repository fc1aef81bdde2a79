package enginetest

import (
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// Fatal are the last lines of engines that did not start, by the name of the
// misbehaviour that prints them: the cause, and what is printed around it.
var Fatal = map[string]string{
	"no-kv": "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.",
	"too-long": "ValueError: To serve at least one request with the model's max seq len (8192), (4.00 GiB KV cache is needed, which is larger than the available KV cache memory (1.50 GiB). " +
		"Based on the available memory, the estimated maximum model length is 3,072. Try increasing `gpu_memory_utilization`.",
	"busy": "ValueError: Free memory on device cuda:0 (10.2/79.11 GiB) on startup is less than desired GPU memory utilization (0.9, 71.2 GiB).",
	"oom":  "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.11 GiB of which 1.2 GiB is free.",
}

// start misbehaves before the engine listens; over says that it ended.
func (f *fake) start() (code int, over bool) {
	f.say("non-default args: {'max_num_seqs': %d}", f.seqs)
	f.say("Starting to load model fake...")
	if cause, ok := Fatal[f.misbehave]; ok {
		f.say("Model loading took 1.5 GiB memory and 0.1 seconds")
		f.say("(EngineCore pid=7) ERROR 11-21 10:00:00 [core.py:1] EngineCore failed to start.")
		f.say("(EngineCore pid=7) %s", cause)
		f.say("RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}")
		return 1, true
	}
	f.say("Model loading took 1.5 GiB memory and 0.1 seconds")
	f.say("GPU KV cache size: 10,240 tokens")
	f.say("Graph capturing finished in 1 secs, took 0.1 GiB")
	switch f.misbehave {
	case "exits-0":
		return 0, true
	case "exits-1":
		f.say("RuntimeError: something that nobody has seen before")
		f.say("Engine core initialization failed. See root cause above.")
		return 1, true
	case "bad-option":
		f.say("usage: fake [options]\nfake: error: unrecognized arguments: --misbehave")
		return 2, true
	case "killed":
		f.die()
	case "crashes":
		_ = syscall.Exec("/bin/sh", []string{"sh", "-c", "kill -SEGV $$"}, nil)
	case "port-once", "port-then-dies":
		if f.first() {
			f.say("OSError: [Errno 98] error while attempting to bind on address: address already in use")
			return 1, true
		}
		if f.misbehave == "port-then-dies" {
			f.misbehave, f.state = "dies-once", f.state+"-2"
		}
	case "dies-told": // by a file at the path of its state
		go func() {
			for os.Remove(f.state) != nil {
				time.Sleep(10 * time.Millisecond)
			}
			f.die()
		}()
	case "never-ready-chatty", "slow-start":
		go func() {
			for range time.Tick(100 * time.Millisecond) {
				f.say("Loading safetensors checkpoint shards")
			}
		}()
	case "ignores-term":
		signal.Ignore(syscall.SIGTERM)
	case "strays", "strays-dies":
		f.leave()
	case "floods":
		go func() {
			line := strings.Repeat("the same line again and again ", 40)
			for range time.Tick(time.Millisecond) {
				f.say("%s", line)
			}
		}()
	}
	return 0, false
}

// leave starts processes that outlive their parent: in the group, in a session
// of their own, and two generations down, all holding the log open.
func (f *fake) leave() {
	for _, script := range []string{
		"sleep 300", "trap '' TERM; sleep 300 & wait", "(sleep 300 &) ; sleep 300",
	} {
		for _, session := range []bool{false, true} {
			cmd := exec.Command("sh", "-c", script)
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: session}
			cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
			if err := cmd.Start(); err != nil {
				f.say("start: %v", err)
			}
		}
	}
}
