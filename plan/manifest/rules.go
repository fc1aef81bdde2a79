package manifest

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"planner/plan"
	"planner/sweep/measure"
)

// Rule is a rule that records a series or raises an alert.
type Rule struct {
	Record      string            `yaml:"record,omitempty"`
	Alert       string            `yaml:"alert,omitempty"`
	Expr        string            `yaml:"expr"`
	For         string            `yaml:"for,omitempty"`
	Labels      map[string]string `yaml:"labels,omitempty"`
	Annotations map[string]string `yaml:"annotations,omitempty"`
}

// Rules writes the Prometheus rules of a plan: they record the plan's figures per replica and the replicas'
// own, and raise alerts if these exceed the plan or the objective.
func Rules(p *plan.Plan, o Options) ([]byte, error) {
	d, err := newDeployment(p, o)
	if err != nil {
		return nil, err
	}
	if d.Series.Running == "" || d.Series.Waiting == "" {
		return nil, fmt.Errorf("engine.kind %q tells Prometheus nothing of its requests: there is nothing to make rules of", d.Engine.Kind)
	}
	data, err := yaml.Marshal(map[string][]map[string]any{"groups": {
		{"name": d.Name + "-plan", "rules": d.recorded()},
		{"name": d.Name + "-alerts", "rules": append(d.loadAlerts(), d.objectiveAlerts()...)},
	}})
	if err != nil {
		return nil, err
	}
	head := fmt.Sprintf("# The plan of %s as Prometheus rules: %d replicas for %.4g requests/s. Check with: promtool check rules FILE\n",
		d.Name, d.Engine.Replicas, p.Fleet.PlannedRate)
	_, left := d.watched()
	for _, b := range left {
		head += fmt.Sprintf("# No alert watches %s: engines tell no classes apart.\n", b)
	}
	return append([]byte(head), data...), nil
}

// Names of the recorded series.
const (
	inFlightSeries = "llm:requests_in_flight:per_replica"
	plannedSeries  = "llm:requests_in_flight:planned_per_replica"
	safeSeries     = "llm:requests_in_flight:safe_per_replica"
	replicaSeries  = "llm:replicas:serving"
	fleetSeries    = "llm:replicas:planned"
)

// watched returns the limits of the objective on all requests, with goodput split by latency, and those left,
// of single classes.
func (d *templateData) watched() (bounds, left []measure.Bound) {
	for _, b := range d.Plan.Objective.Bounds {
		if b.Class != "" {
			left = append(left, b)
		} else {
			for _, part := range (measure.SLO{Bounds: []measure.Bound{b}}).Latencies() {
				if !slices.Contains(bounds, part) {
					bounds = append(bounds, part)
				}
			}
		}
	}
	return bounds, left
}

// recorded returns rules for the plan's figures and, in the same units, for what the replicas do.
func (d *templateData) recorded() []Rule {
	label := map[string]string{"plan": d.Name}
	record := func(series, expr string) Rule { return Rule{Record: series, Expr: expr, Labels: label} }
	all := []Rule{
		// A replica may have several series: one per attention replica.
		record(replicaSeries, fmt.Sprintf("count(count by (instance) (%s{%s}))", d.Series.Running, d.Matcher())),
		record(fleetSeries, fmt.Sprintf("vector(%d)", d.Engine.Replicas)),
		record(inFlightSeries, fmt.Sprintf("(%s) / count(count by (instance) (%s{%s}))", d.InFlight(d.Matcher()), d.Series.Running, d.Matcher())),
	}
	if d.Scale != nil {
		all = append(all, record(plannedSeries, vector(d.Scale.Level)), record(safeSeries, vector(d.Scale.SafeLevel)))
	}
	bounds, _ := d.watched()
	for _, m := range measure.AllLatencies() {
		series := d.Series.Latencies[m]
		if series == "" {
			continue
		}
		// The p99, which dashboards show, and the quantiles of the objective.
		quantiles := []float64{0.99}
		for _, b := range bounds {
			if b.Metric == m && b.Quantile > 0 && !slices.Contains(quantiles, b.Quantile) {
				quantiles = append(quantiles, b.Quantile)
			}
		}
		for _, q := range quantiles {
			stat := strings.ReplaceAll(measure.StatName(q), ".", "_")
			all = append(all, record("llm:"+m.String()+"_seconds:"+stat+"_5m", quantileOf(q, series, d.Matcher(), "5m")))
		}
	}
	return all
}

func vector(x float64) string { return "vector(" + strconv.FormatFloat(x, 'g', 6, 64) + ")" }

// alert returns a rule that says what is wrong and what to do.
func (d *templateData) alert(name, severity, expr string, wait time.Duration, summary, description string) Rule {
	return Rule{Alert: name, Expr: expr, For: short(wait), Labels: map[string]string{"plan": d.Name, "severity": severity},
		Annotations: map[string]string{"summary": d.Name + ": " + summary, "description": description}}
}

func short(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return strings.TrimSuffix(d.String(), "0s")
}

