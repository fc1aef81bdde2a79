package enginetest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// alive lists the processes that have an entry in their environment, this one
// excluded and those that ended and wait for their parent.
func alive(entry string) []int {
	paths, _ := filepath.Glob("/proc/[0-9]*/environ")
	var out []int
	for _, path := range paths {
		data, err := os.ReadFile(path) // empty for those that ended
		if err != nil || !bytes.Contains(append([]byte{0}, data...), []byte("\x00"+entry+"\x00")) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err == nil && pid != os.Getpid() {
			out = append(out, pid)
		}
	}
	return out
}

// NothingLeft waits until no process has the entry in its environment, and fails a test
// with those that still do after limit.
func NothingLeft(t testing.TB, entry string, limit time.Duration) {
	t.Helper()
	left := alive(entry)
	for start := time.Now(); len(left) > 0 && time.Since(start) < limit; left = alive(entry) {
		time.Sleep(50 * time.Millisecond)
	}
	for _, pid := range left {
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)) // empty for one that ends now
		t.Errorf("process %d is left: %q", pid, line)
	}
}
