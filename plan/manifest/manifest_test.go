package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	apps "k8s.io/api/apps/v1"
	autoscaling "k8s.io/api/autoscaling/v2"
	core "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"

	"planner/internal/evidence/must"
	"planner/plan"
	"planner/sweep/engine"
	"planner/sweep/measure"
)

// leaderWorkerSet is what its API (leaderworkerset.x-k8s.io/v1) has of what is used here.
type leaderWorkerSet struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata"`
	Spec            struct {
		Replicas        int32 `json:"replicas"`
		RolloutStrategy struct {
			Type                       string `json:"type"`
			RollingUpdateConfiguration struct {
				MaxSurge       intstr.IntOrString `json:"maxSurge"`
				MaxUnavailable intstr.IntOrString `json:"maxUnavailable"`
			} `json:"rollingUpdateConfiguration"`
		} `json:"rolloutStrategy"`
		LeaderWorkerTemplate struct {
			Size           int32                `json:"size"`
			RestartPolicy  string               `json:"restartPolicy"`
			LeaderTemplate core.PodTemplateSpec `json:"leaderTemplate"`
			WorkerTemplate core.PodTemplateSpec `json:"workerTemplate"`
		} `json:"leaderWorkerTemplate"`
	} `json:"spec"`
}

// anyPlan is a plan with hand-over of random figures.
func anyPlan(r *rand.Rand) (*plan.Plan, Options) {
	kinds := []string{"vllm", "vllm", "sglang", "trtllm", "tgi", "llama-server", "lmdeploy", "command"}
	kind, gpus, replicas := kinds[r.IntN(len(kinds))], 1<<r.IntN(4), 1+r.IntN(30)
	spare := r.IntN(3)
	e := &plan.Engine{Kind: kind, Version: "0.20.1", Argv: []string{"serve", "--port", "8000", "--x", "it's $(HOME) {a: 'b'}", "--key", "{env:SERVER_KEY}", "--price", "$5"},
		Port: 8000, ReadyTimeout: time.Duration(1+r.IntN(3000)) * time.Second, Replicas: replicas, GPUs: gpus, NodeGPUs: 8, Notes: []string{"a note: with a colon"}}
	if kind != "command" {
		e.HealthPath = "/health"
	}
	if kind == "trtllm" {
		e.Argv = append(e.Argv, "--extra", "dir/options.yaml")
		e.File = &plan.OptionFile{Path: "dir/options.yaml", Content: "a:\n  b: {c: \"d\"}\n"}
	}
	p := &plan.Plan{}
	p.Offer.GPU = []string{"H100 SXM", "MI300X"}[r.IntN(2)]
	p.Fleet = plan.Fleet{Instances: replicas, GPUsPerInstance: gpus, GPUs: gpus * replicas, Spare: min(spare, replicas-1), PlannedRate: 1000 * r.Float64()}
	p.Demand.Zones = 1 + r.IntN(3)
	p.Handover.Engine = e
	p.Handover.Model = &plan.Served{Name: "A Model: 7B", Checkpoint: "owner/a-model"}
	if r.IntN(4) > 0 {
		level := 300 * r.Float64()
		p.Handover.Autoscaling = &plan.Autoscaling{Level: level, SafeLevel: 2 * level, Rate: 0.1 + r.Float64(), MinReplicas: 1, MaxReplicas: replicas}
	}
	for _, m := range []measure.Metric{measure.TTFT, measure.TPOT, measure.E2E} {
		q := []float64{0, 0.5, 0.9, 0.95, 0.99, 0.999}[r.IntN(6)]
		p.Objective.Bounds = append(p.Objective.Bounds, measure.Bound{Metric: m, Quantile: q, Limit: time.Duration(1+r.IntN(2000)) * time.Millisecond})
	}
	o := Options{Namespace: []string{"", "llm"}[r.IntN(2)], Image: []string{"", "registry.example/engine:1"}[r.IntN(2)], VolumeClaim: []string{"", "models"}[r.IntN(2)],
		Env: map[string]string{"PLAIN": "value: {x}", "ALSO": "key={env:OTHER_KEY}", "OTHER_KEY": "{env:OTHER_KEY}"}, NodeSelector: map[string]string{"gpu": "h100"}}
	if kind == "command" || kind != "vllm" && p.Offer.GPU == "MI300X" {
		o.Image = "registry.example/engine:1"
	}
	return p, o
}

