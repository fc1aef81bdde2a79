package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"planner/internal/note"
	"planner/sweep"
	"planner/sweep/measure"
)

// partRun is one part of a run, with the job that runs it.
type partRun struct {
	sweep.Part
	folder sweep.Folder
	// seen is the journal as far as it has been read, size how many bytes that is; taken says which
	// measurements have been handed out.
	seen  []measure.Measurement
	taken []bool
	size  int
	// known are the part's jobs that the scheduler lists, job is the one that is followed, nil for
	// none. attempt counts the jobs since the part last made progress, tried is when one was last
	// submitted.
	known   []JobStatus
	job     *JobStatus
	attempt int
	tried   time.Time
	// lines is how long the journal was before the job, silent the time since which the scheduler
	// does not know the job, or says that it ended.
	lines  int
	silent time.Time
	// checked says that failures of an earlier process have been looked for.
	checked bool
	// whole says that the last stages have been asked for as well.
	whole bool
	// failed says why the part will never be measured, cut why not by this process.
	failed, cut string
	waiting     []*ask
	// spent is the GPU hours of the part's jobs, as last counted.
	spent   float64
	counted time.Time
}

// stop notes why no more of the part is measured: for good, or, if a disk is full, by this process.
func (p *partRun) stop(why string) {
	if strings.Contains(why, syscall.ENOSPC.Error()) || strings.Contains(why, syscall.EDQUOT.Error()) {
		p.cut = why
		return
	}
	p.failed = why
}

// forget drops failed engines from the end of the journal, so that they are tried again.
func (p *partRun) forget() error {
	if !p.folder.Has(sweep.JournalFile) {
		return nil
	}
	err := p.folder.ForgetFailures()
	p.read()
	return err
}

func (p *partRun) submitted(id string) {
	p.job, p.lines, p.silent = &JobStatus{ID: id}, len(p.seen), time.Time{}
	p.attempt++
}

// progressed reports whether the last job has measured anything; if so, attempts count anew.
func (p *partRun) progressed() bool {
	if len(p.seen) <= p.lines {
		return false
	}
	p.attempt = 0
	return true
}

// update takes what the scheduler says about the part's job, nil if it knows of none, and puts any
// news in words.
func (p *partRun) update(now *JobStatus) string {
	if now != nil && p.job == nil && now.active() && p.failed == "" {
		p.submitted(now.ID) // of an earlier process
	}
	j := p.job
	switch {
	case j == nil:
		return ""
	case now != nil && (now.ID != j.ID || now.active()):
		p.silent = time.Time{}
	case p.silent.IsZero():
		p.silent = time.Now()
	}
	if now == nil {
		j.State, j.Reason = Ended, gone
	}
	if now == nil || now.ID != j.ID {
		return ""
	}
	was := *j
	*j = *now
	switch {
	case now.State == Running && was.State != Running:
		return fmt.Sprintf("job %s (%s) runs on %s", j.ID, p.Name, now.Node)
	case now.State == Queued && now.Reason != was.Reason && now.Reason != "" && now.Reason != "None":
		return fmt.Sprintf("job %s (%s) waits: %s", j.ID, p.Name, now.Reason)
	}
	return ""
}

// gone is the reason given for the end of a job that the scheduler no longer knows.
const gone = "the scheduler knows nothing of it any more"

// settling is how long a job must have been gone before that counts, so that its last writes are
// seen on network file systems, too, and a job that is requeued is not taken for dead.
const settling = 5 * time.Second

// left reports whether the part's job will do no more.
func (p *partRun) left(fresh bool) bool {
	if e := p.ending(); e != nil && (e.Done || e.Failure != "") {
		return true
	}
	return fresh && (p.job.State == Hopeless || !p.silent.IsZero() && time.Since(p.silent) > settling)
}

// cutShort matches the reasons of jobs that did not end by themselves.
var cutShort = regexp.MustCompile(`(?i)timeout|node_fail|preempted|boot_fail|deadline|evicted|shutdown|disruption|` + gone)

// ending says how the last process of the part ended, nil if it did not say or if not all that it
// wrote has been seen yet.
func (p *partRun) ending() *sweep.Ending {
	e, err := p.folder.Ending()
	if err != nil {
		p.stop(err.Error())
	}
	if err != nil || e == nil || e.Lines > len(p.seen) {
		return nil
	}
	return e
}

// again lets engines be tried again whose failure ends the journal, if nobody has been told of it:
// a run is resumed for that.
func (p *partRun) again() bool {
	if p.checked {
		return false
	}
	p.checked = true
	n := len(p.seen)
	if n == 0 || p.taken[n-1] || !measure.Broke(p.seen[n-1].Rejected) {
		return false
	}
	if err := errors.Join(p.folder.Begin(), p.forget()); err != nil {
		p.stop(err.Error())
	}
	return true
}

