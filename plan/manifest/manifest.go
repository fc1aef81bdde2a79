// Package manifest writes a plan's recommendation for operators: Kubernetes manifests, a Slurm batch script,
// and Prometheus rules.
package manifest

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"time"

	"planner/internal/secret"
	"planner/model"
	"planner/plan"
	"planner/sweep/engine"
)

// Options are facts about the target environment that a plan does not contain.
type Options struct {
	// Name names all objects; if "", it is made of the model's name and Pool.
	Name string
	// Pool is the class of a mix whose pool is written; "" means all classes.
	Pool string
	// Namespace is the Kubernetes namespace; "" leaves it to whoever applies the manifests.
	Namespace string
	// Image is the engine's image; "" means the one that its project publishes.
	Image string
	// VolumeClaim is a PersistentVolumeClaim that holds checkpoints; "" means none.
	VolumeClaim string
	// NodeSelector picks nodes by their labels.
	NodeSelector map[string]string
	// NodeGPUs is the number of GPUs of a node; 0 means the plan's.
	NodeGPUs int
	// Env are environment variables of the engine; {env:NAME} in a value stands for that of another, secret
	// variable.
	Env map[string]string
	// SBatch are additional options of sbatch.
	SBatch []string
}

// errNoEngine is returned for plans that do not say how their instances are started.
var errNoEngine = errors.New("the plan does not say how an instance is started: " +
	"it was made of results alone, of a server that ran already, or by an earlier version")

// templateData is the templates' data.
type templateData struct {
	Options
	Plan   *plan.Plan
	Engine *plan.Engine
	Model  *plan.Served
	Scale  *plan.Autoscaling
	// Nodes is the number of nodes of one instance, PerNode that of its GPUs on each.
	Nodes, PerNode int
	// Secrets are the variables whose values are in a Secret; Optional is the one of them that an instance can
	// do without.
	Secrets  []string
	Optional string
	Series   engine.SeriesNames
}

func newDeployment(p *plan.Plan, o Options) (*templateData, error) {
	e, m := p.Handover.Engine, p.Handover.Model
	if e == nil || m == nil {
		return nil, errNoEngine
	}
	if slices.Contains(e.Argv, secret.Hidden) {
		return nil, errors.New("the plan's command has a hidden key; write {env:NAME} in engine.extra_args instead and plan again")
	}
	o.Name = cmp.Or(o.Name, nameOf(m, o.Pool))
	d := &templateData{Options: o, Plan: p, Engine: e, Model: m, Scale: p.Handover.Autoscaling, Nodes: 1, PerNode: e.GPUs,
		Series: engine.SeriesOf(e.Kind)}
	if on := cmp.Or(o.NodeGPUs, e.NodeGPUs); on > 0 && e.GPUs > on {
		if e.GPUs%on != 0 {
			return nil, fmt.Errorf("an instance of %d GPUs does not fill nodes of %d; give --node-gpus", e.GPUs, on)
		}
		d.Nodes, d.PerNode = e.GPUs/on, on
	}
	d.Secrets = secret.References(slices.Concat(e.Argv, slices.Collect(maps.Values(o.Env)))...)
	if e.APIKeyEnv != "" {
		d.Secrets = append(d.Secrets, e.APIKeyEnv)
	}
	if !m.Local() && !slices.Contains(d.Secrets, plan.HubToken) && o.Env[plan.HubToken] == "" {
		d.Secrets, d.Optional = append(d.Secrets, plan.HubToken), plan.HubToken
	}
	slices.Sort(d.Secrets)
	d.Secrets = slices.Compact(d.Secrets)
	return d, nil
}

// spreads returns an error if it is not known how an instance of several nodes is started.
func (d *templateData) spreads() error {
	e := d.Engine
	switch v, err := model.ParseVersion(e.Version); {
	case d.Nodes > 1 && e.Kind != "vllm":
		return fmt.Errorf("an instance of %d GPUs spans %d nodes, which is known of vllm alone, not of %s", e.GPUs, d.Nodes, e.Kind)
	case d.Nodes > 1 && err == nil && !v.AtLeast(0, 12): // vLLM pull request 23691
		return fmt.Errorf("an instance of %d GPUs spans %d nodes, for which vLLM %s has no options; 0.12 has them", e.GPUs, d.Nodes, e.Version)
	}
	return nil
}

