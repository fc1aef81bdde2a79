package manifest

import (
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"planner/internal/list"
	"planner/plan"
	"planner/plan/fleet"
	"planner/sweep/engine"
)

//go:embed autoscaler.yaml.tmpl
var autoscalerTemplate string

// Autoscaler writes the policy of a replayed fleet: a HorizontalPodAutoscaler, a KEDA ScaledObject, or llm-d's
// analyser and its HorizontalPodAutoscaler. It scales the Deployment named in the options, by default after the
// model.
func Autoscaler(a *fleet.Answer, model *plan.Served, o Options) ([]byte, error) {
	s := &scaler{Options: o, Answer: a, Policy: &a.Policy, Model: cmp.Or(model.ServedName, model.Checkpoint)}
	s.Name = cmp.Or(o.Name, nameOf(model, ""))
	if s.Policy.Replicas > 0 {
		return nil, fmt.Errorf("the policy is a static fleet of %d, which needs no autoscaler; set spec.replicas: %[1]d", s.Policy.Replicas)
	}
	var err error
	switch by := &s.Policy.Autoscaler; by.Kind {
	case "":
		return nil, errors.New("its answer does not hold the policy, as it was made by an earlier version; replay it again")
	case fleet.Forecast:
		return nil, errors.New("the policy is a forecast, which no object of Kubernetes makes; replay autoscaler kind \"schedule\", \"hpa\" or \"keda\"")
	case fleet.Schedule:
		s.Crons, err = s.Policy.CronTriggers()
	case fleet.ByHPA, fleet.ByKEDA:
		for _, m := range by.Metrics {
			t, problem := s.trigger(m)
			err = cmp.Or(err, problem)
			s.Triggers = append(s.Triggers, t)
		}
	}
	if err != nil {
		return nil, err
	}
	return fillIn(autoscalerTemplate, s)
}

// scaler is the template's data.
type scaler struct {
	Options
	Answer *fleet.Answer
	Policy *fleet.Policy
	// Model is the model's name in requests.
	Model    string
	Triggers []trigger
	Crons    []fleet.CronTrigger
}

// trigger is a metric and its Prometheus queries.
type trigger struct {
	fleet.Metric
	// Query returns the metric of the whole fleet, Pod that of each pod; Pod is "" if there is none.
	Query, Pod string
}

// ID is the metric's name in the cluster.
func (t trigger) ID() string { return "llm_" + t.Name }

// Quantity is the target in Kubernetes notation.
func (t trigger) Quantity() string { return strconv.FormatFloat(1000*t.Target, 'f', 0, 64) + "m" }

// Threshold is the target in KEDA notation.
func (t trigger) Threshold() string { return exact(t.Target) }

func (s *scaler) trigger(m fleet.Metric) (trigger, error) {
	window := fmt.Sprintf("%.0fs", max(s.Policy.Autoscaler.Monitor.Window, time.Minute).Seconds())
	rate := func(series string) string { return fmt.Sprintf("rate(%s{%%[1]s}[%s])", series, window) }
	const running, waiting = "vllm:num_requests_running{%[1]s}", "vllm:num_requests_waiting{%[1]s}"
	var parts []string
	switch m.Name {
	case "in_flight":
		parts = []string{running, waiting}
	case "waiting":
		parts = []string{waiting}
	case "kv_usage":
		parts = []string{"vllm:kv_cache_usage_perc{%[1]s}"}
	case "requests_per_s":
		parts = []string{rate("vllm:request_success_total")}
	case "tokens_per_s":
		parts = []string{rate("vllm:prompt_tokens_total"), rate("vllm:generation_tokens_total")}
	case "ttft_p50_ms", "ttft_p90_ms", "ttft_p99_ms":
		q := "0." + m.Name[len("ttft_p"):len("ttft_p")+2]
		query := fmt.Sprintf("1000 * histogram_quantile(%s, sum by (le) (%s))", q, rate("vllm:time_to_first_token_seconds_bucket"))
		return trigger{Metric: m, Query: fmt.Sprintf(query, s.matcher())}, nil
	default:
		return trigger{}, fmt.Errorf("%s is no series of an engine; replay autoscaler kind \"saturation\", which llm-d's analyser does, "+
			"or another metric", m.Name)
	}
	sum := func(by string) string {
		return strings.Join(list.Map(parts, func(part string) string { return "sum" + by + "(" + part + ")" }), " + ")
	}
	return trigger{m, fmt.Sprintf(sum(""), s.matcher()), fmt.Sprintf(sum(" by (<<.GroupBy>>) "), "<<.LabelMatchers>>")}, nil
}

func (s *scaler) matcher() string {
	return fmt.Sprintf("%s=%q", engine.SeriesOf("vllm").Model, s.Model)
}

func exact(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

// Rows describes, line by line, what was replayed and where the targets come from.
func (s *scaler) Rows() []string {
	a := s.Answer
	share := func(e fleet.Estimate) string {
		if math.IsNaN(e.Low) {
			return fmt.Sprintf("%.1f %%", 100*e.Value)
		}
		return fmt.Sprintf("%.1f %% (%.1f-%.1f)", 100*e.Value, 100*e.Low, 100*e.High)
	}
	rows := []string{fleet.Name(s.Policy),
		fmt.Sprintf("Replayed on %d draws of the traffic: %s of the requests within their limits, %.2f replicas in",
			len(a.Seeds), share(a.Attainment), a.Replicas.Mean.Value),
		fmt.Sprintf("the mean, at most %d, %.1f GPU hours.", a.Replicas.Peak, a.Replicas.GPUHours.Value)}
	if f := a.Search; f != nil && f.Chosen != "" {
		rows = append(rows, fmt.Sprintf("The cheapest of %d policies that keeps what is asked; %s on traffic that it was not chosen on.",
			f.Policies, share(*f.HeldOut)))
	} else {
		rows = append(rows, "Its figures are those of the configuration that was replayed.")
	}
	for _, t := range s.Triggers {
		of := "ceil(sum over the replicas / " + exact(t.Target) + ")"
		if t.Pod == "" {
			of = "ceil(replicas x value / " + exact(t.Target) + ")"
		}
		rows = append(rows, fmt.Sprintf("%s, target %s: wanted are %s replicas; within %.0f %% of the target none more or fewer.",
			t.Name, exact(t.Target), of, 100*s.Policy.Autoscaler.HPA.Tolerance))
	}
	if s.Tolerance() != "" {
		rows = append(rows, "The tolerance is taken by Kubernetes 1.35 and newer, and by 1.33 and 1.34 with the feature gate",
			"HPAConfigurableTolerance.")
	}
	return rows
}

// Tolerance is the tolerance of both directions in Kubernetes notation; "" for the default.
func (s *scaler) Tolerance() string {
	if t := s.Policy.Autoscaler.HPA.Tolerance; t != fleet.UsualHPA().Tolerance {
		return exact(t)
	}
	return ""
}

// Behaviors limit how fast it scales up and down.
func (s *scaler) Behaviors() map[string]fleet.Behavior {
	return map[string]fleet.Behavior{"scaleUp": s.Policy.Autoscaler.HPA.Up, "scaleDown": s.Policy.Autoscaler.HPA.Down}
}