// strictly reads documents into the types of their kinds; what these do not have is an error.
func strictly(t *testing.T, data []byte) map[string]any {
	t.Helper()
	objects := map[string]any{}
	for doc := range bytes.SplitSeq(data, []byte("\n---\n")) {
		var kind meta.TypeMeta
		if err := yaml.Unmarshal(doc, &kind); err != nil {
			t.Fatalf("%v\n%s", err, doc)
		}
		object, ok := map[string]any{
			"apps/v1 Deployment": &apps.Deployment{}, "v1 Service": &core.Service{}, "v1 ConfigMap": &core.ConfigMap{},
			"policy/v1 PodDisruptionBudget": &policy.PodDisruptionBudget{}, "autoscaling/v2 HorizontalPodAutoscaler": &autoscaling.HorizontalPodAutoscaler{},
			"leaderworkerset.x-k8s.io/v1 LeaderWorkerSet": &leaderWorkerSet{},
		}[kind.APIVersion+" "+kind.Kind]
		if !ok {
			t.Fatalf("unknown kind %v in\n%s", kind, doc)
		}
		if err := yaml.UnmarshalStrict(doc, object); err != nil {
			t.Fatalf("%s: %v\n%s", kind.Kind, err, doc)
		}
		objects[kind.Kind] = object
	}
	return objects
}

// Random plans become manifests that Kubernetes' own types take without anything left, and
// that say what the plan does.
func TestKubernetes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 200 {
		p, o := anyPlan(r)
		out := must.Get(Kubernetes(p, o))
		objects := strictly(t, out)
		d, e := objects["Deployment"].(*apps.Deployment), p.Handover.Engine
		c := d.Spec.Template.Spec.Containers[0]
		gpu := core.ResourceName("nvidia.com/gpu")
		if p.Offer.GPU == "MI300X" {
			gpu = "amd.com/gpu"
		}
		limit := c.Resources.Limits[gpu]
		if int(*d.Spec.Replicas) != e.Replicas || int(limit.Value()) != e.GPUs || int(c.Ports[0].ContainerPort) != e.Port {
			t.Fatalf("%d replicas, %v GPUs, port %v\n%s", *d.Spec.Replicas, limit, c.Ports, out)
		}
		want := []string{"serve", "--port", "8000", "--x", "it's $$(HOME) {a: 'b'}", "--key", "$(SERVER_KEY)", "--price", "$5"}
		if e.File != nil {
			want = append(want, "--extra", "/etc/a-model-7b/options.yaml")
			if got := objects["ConfigMap"].(*core.ConfigMap).Data["options.yaml"]; got != e.File.Content {
				t.Fatalf("options %q", got)
			}
		}
		if diff := cmp.Diff(want, c.Command); diff != "" {
			t.Fatal(diff)
		}
		checkEnv(t, c.Env)
		labels := d.Spec.Template.Labels
		for _, selector := range []map[string]string{d.Spec.Selector.MatchLabels, objects["Service"].(*core.Service).Spec.Selector,
			objects["PodDisruptionBudget"].(*policy.PodDisruptionBudget).Spec.Selector.MatchLabels} {
			for key, value := range selector {
				if labels[key] != value {
					t.Fatalf("%v does not select %v", selector, labels)
				}
			}
		}
		if got := c.StartupProbe.PeriodSeconds * c.StartupProbe.FailureThreshold; float64(got) < e.ReadyTimeout.Seconds() {
			t.Fatalf("a start may take %d s, want %v", got, e.ReadyTimeout)
		}
		hpa, scaled := objects["HorizontalPodAutoscaler"].(*autoscaling.HorizontalPodAutoscaler)
		if s := p.Handover.Autoscaling; scaled != (s != nil && e.Kind != "trtllm" && e.Kind != "command") {
			t.Fatalf("an autoscaler: %v\n%s", scaled, out)
		} else if scaled {
			level := hpa.Spec.Metrics[0].External.Target.AverageValue.AsApproximateFloat64()
			if level < s.Level-0.001 || level > s.Level+0.001 || int(hpa.Spec.MaxReplicas) != e.Replicas || hpa.Spec.ScaleTargetRef.Name != d.Name {
				t.Fatalf("scaled at %v to %d, want %v", level, hpa.Spec.MaxReplicas, s)
			}
		}
	}
}

