package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"planner/internal/config"
	"planner/sweep"
)

// Kubernetes runs each job as a bare pod, through kubectl, which uses the user's own credentials.
type Kubernetes struct {
	config.Cluster
	// read is the time up to which the logs of a pod have been read, and stuck the time since which
	// no node can take it.
	read, stuck map[string]time.Time
}

func (k *Kubernetes) kubectl(ctx context.Context, input any, args ...string) (string, error) {
	var document []byte
	if input != nil {
		var err error
		if document, err = json.Marshal(input); err != nil {
			return "", err
		}
	}
	argv := []string{"kubectl"}
	if k.Namespace != "" {
		argv = append(argv, "--namespace", k.Namespace)
	}
	return call(ctx, string(document), append(argv, args...)...)
}

// Submit creates the pod of a part and a config map with the files that it starts with, owned by
// the object of the run; or has the API server check the pod without creating anything.
func (k *Kubernetes) Submit(ctx context.Context, j PartJob) (string, error) {
	create := []string{"create", "-f", "-", "-o", "jsonpath={.metadata.name}"}
	var owner object
	name := j.Name() + "-files"
	if j.Check {
		create = append(create, "--dry-run=server")
	} else {
		seed, err := packSeed(sweep.Folder{Path: j.Folder})
		if err != nil {
			return "", &Refusal{err.Error()}
		}
		if owner, err = k.owner(ctx, j.Run); err != nil {
			return "", refusal(ctx, err)
		}
		files := object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": k.meta(j, owner), "binaryData": object{seedFile: seed}}
		if name, err = k.kubectl(ctx, files, create...); err != nil {
			return "", refusal(ctx, err)
		}
	}
	pod, err := k.pod(j, owner, name)
	if err != nil {
		return "", &Refusal{err.Error()}
	}
	id, err := k.kubectl(ctx, pod, create...)
	if err != nil {
		return "", refusal(ctx, err)
	}
	return id, nil
}

// owner refers to the object of a run, and creates it if needed: deleting it deletes all that
// belongs to the run.
func (k *Kubernetes) owner(ctx context.Context, run string) (object, error) {
	uid, err := k.kubectl(ctx, nil, "get", "configmap", run, "--ignore-not-found", "-o", "jsonpath={.metadata.uid}")
	if err == nil && uid == "" {
		uid, err = k.kubectl(ctx, object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": run,
			"labels": object{"app.kubernetes.io/managed-by": "planner", runLabel: run}}}, "create", "-f", "-", "-o", "jsonpath={.metadata.uid}")
	}
	return object{"apiVersion": "v1", "kind": "ConfigMap", "name": run, "uid": uid}, err
}

// Cancel deletes a pod, or all that belongs to a run.
func (k *Kubernetes) Cancel(ctx context.Context, run, id string) error {
	what := []string{"pod", id}
	if id == "" {
		what = []string{"pods,configmaps", "-l", runLabel + "=" + run}
	}
	_, err := k.kubectl(ctx, nil, append(append([]string{"delete"}, what...), "--ignore-not-found", "--wait=false")...)
	return err
}

// podState is the part of a pod's description that is read.
type podState struct {
	Metadata struct {
		Name   string
		Labels map[string]string
	}
	Spec   struct{ NodeName string }
	Status struct {
		Phase, Reason, Message string
		Conditions             []struct{ Type, Status, Reason, Message string }

		InitContainerStatuses, ContainerStatuses []struct {
			State struct {
				Waiting    *struct{ Reason, Message string }
				Terminated *struct {
					Reason, Message string
					ExitCode        int
				}
			}
		}
	}
}

// List asks for all pods of a run in one call.
func (k *Kubernetes) List(ctx context.Context, run string) ([]JobStatus, error) {
	out, err := k.kubectl(ctx, nil, "get", "pods", "-l", runLabel+"="+run, "-o", "json")
	if err != nil && (strings.Contains(err.Error(), "(Forbidden)") || strings.Contains(err.Error(), "(Unauthorized)")) {
		return nil, &Refusal{err.Error()}
	} else if err != nil {
		return nil, err
	}
	var pods struct{ Items []podState }
	if err := json.Unmarshal([]byte(out), &pods); err != nil {
		return nil, fmt.Errorf("kubectl: %w", err)
	}
	var all []JobStatus
	for i := range pods.Items {
		p := &pods.Items[i]
		s := JobStatus{ID: p.Metadata.Name, Part: p.Metadata.Labels[partLabel], Node: p.Spec.NodeName}
		s.State, s.Reason = p.state()
		if k.waitsInVain(&s) {
			s.State = Hopeless
			s.Reason += " (where nodes are added on demand, cluster.node_wait says how long that may take)"
		}
		all = append(all, s)
	}
	k.readFailures(ctx, all)
	return all, nil
}

