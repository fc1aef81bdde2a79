package config

import (
	"cmp"
	"slices"
	"time"

	"planner/plan/fleet"
)

// autoscaler binds a key to an autoscaler's table; an empty table means none.
func autoscaler(a *fleet.Autoscaler) binding {
	return binding{func(n input) {
		single, before := fleet.Metric{}, len(n.r.problems)
		tableAt(func() []tomlKey { return autoscalerRows(a, &single) }, "kind").take(n)
		if len(n.r.problems) == before {
			n.checkAutoscaler(a, single)
		}
	}, func() string {
		if a.Kind == fleet.None {
			return "{}"
		}
		return printTable(autoscalerRows(a, new(fleet.Metric)))
	}, nil}
}

// autoscalerRows are the keys of an autoscaler of any kind; a single metric may be given besides the list.
func autoscalerRows(a *fleet.Autoscaler, single *fleet.Metric) []tomlKey {
	long, short := durationIn(above(0)), durationIn(atLeast(0))
	metrics := tablesOf(func(m *fleet.Metric) []tomlKey {
		return []tomlKey{{"metric", "", words(fleet.MetricNames()...).in(&m.Name)}, {"target", "", numberIn(above(0)).in(&m.Target)},
			{"activation", "", orNothing(numberIn(atLeast(0))).in(&m.Activation)}}
	}, `a list of metrics, such as [{ metric = "in_flight", target = 40 }]`, "metric", "target")
	entries := tablesOf(func(e *fleet.Entry) []tomlKey {
		return []tomlKey{{"cron", "", cron(e).in(&e.Cron)}, {"replicas", "", wholeIn(atLeast(0)).in(&e.Replicas)}}
	}, `a list of times, such as [{ cron = "0 8 * * 1-5", replicas = 6 }]`, "cron", "replicas")
	h, m, s := &a.HPA, &a.Monitor, &a.Analyser
	return []tomlKey{
		{"kind", ": " + nameList(fleet.Kinds()), words(fleet.Kinds()...).in(&a.Kind)},
		{"metric", "", orNothing(words(fleet.MetricNames()...)).in(&single.Name)},
		{"target", "", orNothing(numberIn(above(0))).in(&single.Target)},
		{"metrics", "", metrics.in(&a.Metrics)},
		{"sync", "", long.in(&h.Sync)},
		{"tolerance", "", numberIn(atLeast(0).below(1)).in(&h.Tolerance)},
		{"scale_up", "", behavior(&h.Up)},
		{"scale_down", "", behavior(&h.Down)},
		{"scrape", "", long.in(&m.Scrape)},
		{"window", "", short.in(&m.Window)},
		{"delay", "", short.in(&m.Delay)},
		{"polling", "", long.in(&a.KEDA.Polling)},
		{"cooldown", "", short.in(&a.KEDA.Cooldown)},
		{"activation", "", orNothing(numberIn(atLeast(0))).in(&single.Activation)},
		{"signal", "", either("measured", "predicted").in(&m.Predicted)},
		{"quantile", "", numberIn(atLeast(0).below(1)).in(&m.Quantile)},
		{"interval", "", long.in(&s.Interval)},
		{"up", "", numberIn(above(0)).in(&s.Up)},
		{"down", "", numberIn(above(0)).in(&s.Down)},
		{"cap", "", numberIn(atLeast(0)).in(&s.Cap)},
		{"ema", "", numberIn(above(0).atMost(1)).in(&s.Smoothing)},
		{"schedule", "", entries.in(&a.Entries)},
		{"lead", "", short.in(&a.Outlook.Lead)},
		{"margin", "", numberIn(atLeast(0)).in(&a.Outlook.Margin)},
	}
}

func (n input) checkAutoscaler(a *fleet.Autoscaler, single fleet.Metric) {
	before := len(n.r.problems)
	switch {
	case single.Name != "" && single.Target == 0:
		n.refuse("has the metric %q without a target, want target = 40 or the like", single.Name)
	case single.Target > 0 && single.Name == "" && a.Kind != fleet.Forecast:
		n.refuse("has a target without a metric, want metric = one of %v", fleet.MetricNames())
	case single.Activation > 0 && single.Name == "":
		n.refuse("has an activation without a metric, want it beside metric, or in each of metrics")
	case single.Target > 0:
		single.Name = cmp.Or(single.Name, "requests_per_s")
		a.Metrics = append(a.Metrics, single)
	}
	if len(n.r.problems) > before {
		return
	}
	needs := a.Kind == fleet.ByHPA || a.Kind == fleet.ByKEDA || a.Kind == fleet.Forecast
	switch {
	case needs && len(a.Metrics) == 0 && a.Kind == fleet.Forecast:
		n.refuse("lacks the key target, the requests/s that one replica carries")
	case needs && len(a.Metrics) == 0:
		n.refuse("lacks the keys metric and target")
	case a.Kind == fleet.Forecast && slices.ContainsFunc(a.Metrics, func(m fleet.Metric) bool { return m.Name != "requests_per_s" }):
		n.refuse("is a forecast of requests/s, want metric = \"requests_per_s\"")
	case len(a.HPA.Up.Policies) == 0 || len(a.HPA.Down.Policies) == 0:
		n.refuse(`has an empty list of policies, want at least one, or select = "disabled"`)
	case a.Kind == fleet.Schedule && len(a.Entries) == 0:
		n.refuse(`lacks the key schedule, such as [{ cron = "0 8 * * 1-5", replicas = 6 }]`)
	case a.Kind == fleet.Saturation && a.Analyser.Down >= a.Analyser.Up:
		n.refuse("scales down below %s and up above %s, want down below up", number(a.Analyser.Down), number(a.Analyser.Up))
	}
}

// behavior is a table of how fast an HPA scales in one direction; keys that are not given keep their defaults.
func behavior(b *fleet.Behavior) binding {
	policies := tablesOf(func(p *fleet.ScalingPolicy) []tomlKey {
		p.Period = cmp.Or(p.Period, 15*time.Second)
		return []tomlKey{
			{"type", ": pods percent", either("pods", "percent").in(&p.Percent)},
			{"value", "", wholeIn(above(0)).in(&p.Value)},
			{"period", "", durationIn(above(0)).in(&p.Period)},
		}
	}, `a list of policies, such as [{ type = "pods", value = 4, period = "60s" }]`, "type", "value")
	return tableAt(func() []tomlKey {
		return []tomlKey{
			{"stabilization", "", durationIn(atLeast(0)).in(&b.Stabilization)},
			{"select", "", words("max", "min", "disabled").in(&b.Select)},
			{"policies", "", policies.in(&b.Policies)},
		}
	})
}

// either is one of two words, the second of which means true.
func either(no, yes string) codec[bool] {
	word := words(no, yes)
	return codec[bool]{read: func(n input) bool { return word.read(n) == yes }, print: func(b bool) string {
		return word.print(map[bool]string{false: no, true: yes}[b])
	}}
}

// cron is an entry's expression in standard crontab syntax; time 0 is midnight on a Monday.
func cron(e *fleet.Entry) codec[string] {
	return text(func(n input, s string) string {
		e.Cron = s
		if e.Parse() != nil {
			n.wrong(`minute, hour, day, month and weekday as in cron, such as "0 8 * * 1-5"`)
		}
		return s
	})
}