// checkEnv wants keys to come from a Secret, ahead of what refers to them.
func checkEnv(t *testing.T, env []core.EnvVar) {
	t.Helper()
	at := func(name string) int {
		return slices.IndexFunc(env, func(v core.EnvVar) bool { return v.Name == name })
	}
	for i := range env {
		if at(env[i].Name) != i {
			t.Fatalf("%s stands twice: %v", env[i].Name, env)
		}
	}
	for _, name := range []string{"SERVER_KEY", "OTHER_KEY", "HF_TOKEN"} {
		if i := at(name); i < 0 || env[i].Value != "" || env[i].ValueFrom.SecretKeyRef.Key != name {
			t.Fatalf("%s is not from a Secret: %v", name, env)
		}
	}
	if i := at("ALSO"); env[i].Value != "key=$(OTHER_KEY)" || i < at("OTHER_KEY") || env[at("PLAIN")].Value != "value: {x}" {
		t.Fatalf("environment %v", env)
	}
}

// An instance that is wider than a node becomes a group of pods, of which the first serves.
func TestNodes(t *testing.T) {
	p, o := anyPlan(rand.New(rand.NewPCG(2, 2)))
	e := p.Handover.Engine
	e.Kind, e.GPUs, e.HealthPath, e.File = "vllm", 16, "/health", nil
	o.Image, p.Offer.GPU = "", "H100 SXM"
	out := must.Get(Kubernetes(p, o))
	objects := strictly(t, out)
	s := objects["LeaderWorkerSet"].(*leaderWorkerSet).Spec
	leader, worker := s.LeaderWorkerTemplate.LeaderTemplate, s.LeaderWorkerTemplate.WorkerTemplate
	gpus := worker.Spec.Containers[0].Resources.Limits[core.ResourceName((&templateData{Plan: p}).Resource())]
	if int(s.Replicas) != e.Replicas || s.LeaderWorkerTemplate.Size != 2 || gpus.Value() != 8 || objects["Deployment"] != nil {
		t.Errorf("%d groups of %d pods with %v GPUs", s.Replicas, s.LeaderWorkerTemplate.Size, gpus)
	}
	if line := strings.Join(leader.Spec.Containers[0].Command, " "); !strings.HasSuffix(line, "--nnodes $(LWS_GROUP_SIZE) --node-rank $(LWS_WORKER_INDEX) --master-addr $(LWS_LEADER_ADDRESS)") {
		t.Errorf("the leader runs %s", line)
	}
	if line := worker.Spec.Containers[0].Command; line[len(line)-1] != "--headless" || worker.Spec.Containers[0].ReadinessProbe != nil {
		t.Errorf("a worker runs %v", line)
	}
	if got := objects["Service"].(*core.Service).Spec.Selector["role"]; got != leader.Labels["role"] || got == worker.Labels["role"] {
		t.Errorf("the Service selects %q", got)
	}
	if image := leader.Spec.Containers[0].Image; image != "vllm/vllm-openai:v0.20.1" {
		t.Errorf("image %s", image)
	}
	e.Version = "v0.11.0"
	if _, err := Kubernetes(p, o); err == nil || !strings.Contains(err.Error(), "0.12") {
		t.Errorf("a release without --nnodes: %v", err)
	}
	e.Version, e.GPUs = "0.20.1", 12
	if _, err := Kubernetes(p, o); err == nil || !strings.Contains(err.Error(), "--node-gpus") {
		t.Errorf("12 GPUs on nodes of 8: %v", err)
	}
}

