package cluster

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"planner/internal/list"
	"planner/sweep"
	"planner/sweep/measure"
)

// Follower submits the parts of a run as jobs, follows these, and answers for the trials of the run
// with what the parts have measured. A job that runs does not depend on whether anybody follows it.
type Follower struct {
	// Launcher is the name by which users know the scheduler.
	Launcher  string
	Scheduler JobScheduler
	Study     sweep.Divided
	// Folder is the run's folder.
	Folder sweep.Folder
	// Files returns the files that the run folder of a part starts with, by name.
	Files func(part string, whole bool) (map[string][]byte, error)
	// MaxJobs bounds the number of jobs at a time.
	MaxJobs int
	// See is told of the state of the jobs.
	See sweep.Watcher

	run   string
	parts []*partRun
	asks  chan *ask
	// listed is when the scheduler was last asked, saying what has been remarked since, and said
	// what was remarked in the interval before.
	listed       time.Time
	said, saying []string
	// stopped stops the following.
	stopped context.CancelFunc
	ended   chan struct{}
}

// Start begins to follow, and takes up jobs of an earlier process that still run. The trials that
// the run holds already are not asked for again.
func (f *Follower) Start(ctx context.Context, held []measure.Measurement) error {
	var err error
	if _, f.run, err = RunName(f.Folder); err != nil {
		return err
	}
	if f.run == "" {
		f.run = "planner-" + strings.ToLower(rand.Text()[:8])
		if err := f.Folder.WriteJSON(stateFile, map[string]string{"launcher": f.Launcher, "run": f.run}); err != nil {
			return err
		}
	}
	path, err := filepath.Abs(f.Folder.File(sweep.PartsDir))
	if err != nil {
		return err
	}
	f.parts = list.Map(f.Study.Parts(), func(p sweep.Part) *partRun {
		return &partRun{Part: p, folder: sweep.Folder{Path: filepath.Join(path, p.Name)}}
	})
	for i := range held {
		if p := f.partOf(held[i].Trial); p != nil {
			p.read()
			p.take(&held[i].Trial)
		}
	}
	f.asks, f.ended = make(chan *ask), make(chan struct{})
	ctx, f.stopped = context.WithCancel(ctx)
	go func() {
		defer close(f.ended)
		f.follow(ctx)
	}()
	return nil
}

// leave is how long jobs of a run that has its answer may take to end by themselves.
const leave = 10 * time.Second

// Finish ends the jobs of a run that has its answer, and removes what the scheduler keeps of it.
func (f *Follower) Finish(ctx context.Context) error {
	f.stopped()
	<-f.ended
	for began := time.Now(); time.Since(began) < leave; time.Sleep(polite / 2) {
		all, err := f.Scheduler.List(ctx, f.run)
		if err != nil {
			return nil // ended jobs need no cancelling, and the others end soon
		}
		if !slices.ContainsFunc(all, func(s JobStatus) bool { return s.active() && s.State != Hopeless }) {
			break
		}
	}
	return f.Scheduler.Cancel(ctx, f.run, "")
}

// Close stops the following; jobs continue.
func (f *Follower) Close() {
	if f.stopped != nil {
		f.stopped()
		<-f.ended
	}
}

// Intervals between two looks: short while something happens, longer while nothing does. While it
// follows, it asks the scheduler at most once a second.
const (
	least  = 100 * time.Millisecond
	most   = 3 * time.Second
	polite = time.Second
)

func (f *Follower) follow(ctx context.Context) {
	delay := least
	for {
		if f.tick(ctx) {
			delay = least
		}
		select {
		case <-ctx.Done():
			return
		case a := <-f.asks:
			p := f.partOf(a.trial)
			if p == nil {
				a.done <- fmt.Errorf("trial %d is of no part of the run", a.trial.Number)
				continue
			}
			p.waiting = append(p.waiting, a)
			delay = least
		case <-time.After(delay):
			delay = min(delay*3/2, most)
		}
	}
}

func (f *Follower) partOf(t measure.Trial) *partRun {
	p, _ := list.Find(f.parts, func(p *partRun) bool { return p.Has(t) })
	return p
}

// tick looks at all parts once and reports whether anything has changed.
func (f *Follower) tick(ctx context.Context) (changed bool) {
	fresh := f.list(ctx)
	for _, p := range f.parts {
		changed = f.gather(ctx, p, fresh) || changed
		changed = f.step(ctx, p, fresh) || changed
	}
	f.See.See(f.jobs())
	return changed
}

// list asks the scheduler for the state of the jobs; false if it was not asked, or did not answer.
func (f *Follower) list(ctx context.Context) bool {
	if time.Since(f.listed) < polite {
		return false
	}
	f.listed = time.Now()
	f.said, f.saying = f.saying, nil
	all, err := f.Scheduler.List(ctx, f.run)
	var refused *Refusal
	switch {
	case errors.As(err, &refused) && f.active() == 0:
		for _, p := range f.parts {
			p.failed = refused.Words
		}
		return false
	case err != nil:
		f.remark(ctx, err.Error())
		return false
	}
	for _, p := range f.parts {
		p.known = slices.DeleteFunc(slices.Clone(all), func(s JobStatus) bool { return s.Part != p.Name })
		if said := p.update(jobOf(p)); said != "" {
			f.See.See(said)
		}
	}
	return true
}

// jobOf returns the job of a part among those that the scheduler knows, nil for none: the one that
// is followed, or else one that is active.
func jobOf(p *partRun) *JobStatus {
	i := slices.IndexFunc(p.known, func(s JobStatus) bool { return p.job != nil && s.ID == p.job.ID })
	if i < 0 {
		i = slices.IndexFunc(p.known, func(s JobStatus) bool { return s.active() })
	}
	if i < 0 {
		return nil
	}
	return &p.known[i]
}