// loadAlerts are raised if no replica serves, or if replicas have more load than planned; the latter not for a
// job, whose replicas are full until it ends.
func (d *templateData) loadAlerts() []Rule {
	mine := fmt.Sprintf(`{plan=%q}`, d.Name)
	all := []Rule{d.alert("LLMNoReplica", "page", fmt.Sprintf("absent(%s{%s})", d.Series.Running, d.Matcher()), 5*time.Minute,
		"no replica tells of itself", "Nothing serves, or Prometheus does not find the replicas.")}
	if d.Plan.Demand.Job != nil {
		return all
	}
	if d.Scale != nil {
		all = append(all,
			d.alert("LLMLoadAbovePlan", "ticket", inFlightSeries+mine+" > 1.1 * "+plannedSeries+mine, 15*time.Minute,
				"replicas have {{ $value | humanize }} requests in flight each",
				fmt.Sprintf("The plan gives each %.3g. Headroom is being used up: add replicas, or plan anew for this load.", d.Scale.Level)),
			d.alert("LLMLoadUnsafe", "page", inFlightSeries+mine+" > "+safeSeries+mine, 5*time.Minute,
				"replicas have {{ $value | humanize }} requests in flight each, more than is safe",
				fmt.Sprintf("Beyond %.3g the objective is in danger: add replicas or shed load.", d.Scale.SafeLevel)))
	}
	waiting := fmt.Sprintf("sum(%s{%s})", d.Series.Waiting, d.Matcher())
	all = append(all, d.alert("LLMQueueGrows", "page", fmt.Sprintf("%s > 0.1 * sum(%s{%s}) and %[1]s > %[4]d and deriv(%s[10m:30s]) > 0",
		waiting, d.Series.Running, d.Matcher(), d.Engine.Replicas, waiting), 5*time.Minute,
		"{{ $value | humanize }} requests wait, and their number grows", "More arrives than is served. Add replicas or shed load."))
	if d.Series.KVUsage != "" {
		all = append(all, d.alert("LLMCacheFull", "ticket", fmt.Sprintf("max(%s{%s}) > 0.9", d.Series.KVUsage, d.Matcher()), 10*time.Minute,
			"a replica's KV cache is {{ $value | humanizePercentage }} full",
			"Requests are longer, or more of them run, than planned: preemptions are next."))
	}
	if d.Series.Preemptions != "" {
		rate := fmt.Sprintf("sum(rate(%s{%s}[10m])) > 0.01", d.Series.Preemptions, d.Matcher())
		all = append(all, d.alert("LLMPreemptions", "ticket", rate, 10*time.Minute,
			"{{ $value | humanize }} preemptions per second", "Requests lose their place for want of KV cache, and are computed again."))
	}
	return all
}

func quantileOf(q float64, series, matcher, window string) string {
	return fmt.Sprintf("histogram_quantile(%s, sum by (le) (rate(%s_bucket{%s}[%s])))",
		strconv.FormatFloat(q, 'g', 5, 64), series, matcher, window)
}

// burnRates are the rates at which the allowed requests beyond a limit are used up, as multiples of what the
// objective allows, over a long window and a short one (multi-window burn rates, the site reliability
// workbook).
var burnRates = []struct {
	times       float64
	long, short string
	severity    string
}{{14.4, "1h", "5m", "page"}, {6, "6h", "30m", "ticket"}}

// mostBeyond caps the share of requests beyond a limit that raises an alert.
const mostBeyond = 0.9

// objectiveAlerts are raised if too many requests are beyond a limit of the objective. A share s is beyond it
// exactly if the quantile 1-s is, so that the limit need not be a bound of the histogram.
func (d *templateData) objectiveAlerts() []Rule {
	var all []Rule
	bounds, _ := d.watched()
	for _, m := range measure.AllLatencies() {
		series, told := d.Series.Latencies[m], strings.ToUpper(m.String())
		for _, b := range bounds {
			if series == "" || b.Metric != m {
				continue
			}
			name, limit := "LLM"+told, strconv.FormatFloat(b.Limit.Seconds(), 'g', -1, 64)
			if b.Quantile == 0 {
				mean := fmt.Sprintf("sum(rate(%s_sum{%s}[30m])) / sum(rate(%[1]s_count{%[2]s}[30m]))", series, d.Matcher())
				all = append(all, d.alert(name+"MeanHigh", "page", mean+" > "+limit, 10*time.Minute,
					"mean "+told+" is {{ $value | humanizeDuration }}", fmt.Sprintf("The objective is %v.", b.Limit)))
				continue
			}
			for _, r := range burnRates {
				beyond := min(r.times*b.Allowed(), mostBeyond)
				over := func(window string) string {
					return quantileOf(1-beyond, series, d.Matcher(), window) + " > " + limit
				}
				all = append(all, d.alert(name+"BudgetBurns", r.severity, over(r.long)+" and "+over(r.short), 0,
					fmt.Sprintf("over %.3g %% of the requests of %s are beyond %v %s", 100*beyond, r.long, b.Limit, told),
					fmt.Sprintf("The objective allows %.3g %%: the share of a month is used up in %s.", 100*b.Allowed(), usedUp(beyond/b.Allowed()))))
			}
		}
	}
	return all
}

// usedUp returns the time in which a month's share is used up at a multiple of its rate.
func usedUp(times float64) string {
	hours := 30 * 24 / times
	if hours < 48 {
		return fmt.Sprintf("%d hours", int(math.Round(hours)))
	}
	return fmt.Sprintf("%d days", int(math.Round(hours/24)))
}
