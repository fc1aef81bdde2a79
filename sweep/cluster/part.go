package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"planner/sweep"
	"planner/sweep/measure"
)

// part is one part of a run, with the job that runs it.
type part struct {
	sweep.Part
	folder sweep.Folder

	// job is the id of the job, "" for none. attempt counts those since the part last
	// got on, lines is how long its journal was before the last of them.
	job            string
	attempt, lines int
	tried          time.Time
	status         Status
	// silent is since when the scheduler knows no such job, or says that it ended.
	silent time.Time
	// checked says that failures of an earlier process were looked for.
	checked bool
	// whole says that the last stages were asked for as well.
	whole bool
	// failed says why the part will never be measured, cut why not by this process.
	failed, cut string

	// seen is the journal as far as it was read, and taken what of it was asked for.
	seen    []measure.Measurement
	size    int
	taken   []bool
	waiting []ask
	// spent are the GPU hours at the time of counted.
	spent   float64
	counted time.Time
}

// make makes the run folder of the part.
func (p *part) make() error {
	if err := os.MkdirAll(p.folder.Path, 0o700); err != nil {
		return fmt.Errorf("make run folder: %w", err)
	}
	return nil
}

// forget drops engines that failed from the end of the journal: they are tried again.
func (p *part) forget() error {
	if !p.folder.Has(sweep.JournalFile) {
		return nil
	}
	err := p.folder.ForgetFailures()
	p.read()
	return err
}

// submitted notes a job.
func (p *part) submitted(id string) {
	p.job, p.status, p.silent, p.lines = id, Status{ID: id}, time.Time{}, len(p.seen)
	p.attempt++
}

// progressed reports whether the last job measured anything.
func (p *part) progressed() bool {
	if len(p.seen) <= p.lines {
		return false
	}
	p.attempt = 0
	return true
}

// update takes what the scheduler says of the part's job, nil where it knows of none, and
// puts what is new in words.
func (p *part) update(now *Status) string {
	if now != nil && p.job == "" && now.active() && p.failed == "" {
		p.submitted(now.ID) // of an earlier process
	}
	if p.job == "" {
		return ""
	}
	if now == nil || now.ID == p.job && !now.active() {
		if p.silent.IsZero() {
			p.silent = time.Now()
		}
	} else {
		p.silent = time.Time{}
	}
	if now == nil {
		p.status.State, p.status.Reason = Ended, gone
	}
	if now == nil || now.ID != p.job {
		return ""
	}
	was := p.status
	p.status = *now
	switch {
	case now.State == Running && was.State != Running:
		return fmt.Sprintf("job %s (%s) runs on %s", p.job, p.Name, now.Node)
	case now.State == Queued && now.Reason != was.Reason && now.Reason != "" && now.Reason != "None":
		return fmt.Sprintf("job %s (%s) waits: %s", p.job, p.Name, now.Reason)
	}
	return ""
}

// gone is why a job ended that the scheduler does not know any more.
const gone = "the scheduler knows nothing of it any more"

// settling is how long a job must have been gone, so that what it wrote last is seen on
// network file systems, too, and one that is requeued is not taken for dead.
const settling = 5 * time.Second

// left reports whether the job will do no more.
func (p *part) left(fresh bool) bool {
	if e := p.ending(); e != nil && (e.Done || e.Failure != "") {
		return true
	}
	return fresh && (p.status.State == Hopeless || !p.silent.IsZero() && time.Since(p.silent) > settling)
}

// cutShort tells jobs that were ended from those that ended.
func cutShort(reason string) bool {
	for _, word := range []string{"timeout", "node_fail", "preempted", "boot_fail", "deadline", "evicted", "shutdown", "disruption", gone} {
		if strings.Contains(strings.ToLower(reason), word) {
			return true
		}
	}
	return false
}

// ending says how the last process of the part ended, nil where it did not say or where
// not all that it wrote is seen yet.
func (p *part) ending() *sweep.Ending {
	e, err := p.folder.Ending()
	if err != nil {
		p.failed = err.Error()
	}
	if err != nil || e == nil || e.Lines > len(p.seen) {
		return nil
	}
	return e
}

// again has engines tried again that failed last, if nobody has been told of that: so it
// is on a run that is resumed for it.
func (p *part) again() bool {
	if p.checked {
		return false
	}
	p.checked = true
	n := len(p.seen)
	if n == 0 || p.taken[n-1] || !measure.Broke(p.seen[n-1].Rejected) {
		return false
	}
	if err := errors.Join(p.folder.Begin(), p.forget()); err != nil {
		p.failed = err.Error()
	}
	return true
}

// wanted reports whether the part has something left to do. That trials are waited for
// which it ended without asks for its last stages.
func (p *part) wanted() bool {
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

// read reads the journal where it has grown, and reports whether it has.
func (p *part) read() bool {
	info, err := os.Stat(p.folder.File(sweep.JournalFile))
	if err != nil || info.Size() == int64(p.size) {
		return false
	}
	if info.Size() < int64(p.size) { // failures at its end were dropped
		p.seen, p.size = nil, 0
	}
	more, size, err := sweep.ReadJournalFrom(p.folder.File(sweep.JournalFile), p.size)
	if err != nil {
		p.failed = err.Error()
		return true
	}
	p.seen, p.size = append(p.seen, more...), size
	p.taken = append(p.taken, make([]bool, max(len(p.seen)-len(p.taken), 0))...)[:len(p.seen)]
	return len(more) > 0
}

// take finds the measurement of a trial that nobody took yet; nil where there is none.
func (p *part) take(t *measure.Trial) *measure.Measurement {
	for i := range p.seen {
		if m := p.seen[i]; !p.taken[i] && sweep.Measures(&m, t) {
			p.taken[i] = true
			return &m
		}
	}
	return nil
}

// hours are the GPU hours of the part's jobs so far.
func (p *part) hours() float64 {
	if time.Since(p.counted) < most || !p.counted.IsZero() && p.job == "" {
		return p.spent
	}
	p.counted = time.Now()
	all, err := p.folder.Attempts()
	if err != nil {
		return p.spent
	}
	p.spent = 0
	for _, a := range all {
		p.spent += a.Seconds / 3600 * float64(p.GPUs)
	}
	return p.spent
}

// lastWords is the last line that the part's jobs printed.
func (p *part) lastWords() string {
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
