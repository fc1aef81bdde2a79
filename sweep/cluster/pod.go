package cluster

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Paths in a pod. An image may have this program as /planner: nothing is mounted there.
const (
	podRoot  = "/var/lib/planner"
	podTools = podRoot + "/tools"
	podRuns  = podRoot + "/runs"
	podSeed  = podRoot + "/seed"
)

// Labels of everything that belongs to a run.
const (
	runLabel  = "planner/run"
	partLabel = "planner/part"
)

// object is a Kubernetes document.
type object = map[string]any

// pod returns the pod of a job, owned by the object of its run, with the part's files in the config
// map named seed.
func (k *Kubernetes) pod(j PartJob, owner object, seed string) (object, error) {
	run := podRuns + "/" + j.Run + "/" + j.Part.Name
	program, mounts := k.Planner, []any{object{"name": "runs", "mountPath": podRuns}, object{"name": "seed", "mountPath": podSeed}, object{"name": "shm", "mountPath": "/dev/shm"}}
	tools := object{"name": "tools", "mountPath": podTools}
	volumes := []any{object{"name": "runs", "emptyDir": object{}}, object{"name": "seed", "configMap": object{"name": seed}},
		object{"name": "shm", "emptyDir": object{"medium": "Memory"}}}
	if claim := k.VolumeClaim; claim != "" {
		volumes[0] = object{"name": "runs", "persistentVolumeClaim": object{"claimName": claim}}
	}
	spec := object{"restartPolicy": "Never", "activeDeadlineSeconds": int(k.TimeLimit.Seconds()), "terminationGracePeriodSeconds": 60}
	if !strings.HasPrefix(program, "/") {
		spec["initContainers"] = []any{object{"name": "install", "image": program, "command": []any{"/planner", "install", podTools}, "volumeMounts": []any{tools}}}
		program, mounts, volumes = podTools+"/planner", append(mounts, tools), append(volumes, object{"name": "tools", "emptyDir": object{}})
	}
	gpus := object{"nvidia.com/gpu": j.Part.GPUs}
	spec["containers"] = []any{object{"name": "planner", "image": k.Image, "volumeMounts": mounts,
		"command":   []any{program, "resume", "--verbose", "--stream", "--seed", podSeed + "/" + seedFile, run},
		"resources": object{"limits": gpus, "requests": gpus}}}
	spec["volumes"] = volumes
	selector := object{}
	for name, value := range k.NodeSelector {
		selector[name] = value
	}
	if word := k.GPU[j.Part.GPU]; word != "" {
		selector["nvidia.com/gpu.product"] = word
	}
	if len(selector) > 0 {
		spec["nodeSelector"] = selector
	}
	for _, t := range k.Tolerations {
		list, _ := spec["tolerations"].([]any)
		spec["tolerations"] = append(list, toleration(t))
	}
	pod := object{"apiVersion": "v1", "kind": "Pod", "metadata": k.meta(j, owner), "spec": spec}
	for _, text := range k.Extra {
		var patch object
		if err := json.Unmarshal([]byte(text), &patch); err != nil {
			return nil, fmt.Errorf("cluster.extra: %s is no JSON merge patch of the pod: %w", text, err)
		}
		merge(pod, patch)
	}
	return pod, nil
}

func (k *Kubernetes) meta(j PartJob, owner object) object {
	m := object{"generateName": j.Name() + "-", "labels": object{"app.kubernetes.io/managed-by": "planner", runLabel: j.Run, partLabel: j.Part.Name}}
	if owner != nil {
		m["ownerReferences"] = []any{owner}
	}
	return m
}

// toleration parses what kubectl writes for a taint: key[=value][:effect].
func toleration(taint string) object {
	rest, effect, _ := strings.Cut(taint, ":")
	key, value, valued := strings.Cut(rest, "=")
	t := object{"key": key, "operator": "Exists"}
	if valued {
		t["operator"], t["value"] = "Equal", value
	}
	if effect != "" {
		t["effect"] = effect
	}
	return t
}

// merge applies a JSON merge patch (RFC 7386) to a document.
func merge(into, patch object) {
	for name, value := range patch {
		deeper, isObject := value.(object)
		below, has := into[name].(object)
		switch {
		case value == nil:
			delete(into, name)
		case isObject:
			if !has {
				below = object{}
				into[name] = below
			}
			merge(below, deeper)
		default:
			into[name] = value
		}
	}
}

// Script returns the manifest of the pod.
func (k *Kubernetes) Script(j PartJob) (string, error) {
	pod, err := k.pod(j, nil, j.Name()+"-files")
	if err != nil {
		return "", err
	}
	text, err := json.MarshalIndent(pod, "", "  ")
	return string(text) + "\n", err
}
