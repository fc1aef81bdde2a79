package config

import (
	"net/url"
	"os"
	"regexp"
	"strings"
	"time"

	"planner/model"
)

// Engine is what serves the requests, simulated or real.
type Engine struct {
	// Kind is "simulated", an engine's name, "command" or "attach".
	Kind string
	// Version of the engine that is simulated; "" means the newest known.
	Version string
	// Calibration is the path of a file of fitted constants; "" means none.
	Calibration string
	Parallel    Parallel
	Endpoint    Endpoint
	Launch      Launch
}

// Parallel says how one instance is spread over GPUs. Tensor is a choice, the
// other degrees are fixed.
type Parallel struct {
	Tensor         []int
	Pipeline, Data int
	Expert         bool
}

// Endpoint says how to talk to a real engine.
type Endpoint struct {
	// URL of a server that runs already; Kind is then "attach".
	URL string
	// ServedName is the model's name in requests; "" means the first one that the
	// server lists.
	ServedName string
	// API is "completions" or "chat".
	API     string
	Stream  bool
	Headers map[string]string
	// APIKeyEnv is the name of the environment variable that holds the key.
	APIKeyEnv string
}

// Launch says how to start a real engine.
type Launch struct {
	// Launcher is "local", "slurm" or "kubernetes".
	Launcher string
	// Command is the argument list of an engine of Kind "command".
	Command      []string
	Env          map[string]string
	ExtraArgs    []string
	ReadyTimeout time.Duration
}

func engineDefaults() Engine {
	return Engine{
		Kind:     "simulated",
		Parallel: Parallel{Tensor: []int{1}, Pipeline: 1, Data: 1},
		Endpoint: Endpoint{API: "completions", Stream: true, Headers: map[string]string{}},
		Launch: Launch{
			Launcher: "local", Command: []string{}, Env: map[string]string{}, ExtraArgs: []string{},
			ReadyTimeout: 20 * time.Minute,
		},
	}
}

// engineKinds lists what engine.kind may say.
func engineKinds() []string {
	return []string{"simulated", "vllm", "sglang", "trtllm", "tgi", "llama-server", "lmdeploy", "command", "attach"}
}

// engineKeys are the keys of [engine].
func engineKeys() []key {
	keys := []key{
		{"engine.kind", strings.Join(engineKinds(), " "), func(d *draft) value { return word{&d.engine.Kind, engineKinds()} }},
		{"engine.tensor_parallel", "or a list", func(d *draft) value { return wholes(&d.engine.Parallel.Tensor) }},
		{"engine.pipeline_parallel", "pipeline stages", func(d *draft) value { return whole{&d.engine.Parallel.Pipeline, 1} }},
		{"engine.data_parallel", "replicas of attention inside one instance", func(d *draft) value {
			return whole{&d.engine.Parallel.Data, 1}
		}},
		{"engine.expert_parallel", "mixture of experts: whole experts on each GPU of the tensor-parallel group", func(d *draft) value {
			return truth{&d.engine.Parallel.Expert}
		}},
		{"engine.version", `of the engine that is simulated, "0.11.0"; "" = the newest known`, func(d *draft) value {
			return word{&d.engine.Version, nil}
		}},
		{"engine.calibration", "file from planner calibrate", func(d *draft) value { return pathname{&d.engine.Calibration} }},
	}
	return append(keys, serverKeys()...)
}

// serverKeys are those of [engine] that only real engines use.
func serverKeys() []key {
	return []key{
		{"engine.command", `kind = "command": argv; {port}, {model}, {max_num_seqs}, ... are filled in`, func(d *draft) value {
			return words{&d.engine.Launch.Command}
		}},
		{"engine.url", `kind = "attach": where the server listens`, func(d *draft) value { return address{&d.engine.Endpoint.URL} }},
		{"engine.served_name", `the model's name in requests; "" = the first of /v1/models`, func(d *draft) value {
			return word{&d.engine.Endpoint.ServedName, nil}
		}},
		{"engine.launcher", "local slurm kubernetes", func(d *draft) value {
			return word{&d.engine.Launch.Launcher, []string{"local", "slurm", "kubernetes"}}
		}},
		{"engine.api", "completions chat", func(d *draft) value {
			return word{&d.engine.Endpoint.API, []string{"completions", "chat"}}
		}},
		{"engine.stream", "ask for tokens as they come", func(d *draft) value { return truth{&d.engine.Endpoint.Stream} }},
		{"engine.headers", "sent with every request", func(d *draft) value { return table{&d.engine.Endpoint.Headers, checkHeader} }},
		{"engine.env", "environment of the engine", func(d *draft) value { return table{&d.engine.Launch.Env, checkVariable} }},
		{"engine.extra_args", "put behind the engine's own arguments", func(d *draft) value {
			return words{&d.engine.Launch.ExtraArgs}
		}},
		{"engine.ready_timeout", "from start until the engine answers", func(d *draft) value {
			return period{&d.engine.Launch.ReadyTimeout, false}
		}},
		{"engine.api_key_env", "the NAME of an environment variable; the key itself is never read from a file nor written anywhere", func(d *draft) value {
			return variable{&d.engine.Endpoint.APIKeyEnv}
		}},
	}
}

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// keyMark is how the keys of the usual providers begin.
var keyMark = regexp.MustCompile(`^(sk|pk|rk|hf|gsk|xai|nvapi|ghp|glpat)[-_]|^eyJ|^AKIA|^AIza|^Bearer `)

