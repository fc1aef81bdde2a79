// Package programtest builds planner and runs it as its users do, for tests.
package programtest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"sync"
)

// Build builds a package or a file of Go in dir, so that it runs in an empty image, too,
// and returns the path of the program.
func Build(dir, source string) (program string, err error) {
	program = filepath.Join(dir, strings.TrimSuffix(path.Base(source), ".go"))
	cmd := exec.Command("go", "build", "-pgo=off", "-o", program, source) // packages as the tests have them
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w: %s", source, err, out)
	}
	return program, nil
}

// Planner is the package of the program.
const Planner = "planner/cmd/planner"

// ExitCode is the exit code of a command that ended with err; -1 where it has none.
func ExitCode(err error) int {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.ExitCode()
	}
	return -1
}

// A Transcript keeps what a program writes, to be read meanwhile.
type Transcript struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (x *Transcript) Write(p []byte) (int, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.text.Write(p)
}

// String is what was written so far.
func (x *Transcript) String() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.text.String()
}