// readFailures finds pods that will not start: an image cannot be pulled or its program cannot be
// run. The node says so at once in an event, and up to 15 s later in the pod's status, which has to
// do for those who may not list events.
func (k *Kubernetes) readFailures(ctx context.Context, all []JobStatus) {
	if !slices.ContainsFunc(all, func(s JobStatus) bool { return s.State == Starting }) {
		return
	}
	out, err := k.kubectl(ctx, nil, "get", "events", "--field-selector", "involvedObject.kind=Pod,reason=Failed", "-o", "json")
	var events struct {
		Items []struct {
			Message string
			Pod     struct{ Name string } `json:"involvedObject"`
		}
	}
	if err != nil || json.Unmarshal([]byte(out), &events) != nil {
		return
	}
	for _, e := range events.Items {
		i := slices.IndexFunc(all, func(s JobStatus) bool { return s.State == Starting && s.ID == e.Pod.Name })
		if i >= 0 {
			all[i].State, all[i].Reason = Hopeless, strings.TrimPrefix(e.Message, "Error: ")
		}
	}
}

// noNode matches what the scheduler says of nodes that could not take a pod even when empty.
var noNode = regexp.MustCompile(`preemption: 0/(\d+) nodes are available: (\d+) Preemption is not helpful for scheduling`)

// waitsInVain reports whether no node of the cluster can ever take a queued pod, and that for
// longer than a node takes to appear. Nodes that are unavailable may come back.
func (k *Kubernetes) waitsInVain(s *JobStatus) bool {
	found := noNode.FindStringSubmatch(s.Reason)
	if s.State != Queued || found == nil || found[1] != found[2] || strings.Contains(s.Reason, "node.kubernetes.io/") || strings.Contains(s.Reason, "were unschedulable") {
		delete(k.stuck, s.ID)
		return false
	}
	if k.stuck[s.ID].IsZero() {
		k.stuck[s.ID] = time.Now()
	}
	return time.Since(k.stuck[s.ID]) > k.NodeWait+settling/2
}

// unstartable lists reasons for which a container never starts.
var unstartable = []string{"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "CreateContainerConfigError", "CreateContainerError", "RunContainerError"}

// state returns the state of a pod, and the reason in the cluster's words.
func (p *podState) state() (JobState, string) {
	for _, c := range p.Status.Conditions {
		if c.Type == "DisruptionTarget" && c.Status == "True" && p.Status.Phase != "Running" {
			return Ended, "disruption: " + c.Message
		}
	}
	containers := slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses)
	switch p.Status.Phase {
	case "Running":
		return Running, ""
	case "Succeeded":
		return Ended, "completed"
	case "Failed":
		reason := strings.TrimSuffix(p.Status.Reason+": "+p.Status.Message, ": ")
		for _, c := range containers {
			if t := c.State.Terminated; t != nil && t.ExitCode != 0 && p.Status.Reason == "" {
				reason = strings.TrimSuffix(fmt.Sprintf("%s, exit code %d: %s", t.Reason, t.ExitCode, t.Message), ": ")
			}
		}
		return Ended, reason
	}
	for _, c := range containers {
		if w := c.State.Waiting; w != nil && slices.Contains(unstartable, w.Reason) {
			return Hopeless, strings.TrimSuffix(w.Reason+": "+w.Message, ": ")
		}
	}
	for _, c := range p.Status.Conditions {
		if c.Type == "PodScheduled" && c.Status == "False" {
			return Queued, c.Message
		}
	}
	if p.Spec.NodeName == "" {
		return Queued, ""
	}
	return Starting, ""
}

// Collect reads what a pod has printed since the last call: the files of the part, and the log of
// its job.
func (k *Kubernetes) Collect(ctx context.Context, job *JobStatus, part sweep.Folder) error {
	args, id := []string{"logs", job.ID, "-c", "planner", "--timestamps"}, job.ID
	last := k.read[id]
	if !last.IsZero() {
		args = append(args, "--since-time="+last.UTC().Format(time.RFC3339))
	}
	out, err := k.kubectl(ctx, nil, args...)
	if err != nil {
		if strings.Contains(err.Error(), "waiting to start") || strings.Contains(err.Error(), "not found") || strings.Contains(err.Error(), "PodInitializing") {
			return nil
		}
		return err
	}
	log, err := os.OpenFile(filepath.Join(part.Path, JobLog), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	for line := range strings.Lines(out) {
		if !strings.HasSuffix(line, "\n") {
			if job.active() {
				break // it is still being written
			}
			line += "\n"
		}
		stamp, text, _ := strings.Cut(line, " ")
		at, bad := time.Parse(time.RFC3339Nano, stamp)
		if bad != nil || !at.After(last) {
			continue
		}
		var taken bool
		if taken, err = take(part, text); err == nil && !taken {
			_, err = log.WriteString(text)
		}
		if err != nil {
			break // it will be read again
		}
		k.read[id] = at
	}
	return errors.Join(err, log.Close())
}
