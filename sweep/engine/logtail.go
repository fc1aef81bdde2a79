package engine

import (
	"bytes"
	"io"
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

// tail follows the log of an engine as it grows.
type tail struct {
	adapter *adapter
	quit    chan struct{}
	done    chan struct{}

	mu sync.Mutex
	// All below is guarded by mu.
	verdict *verdict
	facts   map[string]string
	// stage is the one under way, an index into stageOrder, and since when.
	stage  int
	since  time.Time
	stages []Stage
	// line is the last line that holds text, grown when the log last grew.
	line  string
	grown time.Time
}

// lookEvery is how often the log is looked at.
const lookEvery = 100 * time.Millisecond

// follow begins to read the file at path, from its start.
func follow(path string, a *adapter) (*tail, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	t := &tail{adapter: a, since: now, grown: now, quit: make(chan struct{}), done: make(chan struct{}),
		verdict: newVerdict(), facts: map[string]string{}}
	go t.run(f)
	return t, nil
}

// stop reads what is left of the log and ends.
func (t *tail) stop() {
	close(t.quit)
	<-t.done
}

func (t *tail) run(f *os.File) {
	defer close(t.done)
	defer f.Close()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	var rest []byte
	for last := false; ; {
		rest = t.read(f, rest)
		if last {
			t.take(rest)
			return
		}
		select {
		case <-tick.C:
		case <-t.quit:
			last = true
		}
	}
}

// longestLine bounds what is looked at of one line.
const longestLine = 16 << 10

// read takes in all whole lines and returns what comes behind the last.
func (t *tail) read(f io.Reader, rest []byte) []byte {
	buf := make([]byte, 32<<10)
	for {
		n, err := f.Read(buf)
		if n == 0 || err != nil {
			return rest
		}
		t.mu.Lock()
		t.grown = time.Now()
		t.mu.Unlock()
		rest = append(rest, buf[:n]...)
		for {
			// Progress bars end their lines with a carriage return.
			end := bytes.IndexAny(rest, "\r\n")
			if end < 0 {
				break
			}
			t.take(rest[:end])
			rest = rest[end+1:]
		}
		if len(rest) > longestLine {
			t.take(rest)
			rest = nil
		}
	}
}

// escapes are colours and cursor movements.
var escapes = regexp.MustCompile("\x1b\\[[0-9;?]*[A-Za-z]")

// take looks at one line.
func (t *tail) take(raw []byte) {
	line := strings.TrimSpace(escapes.ReplaceAllString(strings.ToValidUTF8(string(raw[:min(len(raw), longestLine)]), ""), ""))
	if line == "" {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.line = line
	for _, m := range t.adapter.marks {
		if strings.Contains(line, m.text) {
			t.finish(m.ends, time.Now())
		}
	}
	for _, n := range t.adapter.notes {
		if m := n.pattern.FindStringSubmatch(line); m != nil {
			t.facts[n.fact] = m[1]
		}
	}
	t.verdict.add(line, stageOrder[t.stage])
}

// finish ends a stage, and those ahead of it that the engine had no line for,
// whose time is in it. A stage that is over is over, though another worker of
// the engine says so again.
func (t *tail) finish(name string, now time.Time) {
	for i := t.stage; i < len(stageOrder)-1; i++ {
		if stageOrder[i] == name {
			t.stages = append(t.stages, Stage{name, now.Sub(t.since)})
			t.stage, t.since = i+1, now
			return
		}
	}
}

// ready ends the start.
func (t *tail) ready() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.finish(stageReady, time.Now())
}

// tailState is what is known of a start at one moment.
type tailState struct {
	stage, line string
	stages      []Stage
	// quiet is for how long nothing was added to the log.
	quiet time.Duration
	facts map[string]string
}

func (t *tail) state() tailState {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := tailState{stage: stageOrder[t.stage], line: t.line, quiet: time.Since(t.grown), facts: map[string]string{}}
	s.stages = append(s.stages, t.stages...)
	for k, v := range t.facts {
		s.facts[k] = v
	}
	return s
}
