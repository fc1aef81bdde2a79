// Package cluster has a cluster's own scheduler run the parts of a study: it submits this program,
// once per part, follows the journals of the parts, resubmits what was cut short, and gathers the
// results. The scheduler places, limits, queues and preempts.
package cluster

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"time"

	"planner/internal/config"
	"planner/internal/list"
	"planner/sweep"
)

// A JobScheduler runs jobs.
type JobScheduler interface {
	// Script returns the job in the form in which it is submitted.
	Script(j PartJob) (string, error)
	// Submit submits a job and returns its id, or only has it checked. A *Refusal says that it will
	// never run.
	Submit(ctx context.Context, j PartJob) (id string, err error)
	// List returns the jobs of a run that the scheduler still knows.
	List(ctx context.Context, run string) ([]JobStatus, error)
	// Cancel ends a job of a run or, if its id is "", all of them, and then removes what else there
	// is of the run.
	Cancel(ctx context.Context, run, id string) error
}

// New returns the scheduler that a configuration's launcher names.
func New(cfg *config.Config) (JobScheduler, error) {
	site := cfg.Cluster
	if cfg.Search.BudgetGiven && slices.Contains([]string{"plan", "search"}, cfg.Run.Command) {
		// The budget of engine time, as much again for further starts, and the first start: a job
		// that asks for less time is placed sooner.
		site.TimeLimit = min(site.TimeLimit, 2*cfg.Search.Budget+cfg.Engine.ReadyTimeout)
	}
	if cfg.Launcher() == "kubernetes" {
		return &Kubernetes{Cluster: site, read: map[string]time.Time{}, stuck: map[string]time.Time{}}, nil
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	s := &Slurm{Cluster: site, Spread: cfg.Spread}
	s.Planner = cmp.Or(s.Planner, self)
	return s, nil
}

// PartJob is one part of a run.
type PartJob struct {
	// Run is the run's name at the scheduler.
	Run  string
	Part sweep.Part
	// Folder is the run folder of the part.
	Folder string
	// Check has the scheduler check the job without running it.
	Check bool
}

// Name returns the job's name at the scheduler.
func (j PartJob) Name() string { return j.Run + "-" + j.Part.Name }

// JobState is how far a job has got.
type JobState int

// The states of a job.
const (
	// Queued jobs wait for their turn, Starting ones for their node or their containers.
	Queued JobState = iota
	Starting
	Running
	// Ended jobs no longer run.
	Ended
	// Cancelled jobs were ended by somebody.
	Cancelled
	// Hopeless jobs wait for what never comes.
	Hopeless
)

// JobStatus is what a scheduler says about a job.
type JobStatus struct {
	ID, Part string
	State    JobState
	// Reason explains the state in the scheduler's words, Node is where the job runs.
	Reason, Node string
}

func (s *JobStatus) active() bool { return s.State != Ended && s.State != Cancelled }

// Refusal is what a scheduler says when it does not accept a job.
type Refusal struct{ Words string }

// Error returns the scheduler's own words.
func (r *Refusal) Error() string { return r.Words }

// patience is how long a scheduler's command may take: if the controller is down, it answers after
// some ten seconds.
const patience = 30 * time.Second

// call runs a scheduler's command with the given standard input. The error holds what it wrote to
// standard error.
func call(ctx context.Context, input string, argv ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var out, said bytes.Buffer
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(input), &out, &said
	err := cmd.Run()
	switch {
	case err == nil:
		return out.String(), nil
	case errors.Is(err, exec.ErrNotFound):
		return "", &Refusal{argv[0] + " is not installed here"}
	}
	if words := oneLine(strings.ReplaceAll(said.String(), argv[0]+": error: ", "")); words != "" && ctx.Err() == nil {
		err = errors.New(words)
	}
	return out.String(), fmt.Errorf("%s: %w", argv[0], err)
}

// logged matches how lines of kubectl's own log begin; the last of them repeats its error.
var logged = regexp.MustCompile(`^[EWI]\d{4} `)

// oneLine joins the lines that a command wrote, without log lines if there are others.
func oneLine(text string) string {
	lines := strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' })
	if bare := slices.DeleteFunc(slices.Clone(lines), logged.MatchString); len(bare) > 0 {
		lines = bare
	}
	return strings.Join(list.Map(lines, strings.TrimSpace), "; ")
}

// stateFile holds what must outlive the process that submits: the launcher, and the run's name
// there.
const stateFile = "cluster.json"

// RunName returns the launcher of a run and the run's name there; both are empty if nothing was
// submitted.
func RunName(f sweep.Folder) (launcher, run string, err error) {
	var state map[string]string
	err = sweep.IgnoreMissing(f.ReadJSON(stateFile, &state))
	return state["launcher"], state["run"], err
}

// Active counts the jobs of a run that have not ended.
func Active(ctx context.Context, s JobScheduler, run string) (int, error) {
	jobs, err := s.List(ctx, run)
	return list.Count(jobs, func(j JobStatus) bool { return j.active() }), err
}
