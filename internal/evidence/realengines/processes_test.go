//go:build realengines

package realengines

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
)

// stat is one process: its parent, and when it started, so that a number that is
// used again is not taken for the process of before. ok is false for one that has
// ended.
func stat(pid string) (parent int, started string, ok bool) {
	data, err := os.ReadFile(filepath.Join("/proc", pid, "stat"))
	if err != nil {
		return 0, "", false
	}
	// Behind the name: state, parent, ... and the start time as the 20th.
	f := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
	parent, _ = strconv.Atoi(f[1])
	return parent, f[19], f[0] != "Z" && f[0] != "X"
}

// family lists the processes below one, itself included, with their starts.
func family(root int) map[int]string {
	parents, starts := map[int]int{}, map[int]string{}
	paths, _ := filepath.Glob("/proc/[0-9]*")
	for _, path := range paths {
		name := filepath.Base(path)
		if parent, started, ok := stat(name); ok {
			pid, _ := strconv.Atoi(name)
			parents[pid], starts[pid] = parent, started
		}
	}
	out := map[int]string{}
	for pid := range parents {
		for p := pid; p > 1; p = parents[p] {
			if p == root {
				out[pid] = starts[pid]
			}
		}
	}
	return out
}

// witness collects the processes below one for as long as it runs: who has lost
// its parent by the end is found no more.
type witness struct {
	seen map[int]string
	quit chan struct{}
	done chan struct{}
}

func watch(root int) *witness {
	w := &witness{seen: map[int]string{}, quit: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(w.done)
		for {
			maps.Copy(w.seen, family(root))
			select {
			case <-w.quit:
				return
			case <-time.After(500 * time.Millisecond):
			}
		}
	}()
	return w
}

// all ends the watch and returns whom it saw.
func (w *witness) all() map[int]string {
	close(w.quit)
	<-w.done
	return w.seen
}

// gone waits until no process of those is left, which is an error after ten
// seconds; on a machine where more than twice as many processes want to run as
// there are processors, dying takes its turn with the others, and that is allowed
// for.
func gone(t *testing.T, was map[int]string) {
	t.Helper()
	limit := time.Duration(10 * max(1, loadPerProcessor()/2) * float64(time.Second))
	start := time.Now()
	var late []string
	for ; ; time.Sleep(100 * time.Millisecond) {
		var left []string
		for pid, started := range was {
			if _, now, ok := stat(strconv.Itoa(pid)); ok && now == started {
				left = append(left, describe(pid))
			}
		}
		took := time.Since(start)
		if len(left) == 0 || took > 4*limit {
			t.Logf("%d of %d processes are left after %v", len(left), len(was), took.Round(100*time.Millisecond))
			break
		}
		if took > limit {
			late = left
		}
	}
	if late != nil {
		t.Errorf("left after more than %v: %q", limit, late)
	}
}

// describe says which process that is: its state, its parent and its command.
func describe(pid int) string {
	state, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	args, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
	return fmt.Sprintf("%.40s: %.120s", state, bytes.ReplaceAll(args, []byte{0}, []byte{' '}))
}

// loadPerProcessor is how many processes wanted to run in the last minute, for
// each processor; 0 where that is not known.
func loadPerProcessor() float64 {
	data, _ := os.ReadFile("/proc/loadavg")
	load, _, _ := strings.Cut(string(data), " ")
	n, _ := strconv.ParseFloat(load, 64)
	return n / float64(runtime.NumCPU())
}

// tooBusy ends a test that did not get on: as a failure, or as skipped on a
// machine where so many processes want to run that it says nothing of planner.
func tooBusy(t *testing.T, format string, args ...any) {
	t.Helper()
	if load := loadPerProcessor(); load > 3 {
		t.Skipf("SKIPPED: %.1f processes want to run for each processor: "+format, append([]any{load}, args...)...)
	}
	t.Fatalf(format, args...)
}

// alone checks that this process has no child left.
func alone(t *testing.T) {
	t.Helper()
	if f := family(os.Getpid()); len(f) != 1 {
		t.Errorf("processes %v are left", f)
	}
}