// variable is the name of an environment variable. What is refused is not quoted:
// it may be the key.
type variable struct{ p *string }

func (v variable) take(n node) {
	s, ok := n.only().typed()
	if !ok || s != "" && (!variableName.MatchString(s) || keyMark.MatchString(s)) {
		n.refuse("is not the name of an environment variable, want letters, digits and _, such as MY_API_KEY; the key itself belongs into that variable, not here")
		return
	}
	*v.p = s
}

func (v variable) text() string { return quote(*v.p) }

var secretHeader = regexp.MustCompile(`(?i)^(authorization|proxy-authorization|cookie|x-.*token|.*api-?key.*|.*secret.*)$`)

// checkHeader keeps keys out of the file, from where they would be copied into the
// run folder.
func checkHeader(n node, name string) bool {
	s, _ := n.typed()
	if secretHeader.MatchString(name) || keyMark.MatchString(s) {
		n.refuse("is a secret, want it in an environment variable that api_key_env names")
		return false
	}
	return true
}

var secretVariable = regexp.MustCompile(`(?i)(^|_)(token|secret|password|api_?key|access_?key)$`)

// checkVariable does the same for the environment.
func checkVariable(n node, name string) bool {
	s, _ := n.typed()
	switch {
	case !variableName.MatchString(name):
		n.refuse("is no name of an environment variable, want letters, digits and _")
	case s != "" && (secretVariable.MatchString(name) || keyMark.MatchString(s)):
		n.refuse("is a secret, want it set in the environment of planner instead of in a file")
	default:
		return true
	}
	return false
}

// address is an http or https URL.
type address struct{ p *string }

func (v address) take(n node) {
	n = n.only()
	s, ok := readWord(n, nil)
	if !ok {
		return
	}
	if strings.Contains(s, "@") { // not quoted: it may be a password
		n.refuse("holds a user or a password, want a URL without; api_key_env names the variable of a key")
		return
	}
	u, err := url.Parse(s)
	if s != "" && (err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
		n.wrong("an http or https URL, such as http://127.0.0.1:8000")
		return
	}
	*v.p = s
}

func (v address) text() string { return quote(*v.p) }

// checkEngine looks at what concerns several keys of [engine].
func (r *reader) checkEngine(d *draft, need Need) {
	e := &d.engine
	switch {
	case e.Kind == "attach" && e.Endpoint.URL == "" && r.clean("engine.url"):
		r.missing("engine.url", "engine.kind", `is missing, want the server's URL, because kind is "attach"`)
	case e.Kind == "command" && len(e.Launch.Command) == 0 && r.clean("engine.command"):
		r.missing("engine.command", "engine.kind", `is missing, want the engine's argument list, because kind is "command"`)
	case e.Kind == "command" && len(e.Launch.Command) > 0 && e.Launch.Command[0] == "":
		r.at("engine.command").refuse("begins with an empty string, want the name of a program")
	}
	if _, err := model.ParseVersion(e.Version); err != nil && need.simulates(d) {
		n := r.at("engine.version")
		n.value = e.Version
		n.wrong("a release such as 0.15.1, or nothing for the newest known")
	}
	if e.Calibration != "" && need.Engine != NoEngine {
		if _, err := os.Stat(e.Calibration); err != nil {
			r.at("engine.calibration").refuse("%s cannot be read: %s, want a file from planner calibrate",
				e.Calibration, reason(err))
		}
	}
}
