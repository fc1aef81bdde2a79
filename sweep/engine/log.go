package engine

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"strings"
	"sync"
	"time"
)

// Stages of a start, named for what goes on in them.
const (
	stageStart   = "start"
	stageWeights = "weights"
	stageProfile = "profile"
	stageGraphs  = "graphs"
	stageReady   = "ready"
	// stageServing is what comes behind the start.
	stageServing = "serving"
)

var stageOrder = []string{stageStart, stageWeights, stageProfile, stageGraphs, stageReady, stageServing}

// Stage is a part of a start and how long it took.
type Stage struct {
	Name string        `json:"stage"`
	Took time.Duration `json:"took_s"`
}

// logState is what the log of an engine has told so far.
type logState struct {
	adapter  *adapter
	patterns map[string]*regexp.Regexp
	facts    map[string]string
	// stage is the one under way, an index into stageOrder, and since when; stages
	// are those that are over.
	stage  int
	since  time.Time
	stages []Stage
	// line is the last line that holds text, grown when the log last grew.
	line  string
	grown time.Time
	// match is the place in rules of the best match so far, len(rules) for none;
	// cause is its line and causeStage the stage that it came in. suspect is the last
	// line that looks like an error and is no wrapper.
	match                      int
	cause, causeStage, suspect string
	// maxModelLen is the bound that a line gave on it.
	maxModelLen int
}

func newLogState(a *adapter) logState {
	now := time.Now()
	s := logState{adapter: a, patterns: map[string]*regexp.Regexp{}, facts: map[string]string{}, since: now, grown: now, match: len(rules)}
	for fact, pattern := range a.logFacts {
		s.patterns[fact] = regexp.MustCompile(pattern)
	}
	return s
}

// longestLine bounds what is looked at of one line.
const longestLine = 16 << 10

// escapes are colours and cursor movements.
var escapes = regexp.MustCompile("\x1b\\[[0-9;?]*[A-Za-z]")

// add looks at one line.
func (s *logState) add(raw []byte) {
	line := strings.TrimSpace(escapes.ReplaceAllString(strings.ToValidUTF8(string(raw[:min(len(raw), longestLine)]), ""), ""))
	if line == "" {
		return
	}
	s.line = line
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

// finish ends a stage, and those ahead of it that the engine had no line for,
// whose time is in it. A stage that is over is over, though another worker of
// the engine says so again.
func (s *logState) finish(name string, now time.Time) {
	for i := s.stage; i < len(stageOrder)-1; i++ {
		if stageOrder[i] == name {
			s.stages = append(s.stages, Stage{name, now.Sub(s.since)})
			s.stage, s.since = i+1, now
			return
		}
	}
}

// logFollower reads the log of an engine as it grows.
type logFollower struct {
	quit, done chan struct{}
	mu         sync.Mutex
	// state is guarded by mu.
	state logState
}

// lookEvery is how often the log is looked at.
const lookEvery = 100 * time.Millisecond

// follow begins to read the file at path, from its start.
func follow(path string, a *adapter) (*logFollower, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	l := &logFollower{quit: make(chan struct{}), done: make(chan struct{}), state: newLogState(a)}
	go l.run(f)
	return l, nil
}

// stop reads what is left of the log and ends.
func (l *logFollower) stop() {
	close(l.quit)
	<-l.done
}

// read is what is known now.
func (l *logFollower) read() logState {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.state
	s.facts = maps.Clone(s.facts)
	return s
}

// ready ends the start, and returns its stages.
func (l *logFollower) ready() []Stage {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state.finish(stageReady, time.Now())
	return l.state.stages
}

func (l *logFollower) run(f *os.File) {
	defer close(l.done)
	defer f.Close()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	var rest []byte
	for last := false; !last; {
		select {
		case <-tick.C:
		case <-l.quit:
			last = true
		}
		rest = l.take(f, rest)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state.add(rest)
}

// take takes in all whole lines and returns what comes behind the last.
func (l *logFollower) take(f io.Reader, rest []byte) []byte {
	buf := make([]byte, 32<<10)
	for {
		n, err := f.Read(buf)
		if n == 0 || err != nil {
			return rest
		}
		rest = append(rest, buf[:n]...)
		l.mu.Lock()
		l.state.grown = time.Now()
		for {
			// Progress bars end their lines with a carriage return.
			end := bytes.IndexAny(rest, "\r\n")
			if end < 0 {
				break
			}
			l.state.add(rest[:end])
			rest = rest[end+1:]
		}
		if len(rest) > longestLine {
			l.state.add(rest)
			rest = nil
		}
		l.mu.Unlock()
	}
}

// tailKept is how much is kept of the end of a log that outgrows its limit.
const tailKept = 64 << 10

// copyLog writes what comes to the log, up to limit bytes; of the rest it keeps
// the end, and writes that when the engine is gone. It goes on reading whatever
// happens, so that a full disk or a flood of lines does not stop the engine.
func copyLog(log io.Writer, in io.Reader, limit int64) {
	// Plain writes: what files can do better among themselves, pipes cannot.
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