// wanted reports whether the part has something left to do. If it ended without trials that are
// waited for, it is asked for its last stages.
func (p *partRun) wanted() bool {
	e := p.ending()
	switch {
	case p.failed != "":
		return false
	case e == nil || !e.Done:
		return true
	case len(p.waiting) == 0:
		return false
	case e.Whole:
		p.failed = "the part has other trials than the run asks for: its job ran another version of planner"
		return false
	}
	p.whole = true
	return true
}

// read reads what is new in the journal, and reports whether anything is.
func (p *partRun) read() bool {
	path := p.folder.File(sweep.JournalFile)
	info, err := os.Stat(path)
	if err != nil || info.Size() == int64(p.size) {
		return false
	}
	if info.Size() < int64(p.size) { // failures at its end were dropped
		p.seen, p.size = nil, 0
	}
	more, size, err := sweep.ReadJournalFrom(path, p.size)
	if err != nil {
		p.stop(err.Error())
		return true
	}
	p.seen, p.size = append(p.seen, more...), size
	p.taken = append(p.taken, make([]bool, max(len(p.seen)-len(p.taken), 0))...)[:len(p.seen)]
	return len(more) > 0
}

// take returns the measurement of a trial that nobody has taken yet; nil if there is none.
func (p *partRun) take(t *measure.Trial) *measure.Measurement {
	for i := range p.seen {
		if m := p.seen[i]; !p.taken[i] && sweep.Measures(&m, t) {
			p.taken[i] = true
			return &m
		}
	}
	return nil
}

func (p *partRun) hours() float64 {
	if time.Since(p.counted) < most || !p.counted.IsZero() && p.job == nil {
		return p.spent
	}
	p.counted = time.Now()
	if all, err := p.folder.Attempts(); err == nil {
		p.spent = 0
		for _, a := range all {
			p.spent += a.Seconds / 3600 * float64(p.GPUs)
		}
	}
	return p.spent
}

func (p *partRun) lastWords() string {
	file, err := os.Open(filepath.Join(p.folder.Path, JobLog))
	if err != nil {
		return "it printed nothing"
	}
	defer file.Close()
	const tail = 4096
	info, err := file.Stat()
	if err != nil {
		return ""
	}
	buf := make([]byte, tail)
	n, _ := file.ReadAt(buf, max(info.Size()-tail, 0))
	lines := strings.Split(strings.TrimSpace(string(buf[:n])), "\n")
	if last := strings.TrimSpace(lines[len(lines)-1]); last != "" {
		return strings.TrimPrefix(last, "planner: ")
	}
	return "it printed nothing"
}

// ask waits for the measurement of a trial.
type ask struct {
	ctx   context.Context
	trial measure.Trial
	// measured is the part's measurement; done receives the error, nil if there is one.
	measured measure.Measurement
	done     chan error
}

// Fetch waits for the measurement of a trial.
func (f *Follower) Fetch(ctx context.Context, t measure.Trial) (measure.Measurement, error) {
	a := &ask{ctx: ctx, trial: t, done: make(chan error, 1)}
	select {
	case f.asks <- a:
		select {
		case err := <-a.done:
			return a.measured, err
		case <-f.ended:
		}
	case <-f.ended:
	}
	return measure.Measurement{}, fmt.Errorf("%w in trial %d", sweep.ErrInterrupted, t.Number)
}

// reply answers with what a part has measured, or that it will measure no more.
func (f *Follower) reply(p *partRun) bool {
	before := len(p.waiting)
	p.waiting = slices.DeleteFunc(p.waiting, func(a *ask) bool {
		m, ready, err := f.find(p, a.trial)
		if a.ctx.Err() != nil {
			ready, err = true, fmt.Errorf("%w in trial %d", sweep.ErrInterrupted, a.trial.Number)
		}
		if ready {
			a.measured = m
			a.done <- err
		}
		return ready
	})
	return len(p.waiting) != before
}

func (f *Follower) find(p *partRun, t measure.Trial) (m measure.Measurement, ready bool, err error) {
	if taken := p.take(&t); taken != nil {
		if taken.Rejected.Text == "" || taken.Trial.Number > 0 {
			seen, err := f.Folder.Gather(p.Name, taken.Trial.Number, t.Number)
			if err != nil {
				return m, true, err
			}
			if seen != nil {
				f.See.See(*seen)
			}
		}
		taken.Trial = t
		return *taken, true, nil
	}
	switch {
	case p.failed != "":
		return measure.Measurement{Trial: t, Rejected: note.Because(note.NotPlaced, f.Launcher, p.failed)}, true, nil
	case p.cut != "" && f.active() == 0:
		return m, true, fmt.Errorf("%w: %s", sweep.ErrInterrupted, p.cut)
	}
	return m, false, nil
}
