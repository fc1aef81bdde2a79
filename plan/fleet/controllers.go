package fleet

import (
	"fmt"
	"time"

	"github.com/robfig/cron/v3"
)

// AutoscalerKind names an autoscaler.
type AutoscalerKind string

// The autoscalers. None keeps the number of replicas.
const (
	None       AutoscalerKind = "none"
	ByHPA      AutoscalerKind = "hpa"
	ByKEDA     AutoscalerKind = "keda"
	Saturation AutoscalerKind = "saturation"
	Schedule   AutoscalerKind = "schedule"
	Forecast   AutoscalerKind = "forecast"
)

// Kinds lists the autoscalers.
func Kinds() []AutoscalerKind {
	return []AutoscalerKind{None, ByHPA, ByKEDA, Saturation, Schedule, Forecast}
}

// Autoscaler says who asks for replicas, and by what.
type Autoscaler struct {
	Kind    AutoscalerKind `json:"kind"`
	Metrics []Metric       `json:"metrics"`
	Monitor Monitor        `json:"monitor"`
	HPA     HPA            `json:"hpa"`
	KEDA    KEDA           `json:"keda"`
	// Analyser, Entries and Outlook are those of the kinds saturation, schedule and
	// forecast.
	Analyser Analyser `json:"analyser"`
	Entries  []Entry  `json:"schedule"`
	Outlook  Outlook  `json:"forecast"`
}

// KEDA is what it adds to its HPA: it asks every Polling whether a metric is above its
// activation, starts the first replica then, and gives up the last one when none was for
// a Cooldown.
type KEDA struct {
	Polling  time.Duration `json:"polling_s"`
	Cooldown time.Duration `json:"cooldown_s"`
}

// Analyser turns the saturation into a number of replicas, which an HPA grants.
type Analyser struct {
	// Interval is the time between two looks.
	Interval time.Duration `json:"interval_s"`
	// Above Up it asks for more, below Down for fewer.
	Up   float64 `json:"up"`
	Down float64 `json:"down"`
	// Cap bounds a look at the saturation, unless it is 0. Smoothing is the weight of a look
	// against all those before.
	Cap       float64 `json:"cap"`
	Smoothing float64 `json:"ema"`
}

// Entry asks for a number of replicas from the times of a cron expression on.
type Entry struct {
	Cron     string `json:"cron"`
	Replicas int    `json:"replicas"`
	schedule cron.Schedule
}

// Outlook sizes the fleet for the rate of the same time a day before.
type Outlook struct {
	// Lead is how far it looks ahead, Margin what it adds as a share.
	Lead   time.Duration `json:"lead_s"`
	Margin float64       `json:"margin"`
	// Yesterday is the rate of the day before, minute by minute; where it is not known
	// that of now is taken.
	Yesterday []float64 `json:"-"`
}

// controller is an autoscaler at work.
type controller interface {
	// at is when it decides next.
	at() float64
	// decide says how many replicas there should be, and why.
	decide(*view) (int, string)
}

// start begins with so many replicas; nil where nobody decides.
func (a *Autoscaler) start(current int, p *Policy) controller {
	sync := every(a.HPA.Sync)
	switch a.Kind {
	case ByHPA:
		return &hpaControl{newHPA(a.HPA, p.Min, p.Max, current), sync, a.Metrics}
	case ByKEDA:
		return &kedaControl{hpa: newHPA(a.HPA, max(p.Min, 1), p.Max, current), spec: a.KEDA, metrics: a.Metrics,
			least: p.Min, sync: sync, poll: every(a.KEDA.Polling)}
	case Saturation:
		// It has looked at an idle fleet before: more replicas than the least were held by hand.
		return &saturationControl{hpa: newHPA(a.HPA, p.Min, p.Max, p.Min), spec: a.Analyser, wanted: p.Min,
			why: "saturation 0", sync: sync, look: every(a.Analyser.Interval)}
	case Schedule:
		return &clockControl{regular{every: sync.every}, a.scheduled}
	case Forecast:
		return &clockControl{regular{every: sync.every}, a.foreseen}
	}
	return nil
}

// kedaControl is KEDA with its HPA.
type kedaControl struct {
	*hpa
	spec       KEDA
	metrics    []Metric
	least      int
	sync, poll regular
	active     float64 // when it was active last
}

func (k *kedaControl) at() float64 { return min(k.sync.next, k.poll.next) }