// Zones take whole instances: leaders are spread over them, and workers go where theirs is.
func TestZonesOfNodes(t *testing.T) {
	p, o := anyPlan(rand.New(rand.NewPCG(2, 2)))
	p.Handover.Engine.Kind, p.Handover.Engine.GPUs, p.Handover.Engine.File, p.Demand.Zones = "vllm", 16, nil, 3
	s := strictly(t, must.Get(Kubernetes(p, o)))["LeaderWorkerSet"].(*leaderWorkerSet).Spec.LeaderWorkerTemplate
	spread, beside := s.LeaderTemplate.Spec.TopologySpreadConstraints, s.WorkerTemplate.Spec.Affinity
	if len(spread) != 1 || spread[0].LabelSelector.MatchLabels["role"] != s.LeaderTemplate.Labels["role"] || len(s.WorkerTemplate.Spec.TopologySpreadConstraints) != 0 {
		t.Errorf("leaders %v, workers %v", spread, s.WorkerTemplate.Spec.TopologySpreadConstraints)
	}
	if beside == nil {
		t.Fatal("workers may be in another zone than their leader")
	}
	leader := beside.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0]
	if leader.TopologyKey != spread[0].TopologyKey || leader.LabelSelector.MatchLabels["role"] != "leader" || !slices.Equal(leader.MatchLabelKeys, []string{"leaderworkerset.sigs.k8s.io/group-index"}) {
		t.Errorf("workers are beside %v", leader)
	}
}

// GPUs of each maker have their own resource, and images that run on them or none.
func TestMakers(t *testing.T) {
	for gpu, want := range map[string][2]string{"L4": {"nvidia.com/gpu", "vllm/vllm-openai:v0.20.1"}, "MI355X": {"amd.com/gpu", "vllm/vllm-openai-rocm:v0.20.1"},
		"AMD Instinct MI300X": {"amd.com/gpu", "vllm/vllm-openai-rocm:v0.20.1"}, "MIG 3g.40gb": {"nvidia.com/gpu", "vllm/vllm-openai:v0.20.1"},
		"Gaudi3": {"habana.ai/gaudi"}, "TPU v6e (per chip)": {"google.com/tpu"}} {
		p, o := anyPlan(rand.New(rand.NewPCG(4, 4)))
		p.Handover.Engine.Kind, p.Handover.Engine.GPUs, p.Handover.Engine.File, p.Offer.GPU, o.Image = "vllm", 1, nil, gpu, ""
		out, err := Kubernetes(p, o)
		if want[1] == "" {
			if err == nil || !strings.Contains(err.Error(), gpu+"; give --image") {
				t.Errorf("%s: %v", gpu, err)
			}
			o.Image = "registry.example/engine:1"
			out, err = Kubernetes(p, o)
		}
		if text := string(out); err != nil || !strings.Contains(text, want[0]+": 1\n") || !strings.Contains(text, want[1]) {
			t.Errorf("%s: %v\n%s", gpu, err, text)
		}
	}
}

// The image is that of the release, however it is written, and none of a build that nobody published.
func TestImages(t *testing.T) {
	for version, want := range map[string]string{"0.15": "vllm/vllm-openai:v0.15.0", "v0.15.1": "vllm/vllm-openai:v0.15.1", "0.11.0+cu128": "vllm/vllm-openai:v0.11.0",
		"0.11.1rc2.dev44+gabcdef": "", "": ""} {
		d := &templateData{Plan: &plan.Plan{Offer: plan.Offer{GPU: "L4"}}}
		if got := d.imageOf("vllm", version); got != want {
			t.Errorf("image of release %q: %q, want %q", version, got, want)
		}
	}
}

