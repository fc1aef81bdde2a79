package manifest

import (
	"cmp"
	_ "embed"
	"fmt"
	"math"
	"path"
	"strings"

	"planner/internal/list"
	"planner/plan"
)

//go:embed kubernetes.yaml.tmpl
var kubernetesTemplate string

// images are those that the projects of engines publish for GPUs of NVIDIA; {version} is the release.
var images = map[string]string{
	"vllm":         "vllm/vllm-openai:v{version}",
	"sglang":       "lmsysorg/sglang:v{version}",
	"trtllm":       "nvcr.io/nvidia/tensorrt-llm/release:{version}",
	"tgi":          "ghcr.io/huggingface/text-generation-inference:{version}",
	"llama-server": "ghcr.io/ggml-org/llama.cpp:server-cuda",
	"lmdeploy":     "openmmlab/lmdeploy:v{version}",
}

// amdImages are those for GPUs of AMD.
var amdImages = map[string]string{"vllm": "vllm/vllm-openai-rocm:v{version}"}

// imageOf is the published image of an engine, "" where none is known: of a release that
// is not known there is none but for projects that name their latest.
func (d *templateData) imageOf(kind, version string) string {
	image := map[string]map[string]string{nvidia: images, amd: amdImages}[d.Resource()][kind]
	if version == "" && strings.Contains(image, "{version}") {
		return ""
	}
	return strings.ReplaceAll(image, "{version}", strings.TrimPrefix(version, "v"))
}

// Kubernetes writes a plan as manifests: the instances as a Deployment, or as a
// LeaderWorkerSet where one spans nodes, their Service, a PodDisruptionBudget and an
// autoscaler.
func Kubernetes(p *plan.Plan, o Options) ([]byte, error) {
	d, err := newDeployment(p, o)
	if err != nil {
		return nil, err
	}
	if d.Image == "" {
		d.Image = d.imageOf(d.Engine.Kind, d.Engine.Version)
	}
	if d.Image == "" {
		return nil, fmt.Errorf("no image is known of engine.kind %q, release %q, on %s; give --image", d.Engine.Kind, d.Engine.Version, cmp.Or(d.Plan.Offer.GPU, "an unnamed GPU"))
	}
	if d.Model.Local() && d.VolumeClaim == "" {
		return nil, fmt.Errorf("the engine loads %s, a path of its machine; give --volume-claim, the PersistentVolumeClaim that holds it",
			d.Model.Checkpoint)
	}
	return fillIn(kubernetesTemplate, d)
}

// A pod is one node of an instance: its leader, which serves, or a worker.
type pod struct {
	*templateData
	Role string
}

// Leader is the node that serves.
func (d *templateData) Leader() pod { return pod{d, "leader"} }

// Worker is any further node.
func (d *templateData) Worker() pod { return pod{d, "worker"} }

// Words are the command line of the pod, with values put in by Kubernetes.
func (p pod) Words() []string {
	words := list.Map(p.Engine.Argv, func(word string) string {
		if f := p.Engine.File; f != nil && word == f.Path {
			return path.Join(p.OptionDir(), p.OptionFile())
		}
		return kubernetesWord(word)
	})
	if p.Nodes > 1 {
		words = append(words, "--nnodes", "$(LWS_GROUP_SIZE)", "--node-rank", "$(LWS_WORKER_INDEX)", "--master-addr", "$(LWS_LEADER_ADDRESS)")
	}
	if p.Role == "worker" {
		words = append(words, "--headless")
	}
	return words
}

// Probe asks whether the engine serves.
func (p pod) Probe() string {
	if p.Engine.HealthPath == "" {
		return "tcpSocket:\n  port: http"
	}
	return fmt.Sprintf("httpGet:\n  path: %s\n  port: http", p.Engine.HealthPath)
}

// Device plugins call the GPUs so.
const nvidia, amd = "nvidia.com/gpu", "amd.com/gpu"

// Resource is what Kubernetes calls the GPUs.
func (d *templateData) Resource() string {
	for _, of := range [][2]string{{"MI", amd}, {"Gaudi", "habana.ai/gaudi"}, {"TPU", "google.com/tpu"}} {
		if strings.HasPrefix(d.Plan.Offer.GPU, of[0]) {
			return of[1]
		}
	}
	return nvidia
}

// CPUs are those that an engine asks for: one a GPU, and two for its server and scheduler.
func (d *templateData) CPUs() int { return 2 + d.PerNode }

// SharedMemory is that of the processes of a node, in GiB.
func (d *templateData) SharedMemory() int { return 2 * d.PerNode }

// ModelDir is where the claim is mounted: the folder that a path names, or the cache of
// what comes from the hub.
func (d *templateData) ModelDir() string {
	switch checkpoint := d.Model.Checkpoint; {
	case !d.Model.Local():
		return d.CacheDir()
	case strings.HasSuffix(strings.ToLower(checkpoint), ".gguf"):
		return path.Dir(checkpoint)
	default:
		return checkpoint
	}
}

// CacheDir is that of what comes from the hub, "" where the pod keeps none.
func (d *templateData) CacheDir() string {
	if d.VolumeClaim == "" || d.Model.Local() {
		return ""
	}
	return cmp.Or(d.Env["HF_HOME"], "/models")
}

// OptionFile is the name of the file that the engine reads its options from.
func (d *templateData) OptionFile() string { return path.Base(d.Engine.File.Path) }

// OptionDir is the folder of that file in a pod.
func (d *templateData) OptionDir() string { return "/etc/" + d.Name }

// Probes is how often the start of an instance is looked at, every ten seconds.
func (d *templateData) Probes() int {
	return max(1, int(math.Ceil(d.Engine.ReadyTimeout.Seconds()/10)))
}

// Deadline is how long an update may stand still, in seconds.
func (d *templateData) Deadline() int { return 600 + 10*d.Probes() }

// Grace is how long requests in flight have to end when an instance is stopped, in seconds:
// ten times what one takes in the mean, from a minute to half an hour.
func (d *templateData) Grace() int {
	if d.Scale == nil || d.Scale.Rate <= 0 {
		return 600
	}
	return int(math.Ceil(min(max(10*d.Scale.Level/d.Scale.Rate, 60), 1800)))
}

// Level is what a replica is to have in flight, as a quantity.
func (d *templateData) Level() string { return fmt.Sprintf("%dm", int(math.Round(1000*d.Scale.Level))) }

// MetricName is what the autoscaler calls the requests in flight.
func (d *templateData) MetricName() string { return d.Name + "-requests-in-flight" }

// Surge is how many new instances start ahead of the end of an old one: none where a
// spare covers it.
func (d *templateData) Surge() int { return 1 - d.Unavailable() }

// Unavailable is how many instances an update stops at once.
func (d *templateData) Unavailable() int { return min(d.Plan.Fleet.Spare, 1) }

// Disrupted is how many instances whoever drains nodes may stop at once.
func (d *templateData) Disrupted() int { return max(1, d.Plan.Fleet.Spare) }

// Target is the API of the instances, and their kind.
func (d *templateData) Target() [2]string {
	if d.Nodes > 1 {
		return [2]string{"leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet"}
	}
	return [2]string{"apps/v1", "Deployment"}
}
