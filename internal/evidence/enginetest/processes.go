package enginetest

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// Alive lists the processes that have an entry in their environment, this one
// excluded and those that ended and wait for their parent.
func Alive(entry string) []int {
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

// Gone waits until no process has the entry in its environment, and returns
// those that still do after limit.
func Gone(entry string, limit time.Duration) []int {
	for start := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		left := Alive(entry)
		if len(left) == 0 || time.Since(start) > limit {
			return left
		}
	}
}