func (k *kedaControl) decide(v *view) (int, string) {
	asked, why := v.asked, ""
	if k.poll.due(v.now) {
		switch trigger, value := k.activated(v); {
		case trigger != nil:
			k.active = v.now
			if asked == 0 {
				asked, why = k.hpa.min, fmt.Sprintf("%s %.4g, above the activation", trigger.Name, value)
			}
		case asked > 0 && k.least == 0 && v.now-k.active >= k.spec.Cooldown.Seconds():
			return 0, "cooled down"
		}
	}
	if !k.sync.due(v.now) || v.asked == 0 {
		return asked, why
	}
	for _, m := range k.metrics {
		value, known := v.value(m)
		if !known {
			return asked, why
		}
		n := averageReplicas(value, m.Target, v.asked, k.hpa.spec.Tolerance)
		if m.ofFleet() {
			n = valueReplicas(value, m.Target, v.asked, v.ready, k.hpa.spec.Tolerance)
		}
		if n > asked || why == "" {
			asked, why = n, fmt.Sprintf("%s %.4g, target %.4g each", m.Name, value, m.Target)
		}
	}
	return k.normalize(v.now, v.asked, asked), why
}

// activated is the first trigger that is active, and its value; nil for none.
func (k *kedaControl) activated(v *view) (*Metric, float64) {
	for i := range k.metrics {
		m := &k.metrics[i]
		if value, _ := v.value(*m); value > m.Activation { // latencies that nobody has seen are none
			return m, value
		}
	}
	return nil, 0
}

// saturationControl is an analyser of the saturation behind an HPA.
type saturationControl struct {
	*hpa
	spec       Analyser
	level      float64 // smoothed
	wanted     int
	sync, look regular
	why        string
}

func (s *saturationControl) at() float64 { return min(s.sync.next, s.look.next) }

func (s *saturationControl) decide(v *view) (int, string) {
	if s.look.due(v.now) {
		raw, _ := v.fleetValue("saturation") // without requests nothing is saturated
		s.wanted = s.analyse(raw, v.asked, v.ready)
	}
	if !s.sync.due(v.now) || s.wanted == 0 || v.asked == 0 {
		return v.asked, ""
	}
	return s.normalize(v.now, v.asked, averageReplicas(float64(s.wanted), 1, v.asked, s.hpa.spec.Tolerance)), s.why
}

// analyse takes a look at the saturation and says how many replicas there should be. To
// grow, it counts on those that are starting.
func (s *saturationControl) analyse(raw float64, existing, ready int) int {
	if s.spec.Cap > 0 {
		raw = min(raw, s.spec.Cap)
	}
	s.level = s.spec.Smoothing*raw + (1-s.spec.Smoothing)*s.level
	s.why = fmt.Sprintf("saturation %.3f", s.level)
	n := float64(existing)
	credit := 1.0
	if ready > 0 && ready < existing {
		credit = float64(ready) / n
	}
	if required := s.level*credit/s.spec.Up - 1; required > 0 {
		return existing + ceil(required*n)
	}
	if spare := 1 - s.level/s.spec.Down; spare > 0 {
		return existing - int(spare*n+1e-9)
	}
	return existing
}

// epoch is when episodes begin: a Monday, at midnight.
var epoch = time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)

// Parse reads the expression of an entry.
func (e *Entry) Parse() error {
	schedule, err := cron.ParseStandard(e.Cron)
	e.schedule = schedule
	return err
}

// regular is a time that comes again and again, in seconds.
type regular struct{ every, next float64 }

func every(d time.Duration) regular { return regular{d.Seconds(), d.Seconds()} }

func (r *regular) at() float64 { return r.next }

// due reports whether it has come, and moves on to the next if so.
func (r *regular) due(now float64) bool {
	if now < r.next {
		return false
	}
	r.next = now + r.every
	return true
}

// clockControl asks again and again for what a function has then.
type clockControl struct {
	regular
	want func(*view) (int, string)
}

func (c *clockControl) decide(v *view) (int, string) {
	c.due(v.now)
	return c.want(v)
}

// scheduled follows the clock.
func (a *Autoscaler) scheduled(v *view) (int, string) {
	if i := latest(a.Entries, epoch.Add(seconds(v.now))); i >= 0 {
		return a.Entries[i].Replicas, a.Entries[i].Cron
	}
	return v.asked, ""
}

// latestBefore is the last time of a schedule up to now, of the eight days before.
func latestBefore(s cron.Schedule, now time.Time) (latest time.Time) {
	const day = 24 * time.Hour
	for _, back := range []time.Duration{time.Hour, 6 * time.Hour, 36 * time.Hour, 8 * day} {
		for at := s.Next(now.Add(-back)); !at.IsZero() && !at.After(now); at = s.Next(at) {
			latest = at
		}
		if !latest.IsZero() {
			break
		}
	}
	return latest
}

// foreseen looks at yesterday.
func (a *Autoscaler) foreseen(v *view) (int, string) {
	c, target := &a.Outlook, a.Metrics[0].Target
	rate, why := v.total("requests_per_s"), "the rate now"
	if days := len(c.Yesterday); days > 0 {
		minute := int((v.now + c.Lead.Seconds()) / 60)
		rate, why = c.Yesterday[minute%days], "the rate of yesterday"
	}
	rate *= 1 + c.Margin
	return ceil(rate / target), fmt.Sprintf("%s %.4g requests/s, %.4g each", why, rate, target)
}
