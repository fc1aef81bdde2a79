package sweep

import (
	"slices"
	"time"

	"planner/internal/list"
	"planner/sweep/measure"
)

// A Study is a question that trials answer. It chooses trials as a [Source] does, and can be asked
// at any time what it knows by then. A study is deterministic: the same measurements give the same
// proposals and the same answer, so that a run is resumed by telling a new study what its journal
// holds.
type Study interface {
	Source
	// Rejected lists the knobs that the study knows beforehand cannot run.
	Rejected() []measure.Rejection
	// Answer returns what is known by now. It is an error only if the study itself failed, which
	// says nothing about any engine.
	Answer() (Answer, error)
}

// Answer is what a study knows.
type Answer struct {
	State StudyState
	// Value is what --json prints and what a report is built from; nil if there is nothing to show
	// yet.
	Value any
}

// StudyState is the state of a study.
type StudyState int

// The states of a study.
const (
	// Unfinished studies have trials to propose still.
	Unfinished StudyState = iota
	// Done says that the question is answered.
	Done
	// Infeasible says that what was asked for is impossible.
	Infeasible
	// Undecided says that the measurements leave the question open.
	Undecided
	// Failed says that nothing could be measured, which says nothing about any limit.
	Failed
)

// ExitCode returns the exit code of a command whose study is in this state.
func (s StudyState) ExitCode() int {
	switch s {
	case Done:
		return 0
	case Infeasible:
		return 3
	case Undecided:
		return 4
	case Unfinished:
		return 130
	}
	return 1
}

// List is a source of trials that are known beforehand. It leaves out those of
// knobs that turned out not to run.
type List struct {
	Trials []measure.Trial
	// Batch is how many are proposed together; 0 means 1.
	Batch int
	// Whole ends the list at the first trial that cannot run.
	Whole bool
	// Unable are the knobs that are known beforehand not to run.
	Unable []measure.Rejection
	// Seen are the measurements so far.
	Seen []measure.Measurement

	// next is how many were proposed or left out.
	next   int
	failed []measure.Knobs
}

// Rejected lists the knobs that are known beforehand not to run.
func (l *List) Rejected() []measure.Rejection { return l.Unable }

// Planned returns how many trials are to run, and how long they are under load.
func (l *List) Planned() (trials int, load time.Duration) {
	return len(l.Trials), list.Sum(l.Trials, func(t measure.Trial) time.Duration { return t.Warmup + t.Window + t.Cooldown })
}

// Next proposes the next trials.
func (l *List) Next() []measure.Trial {
	var next []measure.Trial
	for ; l.next < len(l.Trials) && len(next) < max(l.Batch, 1); l.next++ {
		if t := l.Trials[l.next]; !slices.Contains(l.failed, t.Knobs) {
			next = append(next, t)
		}
	}
	return next
}

// Observe learns which knobs do not run.
func (l *List) Observe(m measure.Measurement) {
	l.Seen = append(l.Seen, m)
	switch {
	case m.Ran():
	case l.Whole:
		l.next = len(l.Trials)
	default:
		l.failed = append(l.failed, m.Trial.Knobs)
	}
}

// Chain is a source of stages: each is made when the one before it has no more to
// propose, so that it can build on what that one found. A stage may be nil.
type Chain struct {
	Stages []func() Source
	// Unable are the knobs that are known beforehand not to run.
	Unable []measure.Rejection
	// Seen are the measurements so far. Ended says that no stage has more to
	// propose.
	Seen  []measure.Measurement
	Ended bool

	current Source
}

// Rejected lists the knobs that are known beforehand not to run.
func (c *Chain) Rejected() []measure.Rejection { return c.Unable }

// Next proposes the next trials of the stage under way, or of the first stage after it that has
// any.
func (c *Chain) Next() []measure.Trial {
	for {
		if c.current != nil {
			if next := c.current.Next(); len(next) > 0 {
				return next
			}
		}
		if len(c.Stages) == 0 {
			c.Ended = true
			return nil
		}
		c.current, c.Stages = c.Stages[0](), c.Stages[1:]
	}
}

// Observe passes a measurement to the stage under way.
func (c *Chain) Observe(m measure.Measurement) {
	c.Seen = append(c.Seen, m)
	c.current.Observe(m)
}

// Together lets several sources run side by side: each proposal holds the next
// trials of all that have not finished, in the order of the sources. A source
// that has finished must go on proposing nothing.
type Together struct {
	Sources []Source
	// Finished is how many of them had nothing more to propose when they were last asked.
	Finished int

	// pending holds the sources of the trials that are still to be observed, in order.
	pending []int
}

// Next proposes the next trials of every source.
func (t *Together) Next() []measure.Trial {
	var all []measure.Trial
	t.Finished = 0
	for i, s := range t.Sources {
		next := s.Next()
		if len(next) == 0 {
			t.Finished++
		}
		t.pending = append(t.pending, slices.Repeat([]int{i}, len(next))...)
		all = append(all, next...)
	}
	return all
}

// Observe passes a measurement to the source that asked for it.
func (t *Together) Observe(m measure.Measurement) {
	t.Sources[t.pending[0]].Observe(m)
	t.pending = t.pending[1:]
}