// What cannot be written is refused with the remedy.
func TestRefused(t *testing.T) {
	for want, change := range map[string]func(*plan.Plan, *Options){
		"does not say how":    func(p *plan.Plan, _ *Options) { p.Handover.Engine = nil },
		"hidden key":          func(p *plan.Plan, _ *Options) { p.Handover.Engine.Argv = []string{"serve", "--api-key", "***"} },
		"give --image":        func(p *plan.Plan, o *Options) { p.Handover.Engine.Version, o.Image = "", "" },
		"give --volume-claim": func(p *plan.Plan, o *Options) { p.Handover.Model.Checkpoint, o.VolumeClaim = "/models/a", "" },
		"known of vllm alone": func(p *plan.Plan, _ *Options) { p.Handover.Engine.Kind, p.Handover.Engine.GPUs = "sglang", 16 },
	} {
		p, o := anyPlan(rand.New(rand.NewPCG(3, 3)))
		p.Handover.Engine.Kind, p.Handover.Engine.GPUs = "vllm", 4
		change(p, &o)
		if _, err := Kubernetes(p, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	p, o := anyPlan(rand.New(rand.NewPCG(3, 3)))
	p.Handover.Engine = nil
	if _, err := Rules(p, o); !errors.Is(err, errNoEngine) {
		t.Error(err)
	}
}

// The Slurm script runs the plan's command with its words as they are, once a node, each
// instance on a port of its own.
func TestSlurm(t *testing.T) {
	dir := t.TempDir()
	stub := func(name, script string) {
		must.OK(os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/bash\n"+script), 0o755))
	}
	stub("scontrol", "echo node1; echo node2")
	stub("srun", `shift; for SLURM_NODEID in $(seq 0 $((SLURM_NNODES - 1))); do export SLURM_NODEID; "$@" || exit; done`)
	stub("serve", `printf '%s\n' "$PLAIN" "$ALSO" "$@"; cat llm-endpoints/*`)
	r := rand.New(rand.NewPCG(4, 4))
	for _, nodes := range []int{1, 2} {
		p, o := anyPlan(r)
		e := p.Handover.Engine
		e.Kind, e.GPUs, e.NodeGPUs, o.Name = "vllm", 8*nodes, 8, "llm"
		e.Argv, e.File = []string{"serve", "a model", "--port", "8000", "--key", "{env:SERVER_KEY}", "--x", `it's $(HOME) "b"`}, nil
		o.SBatch = []string{"--partition=h100"}
		script := must.Get(Slurm(p, o))
		if !bytes.Contains(script, []byte(fmt.Sprintf("#SBATCH --array=0-%d\n#SBATCH --nodes=%d\n", e.Replicas-1, nodes))) || !bytes.Contains(script, []byte("#SBATCH --partition=h100\n")) {
			t.Errorf("options of sbatch in\n%s", script)
		}
		cmd := exec.Command("bash", "-s")
		cmd.Dir, cmd.Stdin = dir, bytes.NewReader(script)
		cmd.Env = []string{"PATH=" + dir + ":" + os.Getenv("PATH"), "SERVER_KEY=se cret", "OTHER_KEY=o", "SLURM_ARRAY_TASK_ID=3", "SLURM_JOB_NODELIST=node[1-2]", fmt.Sprint("SLURM_NNODES=", nodes)}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s\n%s", err, out, script)
		}
		want := ""
		for node := range nodes {
			want += "value: {x}\nkey=o\na model\n--port\n8003\n--key\nse cret\n--x\nit's $(HOME) \"b\"\n"
			if nodes > 1 {
				want += fmt.Sprintf("--nnodes\n2\n--node-rank\n%d\n--master-addr\nnode1\n", node)
			}
			if node > 0 {
				want += "--headless\n"
			}
			want += "http://node1:8003\n"
		}
		if diff := cmp.Diff(want, string(out)); diff != "" {
			t.Errorf("%s\n%s", diff, script)
		}
		cmd = exec.Command("bash", "-s")
		cmd.Dir, cmd.Stdin, cmd.Env = dir, bytes.NewReader(script), []string{"PATH=" + dir + ":" + os.Getenv("PATH")}
		if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "set it before sbatch") {
			t.Errorf("without keys: %v, %s", err, out)
		}
	}
}

// Prometheus reads the rules of random plans; those of a plan name what it says.
func TestRules(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	for range 100 {
		p, o := anyPlan(r)
		if r.IntN(4) == 0 {
			p.Handover.Autoscaling, p.Demand.Job = nil, &plan.Job{}
		}
		out, err := Rules(p, o)
		if kind := p.Handover.Engine.Kind; kind == "trtllm" || kind == "command" {
			if err == nil {
				t.Fatalf("rules of %s", kind)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		groups, errs := rulefmt.Parse(out, false, model.UTF8Validation, parser.NewParser(parser.Options{}), slog.New(slog.DiscardHandler))
		if len(errs) > 0 {
			t.Fatalf("%v\n%s", errs, out)
		}
		recorded := map[string]bool{}
		for _, g := range groups.Groups {
			for _, rule := range g.Rules {
				recorded[rule.Record] = true
				if p.Demand.Job != nil && slices.Contains([]string{"LLMLoadUnsafe", "LLMQueueGrows", "LLMCacheFull", "LLMPreemptions"}, rule.Alert) {
					t.Errorf("a job raises %s", rule.Alert)
				}
			}
		}
		for _, b := range p.Objective.Bounds {
			told := b.Metric != measure.TPOT || p.Handover.Engine.Kind == "vllm"
			name := "llm:" + b.Metric.String() + "_seconds:p" + strings.Replace(strconv.FormatFloat(100*b.Quantile, 'g', 4, 64), ".", "_", 1) + "_5m"
			if of := engine.SeriesOf(p.Handover.Engine.Kind); of.Latencies[measure.TTFT] != "" && told && b.Quantile > 0 && !recorded[name] {
				t.Errorf("%s is not recorded:\n%s", name, out)
			}
		}
		for _, g := range groups.Groups {
			for _, rule := range g.Rules {
				for _, name := range seriesIn(rule.Expr) {
					if strings.HasPrefix(name, "llm:") && !recorded[name] {
						t.Errorf("%s%s uses %s, which nothing records", rule.Alert, rule.Record, name)
					}
				}
			}
		}
	}
}

// The limits of goodput are watched each by itself, and what no series tells of is named.
func TestRulesOfGoodput(t *testing.T) {
	p, o := anyPlan(rand.New(rand.NewPCG(5, 5)))
	p.Handover.Engine.Kind = "vllm"
	p.Objective.Bounds = []measure.Bound{
		{Metric: measure.Goodput, Quantile: 0.95, Limits: measure.Limits{TTFT: time.Second}},
		{Metric: measure.TTFT, Quantile: 0.99, Limit: time.Second, Class: "chat"},
	}
	out := string(must.Get(Rules(p, o)))
	for _, want := range []string{"LLMTTFTBudgetBurns", "histogram_quantile(0.95,", "# No alert watches ttft.p99 of chat: engines tell no classes apart."} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

// seriesIn are the names of the series that an expression reads.
func seriesIn(expr string) (names []string) {
	parsed := must.Get(parser.NewParser(parser.Options{}).ParseExpr(expr))
	parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
		if v, ok := node.(*parser.VectorSelector); ok {
			names = append(names, v.Name)
		}
		return nil
	})
	return names
}

// Pools of a model have names of their own, whatever their classes are called, and keep those that are plain.
func TestNamesOfPools(t *testing.T) {
	m := &plan.Served{Name: "llama-3.1-8b"}
	long := strings.Repeat("class-", 8)
	names := map[string]string{}
	for _, pool := range []string{"", "чат", "код", "rag", "RAG", "RAG!", "rag-", long, long + "a", long + "b"} {
		name := nameOf(m, pool)
		if other, taken := names[name]; taken || len(name) > longestName || notInName.MatchString(strings.ReplaceAll(name, "-", "")) {
			t.Errorf("%q is called %s, as %q", pool, name, other)
		}
		names[name] = pool
	}
	if names["llama-3-1-8b"] != "" || names["llama-3-1-8b-rag"] != "rag" {
		t.Errorf("%v", names)
	}
}
