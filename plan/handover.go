package plan

import (
	"strings"
	"time"
)

// Handover is what those who build and run a plan's instances need to know.
type Handover struct {
	// Model and Engine are nil if it is unknown how an instance is started.
	Model  *Served `json:"model"`
	Engine *Engine `json:"engine"`
	// Autoscaling is nil if the requests in flight on an instance are unknown, and for a job.
	Autoscaling *Autoscaling `json:"autoscaling"`
	// Modelled says how the simulated engine treats each feature of the configuration; empty if the figures are
	// measured.
	Modelled []Feature `json:"modelled"`
	// Pools are those of the classes of a mix with limits of their own; nil without such. Even if they are
	// recommended, all other keys of the plan are those of one pool for all classes.
	Pools *Pools `json:"pools,omitempty"`
}

// Served is the model of the instances.
type Served struct {
	// Name is the catalog's, Checkpoint what the engine loads: a Hugging Face id or a path.
	Name       string `json:"name"`
	Checkpoint string `json:"checkpoint"`
	// Weights and KVCache are the number formats that it runs in.
	Weights string `json:"weights,omitempty"`
	KVCache string `json:"kv_cache,omitempty"`
	// ServedName is the model's name in requests, "" for Checkpoint.
	ServedName string `json:"served_name,omitempty"`
}

// HubToken is the variable with the token for Hugging Face's hub, which gated checkpoints need.
const HubToken = "HF_TOKEN"

// Local reports whether the engine loads a path and nothing from a hub.
func (s *Served) Local() bool {
	return strings.HasPrefix(s.Checkpoint, "/") || strings.HasPrefix(s.Checkpoint, ".")
}

// Engine is how one instance is started.
type Engine struct {
	Kind string `json:"kind"` // simulated, vllm, sglang, trtllm, tgi, llama-server, lmdeploy, command or attach
	// Version is the release that was simulated or measured, "" if unknown.
	Version string `json:"version"`
	// Simulated says that the plan's figures come from the simulated engine.
	Simulated bool `json:"simulated"`
	// Argv is the command line, starting with the program. It listens on Port; {env:NAME} in it stands for the
	// value of a variable.
	Argv []string `json:"argv"`
	Port int      `json:"port"`
	// HealthPath answers with status 200 once the engine serves, "" if no such path is known.
	HealthPath string `json:"health_path,omitempty"`
	// ReadyTimeout is how long a start may take.
	ReadyTimeout time.Duration `json:"ready_timeout_s"`
	// Env names the environment variables that it needs: those that the configuration sets, whose values stay
	// there, and those that hold keys, including [HubToken].
	Env []string `json:"env"`
	// APIKeyEnv is the one that holds the key for requests, "" if there is none.
	APIKeyEnv string `json:"api_key_env,omitempty"`
	// File is a file that the command reads its options from; nil if there is none.
	File   *OptionFile `json:"file,omitempty"`
	Limits Limits      `json:"limits"`
	// Replicas counts the instances, GPUs is the number per instance, NodeGPUs that per node.
	Replicas int `json:"replicas"`
	GPUs     int `json:"gpus_per_instance"`
	NodeGPUs int `json:"gpus_per_node"`
	// Notes say what the command line cannot express.
	Notes []string `json:"notes"`
}

// OptionFile is a file that an engine reads its options from.
type OptionFile struct {
	Path    string `json:"path"`    // where the command looks for it
	Content string `json:"content"` // what stands there
}

// Limits are those of one instance; 0 is the engine's default.
type Limits struct {
	// ModelLen is the longest prompt + output of a request, Seqs the most requests running at once,
	// BatchedTokens the most tokens of a step.
	ModelLen      int `json:"max_model_len_tokens"`
	Seqs          int `json:"max_num_seqs"`
	BatchedTokens int `json:"max_num_batched_tokens"`
	// KVTokens is the capacity of its KV cache.
	KVTokens int `json:"kv_cache_tokens"`
}

// Autoscaling is the signal for adding and removing replicas.
type Autoscaling struct {
	// Metric is InFlight, and Level its target per replica.
	Metric string  `json:"metric"`
	Level  float64 `json:"level"`
	// Rate is the rate of one replica at that level, in requests per second.
	Rate float64 `json:"rate_per_s"`
	// SafeLevel is the metric at the safe rate, above which the objective is at risk.
	SafeLevel float64 `json:"level_at_safe_rate"`
	// MinReplicas keeps the spares and one replica per zone, MaxReplicas is the planned fleet.
	MinReplicas int `json:"min_replicas"`
	MaxReplicas int `json:"max_replicas"`
}

// InFlight is the number of requests that a replica is running or has waiting.
const InFlight = "requests_in_flight_per_replica"

// Autoscale returns the signal for the plan's fleet. Level loads the replicas as the plan does at its planned
// rate, headroom and spares included. inFlight gives an instance's requests in flight at a rate.
func (p *Plan) Autoscale(inFlight func(rate float64) float64) *Autoscaling {
	f, safe := &p.Fleet, p.Offer.Rate.Safe
	loaded := roundUp(f.PlannedRate * (1 + f.Headroom) / safe)
	rate := safe / (1 + f.Headroom) * float64(loaded) / float64(f.Instances)
	return &Autoscaling{
		Metric: InFlight, Level: inFlight(rate), Rate: rate, SafeLevel: inFlight(safe),
		MinReplicas: min(f.Instances, max(1+f.Spare, p.Demand.Zones)), MaxReplicas: f.Instances,
	}
}

// Feature is a feature of a configuration, and how the simulated engine treats it.
type Feature struct {
	// Name is the configuration's key or the engine's option, with its value.
	Name  string    `json:"feature"`
	State Modelling `json:"state"` // modelled, approximated or refused
	// How says what is approximated, or what to do about what is refused.
	How string `json:"how,omitempty"`
}

// Modelling says how the simulated engine treats a feature.
type Modelling string

// Modelled features are simulated as the engine has them, and tested against it. Approximated ones are
// simulated with wider intervals, or in part. Refused ones are not simulated: the figures are those of an
// engine without them.
const (
	Modelled     Modelling = "modelled"
	Approximated Modelling = "approximated"
	Refused      Modelling = "refused"
)
