package cluster

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"planner/internal/config"
	"planner/internal/list"
	"planner/sweep/engine"
)

// Slurm submits jobs with sbatch.
type Slurm struct {
	config.Cluster
	// Spread returns how an instance is spread over nodes.
	Spread func(gpu string, gpus int) (nodes, each int)
}

// warning returns how many seconds before the end of a job planner is told to finish: enough for
// the longest stop of an engine, and no large share of a short job. Slurm may be up to a minute
// early.
func warning(limit time.Duration) int { return int(min(time.Minute, limit/4).Seconds()) }

// JobLog is the file in a part's run folder that holds what its jobs printed.
const JobLog = "job.log"

// Script returns the job script, which contains all options.
func (s *Slurm) Script(j PartJob) (string, error) {
	var b strings.Builder
	b.WriteString("#!/bin/bash -l\n")
	option := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "#SBATCH --%s=%s\n", name, value)
		}
	}
	option("job-name", j.Name())
	option("output", engine.Quote(strings.ReplaceAll(filepath.Join(j.Folder, JobLog), "%", "%%")))
	option("open-mode", "append")
	option("partition", s.Partition)
	option("account", s.Account)
	option("qos", s.QOS)
	option("constraint", s.Constraint)
	nodes, each := s.Spread(j.Part.GPU, j.Part.GPUs)
	option("nodes", strconv.Itoa(nodes))
	option("ntasks-per-node", "1")
	option("gres", strings.ReplaceAll(fmt.Sprintf("gpu:%s:%d", s.GPU[j.Part.GPU], each), "::", ":"))
	option("time", slurmTime(s.TimeLimit))
	option("signal", fmt.Sprintf("B:TERM@%d", warning(s.TimeLimit)))
	// Secrets stay where they are: the controller stores the environment that it is given.
	option("export", "HOME,USER,LOGNAME,SHELL,PATH,LANG")
	b.WriteString("#SBATCH --requeue\n")
	for _, o := range s.Extra {
		fmt.Fprintf(&b, "#SBATCH %s\n", o)
	}
	command := engine.Quote(s.Planner) + " resume --verbose " + engine.Quote(j.Folder)
	lines := slices.Clone(s.Setup)
	if n := len(lines); n > 0 && strings.Contains(lines[n-1], "{command}") {
		lines[n-1] = "exec " + strings.ReplaceAll(strings.TrimPrefix(lines[n-1], "exec "), "{command}", command)
	} else {
		lines = append(lines, "exec "+command)
	}
	for _, l := range lines {
		b.WriteString(l + "\n")
	}
	return b.String(), nil
}

func slurmTime(d time.Duration) string {
	s := int(d.Seconds())
	return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
}

// passing are parts of errors that are no refusal: the controller may answer later.
var passing = []string{"Unable to contact", "Socket timed out", "Connection refused", "temporarily", "try again", "context deadline", "Zero Bytes",
	"Unable to connect", "connection refused", "was refused - did you specify", "i/o timeout", "TLS handshake timeout", "ServiceUnavailable", "currently unable", "etcdserver"}

// Submit pipes the job script to sbatch.
func (s *Slurm) Submit(ctx context.Context, j PartJob) (string, error) {
	script, err := s.Script(j)
	if err != nil {
		return "", err
	}
	mode := "--parsable"
	if j.Check {
		mode = "--test-only"
	}
	out, err := call(ctx, script, "sbatch", mode)
	if err != nil {
		return "", refusal(ctx, err)
	}
	id, _, _ := strings.Cut(strings.TrimSpace(out), ";")
	if id == "" && !j.Check {
		return "", fmt.Errorf("sbatch: names no job")
	}
	return id, nil
}

// refusal returns err as a *Refusal unless it is one that passes.
func refusal(ctx context.Context, err error) error {
	if ctx.Err() != nil || slices.ContainsFunc(passing, func(w string) bool { return strings.Contains(err.Error(), w) }) {
		return err
	}
	return &Refusal{err.Error()}
}

// List asks squeue once for all jobs of the user, which still include those that ended minutes ago.
func (s *Slurm) List(ctx context.Context, run string) ([]JobStatus, error) {
	out, err := call(ctx, "", "squeue", "--me", "--noheader", "--states=all", "--format=%i|%T|%r|%N|%j")
	if err != nil {
		return nil, err
	}
	var all []JobStatus
	runs := false // a job of the user's, of this run or another
	for line := range strings.Lines(out) {
		f := strings.SplitN(strings.TrimSpace(line), "|", 5)
		if len(f) < 5 {
			continue
		}
		state, reason := slurmState(f[1], f[2])
		runs = runs || state == Running || state == Starting
		if part, ours := strings.CutPrefix(f[4], run+"-"); ours {
			all = append(all, JobStatus{ID: f[0], Part: part, State: state, Reason: reason, Node: f[3]})
		}
	}
	// A limit on the jobs of a user together passes when one of them ends.
	for i, j := range all {
		if runs && (strings.HasPrefix(j.Reason, "AssocMax") || strings.HasPrefix(j.Reason, "QOSMax")) && !strings.Contains(j.Reason, "PerJob") {
			all[i].State = Queued
		}
	}
	return all, nil
}

// hopeless are the beginnings of reasons that do not pass by themselves; limits on a group
// (AssocGrp, QOSGrp) pass when jobs of others end.
var hopeless = []string{"PartitionNodeLimit", "PartitionTimeLimit", "PartitionConfig", "PartitionDown", "PartitionInactive", "AssocMax", "QOSMax", "QOSNotAllowed",
	"AccountNotAllowed", "ReqNodeNotAvail", "BadConstraints", "JobHeldUser", "JobHeldAdmin", "DependencyNeverSatisfied", "InvalidAccount", "InvalidQOS",
	"launch failed requeued held", "job requeued in held state"}

func slurmState(state, reason string) (JobState, string) {
	switch state {
	case "PENDING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "SPECIAL_EXIT":
		bare := strings.Trim(reason, "()")
		if slices.ContainsFunc(hopeless, func(h string) bool { return strings.HasPrefix(strings.ReplaceAll(bare, "_", " "), h) }) {
			return Hopeless, bare
		}
		return Queued, bare
	case "CONFIGURING":
		return Starting, ""
	case "RUNNING", "COMPLETING", "SUSPENDED", "STOPPED", "SIGNALING", "STAGE_OUT", "RESIZING":
		return Running, ""
	case "CANCELLED":
		return Cancelled, "cancelled"
	}
	return Ended, strings.ToLower(state)
}

// Cancel ends a job, or all jobs of a run, which it finds by name.
func (s *Slurm) Cancel(ctx context.Context, run, id string) error {
	jobs, err := s.List(ctx, run)
	if err != nil {
		return err
	}
	jobs = list.Filter(jobs, func(j JobStatus) bool { return j.active() && (id == "" || j.ID == id) })
	if len(jobs) == 0 {
		return nil
	}
	ids := list.Map(jobs, func(j JobStatus) string { return j.ID })
	_, err = call(ctx, "", append([]string{"scancel"}, ids...)...)
	return err
}
