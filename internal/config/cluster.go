package config

import "time"

// Cluster says how jobs are submitted if engine.launcher is slurm or kubernetes.
type Cluster struct {
	// GPU holds the site's name for each GPU: a gres type, or the value of a node label.
	GPU map[string]string
	// Partition, Account, QOS and Constraint are options of Slurm.
	Partition, Account, QOS, Constraint string
	// TimeLimit is that of one job. A part that takes longer continues in another job.
	TimeLimit time.Duration
	// Setup are shell lines before planner starts in a job; {command} in the last stands for its command line.
	Setup []string
	// Planner is the path of this program on Slurm nodes, "" for the one that submits; on Kubernetes its image,
	// or its path in Image.
	Planner string
	// The fields from here to NodeWait are for Kubernetes. Tolerations are written as in kubectl taint:
	// key[=value][:effect].
	Namespace, Image, VolumeClaim string
	NodeSelector                  map[string]string
	Tolerations                   []string
	// NodeWait is how long a pod may wait if no node of the cluster can take it.
	NodeWait time.Duration
	// Extra are raw options of sbatch, or JSON merge patches of the pod.
	Extra []string
	// MaxJobs is the maximum number of concurrent jobs.
	MaxJobs int
}

func usualCluster() Cluster { return Cluster{TimeLimit: 4 * time.Hour, MaxJobs: 8} }

func (c *Config) clusterRows() []tomlKey {
	l := &c.Cluster
	return []tomlKey{
		{"gpu", `the site's word for each GPU: { "H100 SXM" = "h100" }: gres type of Slurm, or value of the label nvidia.com/gpu.product`, tableOf(filled()).in(&l.GPU)},
		{"partition", `slurm; "" = the site's default, as for account, qos, constraint`, anyWord().in(&l.Partition)},
		{"account", "slurm", anyWord().in(&l.Account)},
		{"qos", "slurm", anyWord().in(&l.QOS)},
		{"constraint", "slurm: features that the node must have", anyWord().in(&l.Constraint)},
		{"time_limit", "of one job; what is not finished then goes on in another", durationIn(atLeast(float64(2 * time.Minute))).in(&l.TimeLimit)},
		{"setup", `lines of shell before planner starts in a job: ["module load cuda"]; with a container the last is ["apptainer exec --nv vllm.sif {command}"]`,
			openly(`a file on the nodes that a line of setup reads: "source ~/.secrets"`).in(&l.Setup)},
		{"planner", `path of this program on the nodes, slurm: "" = the one that submits; kubernetes: an image that has it as /planner, or its path in image`, anyWord().in(&l.Planner)},
		{"namespace", `kubernetes; "" = that of the context`, anyWord().in(&l.Namespace)},
		{"image", "kubernetes: image with the engine", anyWord().in(&l.Image)},
		{"volume_claim", `kubernetes: claim that takes the parts' run folders with all records; "" = what the answer takes is streamed, and no more`, anyWord().in(&l.VolumeClaim)},
		{"node_selector", "kubernetes: labels that the node must have", tableOf(anyWord()).in(&l.NodeSelector)},
		{"tolerations", `kubernetes: as kubectl writes taints: ["dedicated=llm:NoSchedule"]`, arguments().in(&l.Tolerations)},
		{"node_wait", "kubernetes: how long a pod may wait that no node there is can take, for clusters that add nodes: \"15m\"", durationIn(atLeast(0)).in(&l.NodeWait)},
		{"extra", `raw options of sbatch, ["--exclusive"], or JSON merge patches of the pod`, openly(inVariable).in(&l.Extra)},
		{"max_jobs", "at once", wholeIn(atLeast(1)).in(&l.MaxJobs)},
	}
}

// Launcher returns what starts the engines of a command; "local" if it runs none or simulates.
func (c *Config) Launcher() string {
	if !c.draft.need.Engine || c.draft.need.Simulated {
		return "local"
	}
	return c.Engine.Launcher
}

func (r *reader) checkCluster(c *Config) {
	launcher := c.Launcher()
	if !r.clean("cluster", "hardware") {
		return
	}
	nameGPUs(r, "cluster.gpu", c.Cluster.GPU, "names %s a second time, want one word a GPU")
	if launcher == "local" {
		return
	}
	r.at("engine.launcher").refuseIf(c.Engine.Kind == "attach", "is %q, want \"local\" where engine.kind is \"attach\": a server that runs already is not placed", launcher)
	for _, g := range c.GPUs {
		r.missing("cluster.gpu", "engine.launcher").refuseIf(c.Cluster.GPU[g.Hardware.Name] == "" && len(c.GPUs) > 1,
			"lacks the site's word for %s, want one a GPU where several are compared: { %s = \"...\" }", g.Hardware.Name, quote(g.Hardware.Name))
	}
	r.missing("cluster.image", "engine.launcher").refuseIf(launcher == "kubernetes" && c.Cluster.Image == "",
		`is missing, want the image of the engine, such as "vllm/vllm-openai:v0.15.1", because launcher is "kubernetes"`)
	r.missing("cluster.planner", "engine.launcher").refuseIf(launcher == "kubernetes" && c.Cluster.Planner == "",
		`is missing, want an image that has this program as /planner, or its path in cluster.image, because launcher is "kubernetes"`)
}
