package engine

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"planner/internal/secret"
)

// Stages of a start, named for what goes on in them.
const (
	stageStart   = "start"
	stageWeights = "weights"
	stageProfile = "profile"
	stageGraphs  = "graphs"
	stageReady   = "ready"
	// stageServing follows the start.
	stageServing = "serving"
)

var stageOrder = []string{stageStart, stageWeights, stageProfile, stageGraphs, stageReady, stageServing}

// StartStage is a part of a start and how long it took.
type StartStage struct {
	Name string        `json:"stage"`
	Took time.Duration `json:"took_s"`
}

// logState is what the log of an engine has shown so far.
type logState struct {
	adapter  *adapter
	secrets  secret.Set
	patterns map[string]*regexp.Regexp
	facts    map[string]string
	// stage is the current stage, an index into stageOrder, and since is when it began; stages are
	// those that are over.
	stage  int
	since  time.Time
	stages []StartStage
	// line is the last non-blank line, grown when the log last grew.
	line  string
	grown time.Time
	// match is the index in rules of the best match so far, len(rules) for none; cause is its line
	// and causeStage the stage it came in. suspect is the last line that looks like an error and is
	// not a wrapper's.
	match                      int
	cause, causeStage, suspect string
	// maxModelLen is the bound on it that a line gave, in tokens.
	maxModelLen int
	// compiled counts lines about kernels that were compiled while requests waited.
	compiled int
}

func newLogState(a *adapter) logState {
	now := time.Now()
	s := logState{adapter: a, patterns: map[string]*regexp.Regexp{}, facts: map[string]string{}, since: now, grown: now, match: len(rules)}
	for fact, pattern := range a.logFacts {
		s.patterns[fact] = regexp.MustCompile(pattern)
	}
	return s
}

// longestLine bounds how much of one line is looked at, in bytes.
const longestLine = 16 << 10

// escapes matches colours and cursor movements.
var escapes = regexp.MustCompile("\x1b\\[[0-9;?]*[A-Za-z]")

func (s *logState) add(raw []byte) {
	line := strings.TrimSpace(escapes.ReplaceAllString(strings.ToValidUTF8(string(raw[:min(len(raw), longestLine)]), ""), ""))
	if line == "" {
		return
	}
	line = s.secrets.Hide(line)
	s.line = line
	if s.adapter.compiles != "" && strings.Contains(line, s.adapter.compiles) {
		s.compiled++
	}
	for text, stage := range s.adapter.stageEnds {
		if strings.Contains(line, text) {
			s.finish(stage, time.Now())
		}
	}
	for fact, pattern := range s.patterns {
		if m := pattern.FindStringSubmatch(line); m != nil {
			s.facts[fact] = m[1]
		}
	}
	s.findCause(line)
}

// finish ends a stage, and with it any stages before it that the engine had no line for, whose time
// it includes. A stage that is over stays over, even if another worker of the engine reports it
// again.
func (s *logState) finish(name string, now time.Time) {
	if i := slices.Index(stageOrder, name); i >= s.stage {
		s.stages = append(s.stages, StartStage{name, now.Sub(s.since)})
		s.stage, s.since = i+1, now
	}
}

// logReader reads the log of an engine as it grows, each time it is asked.
type logReader struct {
	mu sync.Mutex
	// mu guards the fields below. rest is what came after the last whole line.
	file  *os.File
	rest  []byte
	state logState
}

// openLog opens the log at path of an engine of kind a, of which it reads what is yet to be written; secrets are
// hidden in what is read.
func openLog(path string, a *adapter, secrets secret.Set) (*logReader, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	if _, err := f.Seek(0, io.SeekEnd); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	l := &logReader{file: f, state: newLogState(a)}
	l.state.secrets = secrets
	return l, nil
}

func (l *logReader) read() logState {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.take()
	s := l.state
	s.facts = maps.Clone(s.facts)
	return s
}

// ready ends the start and returns its stages.
func (l *logReader) ready() []StartStage {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.take()
	l.state.finish(stageReady, time.Now())
	return l.state.stages
}

func (l *logReader) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.take()
	l.state.add(l.rest)
	l.file.Close()
}

func (l *logReader) take() {
	buf := make([]byte, 32<<10)
	for {
		n, err := l.file.Read(buf)
		if n == 0 || err != nil {
			return
		}
		l.state.grown = time.Now()
		l.rest = append(l.rest, buf[:n]...)
		for {
			// Progress bars end their lines with a carriage return.
			end := bytes.IndexAny(l.rest, "\r\n")
			if end < 0 {
				break
			}
			l.state.add(l.rest[:end])
			l.rest = l.rest[end+1:]
		}
		if len(l.rest) > longestLine {
			l.state.add(l.rest)
			l.rest = nil
		}
	}
}

// tailKept is how many bytes are kept of the end of a log that outgrows its limit.
const tailKept = 64 << 10

// copyLog writes in to log, up to limit bytes; of the rest it keeps only the end, and writes that
// when the engine is gone. It goes on reading whatever happens, so that a full disk or a flood of
// lines does not stop the engine.
func copyLog(log io.Writer, in io.Reader, limit int64) {
	// Plain writes: the shortcuts between files do not work from a pipe.
	_, _ = io.CopyN(struct{ io.Writer }{log}, in, limit)
	buf := make([]byte, 32<<10)
	var tail []byte
	dropped := 0
	for {
		n, err := in.Read(buf)
		tail = append(tail, buf[:n]...)
		if over := len(tail) - tailKept; over > 0 {
			tail, dropped = append(tail[:0], tail[over:]...), dropped+over
		}
		if err != nil {
			break
		}
	}
	if dropped > 0 {
		fmt.Fprintf(log, "\n... %d bytes of the log were not kept ...\n", dropped)
	}
	_, _ = log.Write(tail)
}
