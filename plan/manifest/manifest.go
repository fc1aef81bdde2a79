// Package manifest writes what a plan recommends for those who run it: Kubernetes
// manifests, a Slurm batch script, and Prometheus rules.
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
	"planner/plan"
	"planner/sweep/engine"
)

// Options are what a plan does not say of the place where it is to run.
type Options struct {
	// Name names all objects; "" is made of the model's, and of the Pool's.
	Name string
	// Pool is the class of a mix whose pool is written, "" for all classes.
	Pool string
	// Namespace is that of Kubernetes, "" for the one of whoever applies.
	Namespace string
	// Image is the engine's; "" is the one that its project publishes.
	Image string
	// VolumeClaim is a PersistentVolumeClaim that holds checkpoints; "" for none.
	VolumeClaim string
	// NodeSelector picks nodes by their labels.
	NodeSelector map[string]string
	// NodeGPUs are those of a node, 0 for the plan's.
	NodeGPUs int
	// Env are the values of variables that the engine is started with; {env:NAME} in one
	// stands for the value of another, which is secret.
	Env map[string]string
	// SBatch are further options of sbatch.
	SBatch []string
}

// errNoEngine is of plans that say nothing of how their instances are started.
var errNoEngine = errors.New("the plan does not say how an instance is started: " +
	"it was made of results alone, of a server that ran already, or by an earlier version")

// templateData is what templates are filled in with.
type templateData struct {
	Options
	Plan   *plan.Plan
	Engine *plan.Engine
	Model  *plan.Served
	Scale  *plan.Autoscaling
	// Nodes are those of one instance, PerNode its GPUs on each.
	Nodes, PerNode int
	// Secrets are the variables whose values stand in a Secret; Optional are those of them
	// that an instance may do without.
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
	if d.Nodes > 1 && e.Kind != "vllm" {
		return nil, fmt.Errorf("an instance of %d GPUs spans %d nodes, which is known of vllm alone, not of %s", e.GPUs, d.Nodes, e.Kind)
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

// notInName is what names of Kubernetes objects do not have.
var notInName = regexp.MustCompile(`[^a-z0-9]+`)

// longestName is how long the name of a Service whose pods are numbered may be.
const longestName = 40

// nameOf is a name for the objects of a model, or of a pool of it. A pool that its name does not tell in full has a
// digest behind, so that pools have names of their own.
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

// EnvNames are the variables with values, those first that others stand for. One that stands for itself is a secret alone.
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

// InFlight is the number of requests in flight of the instances whose series a matcher
// picks.
func (d *templateData) InFlight(matcher string) string {
	return fmt.Sprintf("sum(%s{%s}) + sum(%s{%[2]s})", d.Series.Running, matcher, d.Series.Waiting)
}

// Matcher picks the series of the instances; pools of one model differ by their jobs.
func (d *templateData) Matcher() string {
	if d.Series.Model == "" || d.Pool != "" {
		return fmt.Sprintf("job=%q", d.Name)
	}
	return fmt.Sprintf("%s=%q", d.Series.Model, cmp.Or(d.Model.ServedName, d.Model.Checkpoint))
}

// quoted is a string as YAML and JSON both write it.
func quoted(v any) (string, error) {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return strings.TrimSpace(b.String()), err
}

// kubernetesWord is a word of a command in which the values of variables are put by
// Kubernetes: $(NAME).
func kubernetesWord(word string) string {
	word = strings.ReplaceAll(word, "$(", "$$(")
	for _, name := range secret.References(word) {
		word = strings.ReplaceAll(word, "{env:"+name+"}", "$("+name+")")
	}
	return word
}

// shellWord is a word of a command for a POSIX shell.
func shellWord(word string) string { return secret.Shell(word, engine.Quote) }
