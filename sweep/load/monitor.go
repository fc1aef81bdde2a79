package load

import (
	"sync"
	"time"
)

const (
	// beat is how often the process looks at the clock to notice that it stood
	// still, and stallLimit what it calls so.
	beat       = 50 * time.Millisecond
	stallLimit = 250 * time.Millisecond
	// askEvery is how often the client asks whether to abort.
	askEvery = 250 * time.Millisecond
)

// monitor looks after a running load test: it ends each second of the record,
// asks whether the trial is to be aborted, and notices when the process stood
// still. What it found may be read once it was stopped.
type monitor struct {
	test   *Test
	before resources
	quit   chan struct{}
	over   sync.WaitGroup
	stalls []Stall
	// aborted is why the trial was ended early.
	aborted string
}

// newMonitor starts to look after t.
func newMonitor(t *Test) *monitor {
	m := &monitor{test: t, before: readResources(), quit: make(chan struct{})}
	m.over.Go(m.look)
	return m
}

func (m *monitor) look() {
	tick := time.NewTicker(beat)
	defer tick.Stop()
	last, second, asked := time.Now(), time.Now(), time.Now()
	for {
		select {
		case <-m.quit:
			return
		case <-tick.C:
		}
		now := time.Now()
		if late := now.Sub(last) - beat; late > stallLimit {
			m.stalls = append(m.stalls, Stall{At: last.Sub(m.test.recorder.start), Length: late})
		}
		last = now
		if d := now.Sub(second); d >= time.Second {
			m.test.recorder.cut(now, d)
			second = now
		}
		if now.Sub(asked) >= askEvery {
			asked = now
			m.ask(now)
		}
	}
}

// ask ends the trial if the client says so.
func (m *monitor) ask(now time.Time) {
	t := m.test
	if t.client.Abort == nil || m.aborted != "" {
		return
	}
	m.aborted = t.client.Abort(now.Sub(t.recorder.start), t.recorder.sent)
	if m.aborted != "" {
		t.cancel(errAborted)
	}
}

func (m *monitor) stop() {
	close(m.quit)
	m.over.Wait()
}
