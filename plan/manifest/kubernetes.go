package manifest

import (
	"cmp"
	_ "embed"
	"fmt"
	"math"
	"path"
	"regexp"
	"strings"

	"planner/internal/list"
	"planner/plan"
)

//go:embed kubernetes.yaml.tmpl
var kubernetesTemplate string

// images are the images that engine projects publish for NVIDIA GPUs; {version} is the release.
var images = map[string]string{
	"vllm":         "vllm/vllm-openai:v{version}",
	"sglang":       "lmsysorg/sglang:v{version}",
	"trtllm":       "nvcr.io/nvidia/tensorrt-llm/release:{version}",
	"tgi":          "ghcr.io/huggingface/text-generation-inference:{version}",
	"llama-server": "ghcr.io/ggml-org/llama.cpp:server-cuda",
	"lmdeploy":     "openmmlab/lmdeploy:v{version}",
}

// amdImages are the images for AMD GPUs.
var amdImages = map[string]string{"vllm": "vllm/vllm-openai-rocm:v{version}"}

// imageOf returns the published image of an engine, "" if none is known. Without a release, only projects with
// a tag for the latest have one. Tags have three numbers, and nothing of a local build.
func (d *templateData) imageOf(kind, version string) string {
	image := map[string]map[string]string{nvidia: images, amd: amdImages}[d.Resource()][kind]
	release, _, _ := strings.Cut(strings.TrimPrefix(version, "v"), "+")
	if (release == "" || strings.Contains(release, "dev")) && strings.Contains(image, "{version}") {
		return ""
	}
	if strings.Count(release, ".") == 1 {
		release += ".0"
	}
	return strings.ReplaceAll(image, "{version}", release)
}

// Kubernetes writes a plan as manifests: the instances as a Deployment, or as a LeaderWorkerSet if one spans
// nodes, their Service, a PodDisruptionBudget and an autoscaler.
func Kubernetes(p *plan.Plan, o Options) ([]byte, error) {
	d, err := newDeployment(p, o)
	if err == nil {
		err = d.spreads()
	}
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

// A pod is one node of an instance: its leader, which serves requests, or a worker.
type pod struct {
	*templateData
	Role string
}

// Leader is the node that serves requests.
func (d *templateData) Leader() pod { return pod{d, "leader"} }

// Worker is any further node.
func (d *templateData) Worker() pod { return pod{d, "worker"} }

// Words are the pod's command line, in which Kubernetes expands variables.
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

// Probe is the probe of whether the engine serves.
func (p pod) Probe() string {
	if p.Engine.HealthPath == "" {
		return "tcpSocket:\n  port: http"
	}
	return fmt.Sprintf("httpGet:\n  path: %s\n  port: http", p.Engine.HealthPath)
}

// The resource names of device plugins.
const nvidia, amd = "nvidia.com/gpu", "amd.com/gpu"

// Resource is the resource name of the GPUs.
func (d *templateData) Resource() string {
	for _, of := range [][2]string{{`\bMI\d`, amd}, {"Gaudi", "habana.ai/gaudi"}, {"TPU", "google.com/tpu"}} {
		if regexp.MustCompile(of[0]).MatchString(d.Plan.Offer.GPU) {
			return of[1]
		}
	}
	return nvidia
}

// CPUs is the number that an engine requests per node: one per GPU, and two for its server and scheduler.
func (d *templateData) CPUs() int { return 2 + d.PerNode }

// SharedMemory is that of a node's processes, in GiB.
func (d *templateData) SharedMemory() int { return 2 * d.PerNode }

// ModelDir is where the claim is mounted: the folder of a local checkpoint, or the cache of downloads from the
// hub.
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

// CacheDir is the cache of downloads from the hub, "" if the pod keeps none.
func (d *templateData) CacheDir() string {
	if d.VolumeClaim == "" || d.Model.Local() {
		return ""
	}
	return cmp.Or(d.Env["HF_HOME"], "/models")
}

// OptionFile is the name of the engine's option file.
func (d *templateData) OptionFile() string { return path.Base(d.Engine.File.Path) }

// OptionDir is the folder of the option file in a pod.
func (d *templateData) OptionDir() string { return "/etc/" + d.Name }

// Probes is how many times, ten seconds apart, a starting instance is probed before it counts as failed.
func (d *templateData) Probes() int {
	return max(1, int(math.Ceil(d.Engine.ReadyTimeout.Seconds()/10)))
}

// Deadline is how long a rollout may make no progress, in seconds.
func (d *templateData) Deadline() int { return 600 + 10*d.Probes() }

// Grace is how long requests in flight have to complete when an instance is stopped, in seconds: ten times the
// mean duration of one, between a minute and half an hour.
func (d *templateData) Grace() int {
	if d.Scale == nil || d.Scale.Rate <= 0 {
		return 600
	}
	return int(math.Ceil(min(max(10*d.Scale.Level/d.Scale.Rate, 60), 1800)))
}

// Level is the target of requests in flight per replica, as a Kubernetes quantity.
func (d *templateData) Level() string { return fmt.Sprintf("%dm", int(math.Round(1000*d.Scale.Level))) }

// MetricName is the autoscaler's name for the requests in flight.
func (d *templateData) MetricName() string { return d.Name + "-requests-in-flight" }

// Surge is how many new instances start before an old one stops: none if a spare covers it.
func (d *templateData) Surge() int { return 1 - d.Unavailable() }

// Unavailable is how many instances a rollout stops at once.
func (d *templateData) Unavailable() int { return min(d.Plan.Fleet.Spare, 1) }

// Disrupted is how many instances may be stopped at once when nodes are drained.
func (d *templateData) Disrupted() int { return max(1, d.Plan.Fleet.Spare) }

// Target is the API version and kind of the instances.
func (d *templateData) Target() [2]string {
	if d.Nodes > 1 {
		return [2]string{"leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet"}
	}
	return [2]string{"apps/v1", "Deployment"}
}