func (f *Follower) active() int {
	return list.Count(f.parts, func(p *partRun) bool { return p.job != nil })
}

// remark reports why the scheduler does not answer, once for as long as the reason lasts.
func (f *Follower) remark(ctx context.Context, said string) {
	if ctx.Err() != nil || slices.Contains(f.saying, said) {
		return
	}
	f.saying = append(f.saying, said)
	switch {
	case slices.Contains(f.said, said):
	case f.active() == 0:
		f.See.See(said + "; it is asked again until it answers")
	default:
		f.See.See(said + "; jobs go on, and are followed by their journals")
	}
}

// gather takes what a part has measured, and answers those who wait for it.
func (f *Follower) gather(ctx context.Context, p *partRun, fresh bool) bool {
	if far, ok := f.Scheduler.(*Kubernetes); ok && fresh {
		f.collect(ctx, p, far)
	}
	grown := p.read()
	return f.reply(p) || grown
}

// collect copies the files of a part here if there is no shared file system: from the job that is
// followed or, if there is none, from those that have ended, even while nobody followed them. The
// latter are then deleted, so that their output never comes after that of the next job.
func (f *Follower) collect(ctx context.Context, p *partRun, far *Kubernetes) {
	for _, s := range p.known {
		if p.job != nil && s.ID != p.job.ID {
			continue
		}
		err := far.Collect(ctx, &s, p.folder)
		if err == nil && p.job == nil {
			err = f.Scheduler.Cancel(ctx, f.run, s.ID)
		}
		if err != nil {
			f.remark(ctx, err.Error())
		}
	}
}

func (f *Follower) step(ctx context.Context, p *partRun, fresh bool) (changed bool) {
	switch {
	case p.failed != "" || p.cut != "":
	case p.job != nil && p.left(fresh):
		return f.settle(ctx, p)
	case p.job == nil && fresh && p.again():
		return true
	case p.job == nil && fresh && p.wanted():
		return f.submit(ctx, p)
	}
	return false
}

func (f *Follower) submit(ctx context.Context, p *partRun) bool {
	if f.active() >= f.MaxJobs || time.Since(p.tried) < polite {
		return false
	}
	p.tried = time.Now()
	if err := f.prepare(p); err != nil {
		p.stop(err.Error())
		return true
	}
	id, err := f.Scheduler.Submit(ctx, PartJob{Run: f.run, Part: p.Part, Folder: p.folder.Path})
	var refused *Refusal
	switch {
	case errors.As(err, &refused):
		p.failed = refused.Words
	case err != nil:
		f.remark(ctx, err.Error())
		return false
	default:
		p.submitted(id)
		f.See.See(fmt.Sprintf("job %s: %s, %d x %s", id, p.Name, p.GPUs, cmp.Or(p.GPU, "GPU")))
	}
	return true
}

func (f *Follower) prepare(p *partRun) error {
	files, err := f.Files(p.Name, p.whole)
	if err != nil {
		return err
	}
	if p.folder.Has(sweep.ConfigFile) {
		if err := errors.Join(p.folder.Begin(), p.forget()); err != nil {
			return err
		}
	} else if err := os.MkdirAll(p.folder.Path, 0o700); err != nil {
		return fmt.Errorf("make run folder: %w", err)
	}
	for name, data := range files {
		if err := p.folder.Write(name, data); err != nil {
			return err
		}
	}
	return nil
}

// attempts is how many jobs of a part in a row may be cut short without having measured anything.
const attempts = 3

func (f *Follower) settle(ctx context.Context, p *partRun) bool {
	job, ending := p.job, p.ending()
	p.job = nil
	switch {
	case p.failed != "":
	case ending != nil && ending.Done:
	case ending != nil && ending.Failure != "" && p.tried.IsZero(): // an earlier process submitted it
		f.See.See(fmt.Sprintf("job %s (%s) failed (%s); the part goes on in another", job.ID, p.Name, ending.Failure))
	case ending != nil && ending.Failure != "":
		p.stop(ending.Failure)
	case job.State == Cancelled:
		p.cut = fmt.Sprintf("job %s (%s) was cancelled by somebody else", job.ID, p.Name)
	case job.State == Hopeless:
		p.failed = fmt.Sprintf("job %s waits for what never comes: %s", job.ID, job.Reason)
		if err := f.Scheduler.Cancel(ctx, f.run, job.ID); err != nil {
			f.remark(ctx, err.Error())
		}
	case p.progressed() || (ending != nil || cutShort.MatchString(job.Reason)) && p.attempt < attempts:
		if ending != nil {
			job.Reason = "told to, as before a time limit or a preemption"
		}
		f.See.See(fmt.Sprintf("job %s (%s) ended (%s); the part goes on in another", job.ID, p.Name, job.Reason))
	default:
		why := fmt.Sprintf("job %s ended (%s) before its first trial: %s", job.ID, job.Reason, p.lastWords())
		if err := f.prepare(p); err != nil { // the reason that it could not say more
			why = err.Error()
		}
		p.stop(why)
	}
	return true
}

func (f *Follower) jobs() sweep.Jobs {
	var j sweep.Jobs
	for _, p := range f.parts {
		switch {
		case p.job == nil:
			if p.attempt > 0 || !p.wanted() {
				j.Ended++
			}
		case p.job.State == Running:
			j.Running++
			j.Lines = append(j.Lines, fmt.Sprintf("%s on %s: %s", p.Name, p.job.Node, p.lastWords()))
		case p.job.State == Starting:
			j.Starting++
		default:
			j.Queued++
		}
		j.GPUHours += p.hours()
	}
	return j
}