// notInName matches what names of Kubernetes objects cannot contain.
var notInName = regexp.MustCompile(`[^a-z0-9]+`)

// longestName is the longest name for a Service whose pods are numbered.
const longestName = 40

// nameOf returns a name for the objects of a model, or of a pool of it. A digest is appended if the name does
// not show the pool in full, so that pools have distinct names.
func nameOf(m *plan.Served, pool string) string {
	plain := func(text string) string {
		return strings.Trim(notInName.ReplaceAllString(strings.ToLower(text), "-"), "-")
	}
	name, digest := plain(cmp.Or(m.Name, m.Checkpoint)+" "+pool), ""
	if name == "" || name[0] < 'a' {
		name = "llm-" + name
	}
	if pool != "" && (plain(pool) != pool || len(name) > longestName) {
		digest = fmt.Sprintf("-%.4x", sha256.Sum256([]byte(pool)))
	}
	return strings.Trim(name[:min(len(name), longestName-len(digest))], "-") + digest
}

// EnvNames are the variables with values, those that refer to fewest others first. One that refers to itself is
// only a secret and is left out.
func (d *templateData) EnvNames() []string {
	names := slices.SortedFunc(maps.Keys(d.Env), func(a, b string) int {
		refers := func(name string) int { return len(secret.References(d.Env[name])) }
		return cmp.Or(cmp.Compare(refers(a), refers(b)), cmp.Compare(a, b))
	})
	return slices.DeleteFunc(names, func(name string) bool { return d.Env[name] == "{env:"+name+"}" })
}

func fillIn(text string, d any) ([]byte, error) {
	t := template.New("")
	include := func(name string, data any) (string, error) {
		var b strings.Builder
		err := t.ExecuteTemplate(&b, name, data)
		return b.String(), err
	}
	indent := func(n int, text string) string { return strings.ReplaceAll(text, "\n", "\n"+strings.Repeat(" ", n)) }
	fixed := func(x float64) string {
		if x < 1 {
			return strconv.FormatFloat(x, 'g', 2, 64)
		}
		return strconv.FormatFloat(x, 'f', 1, 64)
	}
	t.Funcs(template.FuncMap{"json": quoted, "shell": shellWord, "refer": kubernetesWord, "include": include, "indent": indent, "fixed": fixed,
		"exact": exact, "seconds": func(d time.Duration) int { return int(d.Seconds()) }, "title": func(s string) string { return strings.ToUpper(s[:1]) + s[1:] }})
	if _, err := t.Parse(text); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := t.Execute(&out, d); err != nil {
		return nil, fmt.Errorf("write manifests: %w", err)
	}
	return out.Bytes(), nil
}

// InFlight is the query of the requests in flight on the instances that a matcher selects.
func (d *templateData) InFlight(matcher string) string {
	return fmt.Sprintf("sum(%s{%s}) + sum(%s{%[2]s})", d.Series.Running, matcher, d.Series.Waiting)
}

// Matcher selects the series of the instances; pools of one model differ by job.
func (d *templateData) Matcher() string {
	if d.Series.Model == "" || d.Pool != "" {
		return fmt.Sprintf("job=%q", d.Name)
	}
	return fmt.Sprintf("%s=%q", d.Series.Model, cmp.Or(d.Model.ServedName, d.Model.Checkpoint))
}

// quoted formats a string as it is valid in both YAML and JSON.
func quoted(v any) (string, error) {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return strings.TrimSpace(b.String()), err
}

// kubernetesWord returns a word of a command in which Kubernetes expands variables: $(NAME).
func kubernetesWord(word string) string {
	word = strings.ReplaceAll(word, "$(", "$$(")
	for _, name := range secret.References(word) {
		word = strings.ReplaceAll(word, "{env:"+name+"}", "$("+name+")")
	}
	return word
}

// shellWord quotes a word of a command for a POSIX shell.
func shellWord(word string) string { return secret.Shell(word, engine.Quote) }
