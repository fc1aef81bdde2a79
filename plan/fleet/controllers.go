package fleet

import (
	"fmt"
	"time"

	"github.com/robfig/cron/v3"
)

// AutoscalerKind names an autoscaler.
type AutoscalerKind string

// The autoscalers. None keeps the number of replicas constant.
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

// Autoscaler configures what asks for replicas, and by which metrics.
type Autoscaler struct {
	Kind    AutoscalerKind `json:"kind"`
	Metrics []Metric       `json:"metrics"`
	Monitor Monitor        `json:"monitor"`
	HPA     HPA            `json:"hpa"`
	KEDA    KEDA           `json:"keda"`
	// Analyser, Entries and Outlook apply to the kinds saturation, schedule and forecast respectively.
	Analyser Analyser `json:"analyser"`
	Entries  []Entry  `json:"schedule"`
	Outlook  Outlook  `json:"forecast"`
}

// KEDA is what KEDA adds to its HPA: every Polling it compares the metrics with their activation. If one is
// above, it scales up from zero; if none has been for a Cooldown and Policy.Min is 0, it scales down to zero.
type KEDA struct {
	Polling  time.Duration `json:"polling_s"`
	Cooldown time.Duration `json:"cooldown_s"`
}

// Analyser converts the saturation to a number of replicas, which an HPA applies.
type Analyser struct {
	// Interval is the time between two evaluations.
	Interval time.Duration `json:"interval_s"`
	// Above Up it asks for more replicas, below Down for fewer.
	Up   float64 `json:"up"`
	Down float64 `json:"down"`
	// Cap bounds a sample of the saturation; 0 means no bound. Smoothing is the weight of a new sample in the
	// exponential moving average.
	Cap       float64 `json:"cap"`
	Smoothing float64 `json:"ema"`
}

// Entry asks for a number of replicas from each time of a cron expression until another entry's.
type Entry struct {
	Cron     string `json:"cron"`
	Replicas int    `json:"replicas"`
	schedule cron.Schedule
}

// Outlook sizes the fleet for the rate of a day before.
type Outlook struct {
	// Lead is how far it looks ahead, Margin the share added to the rate.
	Lead   time.Duration `json:"lead_s"`
	Margin float64       `json:"margin"`
	// Yesterday is the rate of the day before in requests per second, minute by minute; without it the current
	// rate is used.
	Yesterday []float64 `json:"-"`
}

// controller is a running autoscaler.
type controller interface {
	// at is the time of the next decision, in seconds.
	at() float64
	// decide returns how many replicas there should be, and why.
	decide(*view) (int, string)
}

// start returns the controller, given the current number of replicas; nil for None.
func (a *Autoscaler) start(current int, p *Policy) controller {
	sync := every(a.HPA.Sync)
	switch a.Kind {
	case ByHPA:
		return &hpaControl{newHPA(a.HPA, p.Min, p.Max, current), sync, a.Metrics}
	case ByKEDA:
		return &kedaControl{hpa: newHPA(a.HPA, max(p.Min, 1), p.Max, current), spec: a.KEDA, metrics: a.Metrics,
			least: p.Min, sync: sync, poll: every(a.KEDA.Polling)}
	case Saturation:
		// It starts as if it had watched an idle fleet: replicas beyond Min were set by hand and are not held.
		return &saturationControl{hpa: newHPA(a.HPA, p.Min, p.Max, p.Min), spec: a.Analyser, wanted: p.Min,
			why: "saturation 0", sync: sync, look: every(a.Analyser.Interval)}
	case Schedule:
		return &clockControl{regular{every: sync.every}, a.scheduled}
	case Forecast:
		return &clockControl{regular{every: sync.every}, a.foreseen}
	}
	return nil
}

// kedaControl is KEDA and its HPA.
type kedaControl struct {
	*hpa
	spec       KEDA
	metrics    []Metric
	least      int
	sync, poll regular
	active     float64 // when a trigger was last active, in seconds
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

// activated returns the first active trigger and its value; nil if there is none.
func (k *kedaControl) activated(v *view) (*Metric, float64) {
	for i := range k.metrics {
		m := &k.metrics[i]
		if value, _ := v.value(*m); value > m.Activation { // an unknown latency counts as 0
			return m, value
		}
	}
	return nil, 0
}

// saturationControl is an analyser of the saturation in front of an HPA.
type saturationControl struct {
	*hpa
	spec       Analyser
	level      float64 // the smoothed saturation
	wanted     int
	sync, look regular
	why        string
}

func (s *saturationControl) at() float64 { return min(s.sync.next, s.look.next) }

func (s *saturationControl) decide(v *view) (int, string) {
	if s.look.due(v.now) {
		raw, _ := v.fleetValue("saturation") // 0 without requests
		s.wanted = s.analyse(raw, v.asked, v.ready)
	}
	if !s.sync.due(v.now) || s.wanted == 0 || v.asked == 0 {
		return v.asked, ""
	}
	return s.normalize(v.now, v.asked, averageReplicas(float64(s.wanted), 1, v.asked, s.hpa.spec.Tolerance)), s.why
}

// analyse adds a sample of the saturation and returns how many replicas there should be. When it grows the
// fleet, it counts starting replicas as capacity.
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

// epoch is the start of episodes: midnight on a Monday.
var epoch = time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)

// Parse parses the entry's cron expression.
func (e *Entry) Parse() error {
	schedule, err := cron.ParseStandard(e.Cron)
	e.schedule = schedule
	return err
}

// regular is a recurring time, in seconds.
type regular struct{ every, next float64 }

func every(d time.Duration) regular { return regular{d.Seconds(), d.Seconds()} }

func (r *regular) at() float64 { return r.next }

// due reports whether the time has come, and if so schedules the next.
func (r *regular) due(now float64) bool {
	if now < r.next {
		return false
	}
	r.next = now + r.every
	return true
}

// clockControl periodically asks for what a function returns.
type clockControl struct {
	regular
	want func(*view) (int, string)
}

func (c *clockControl) decide(v *view) (int, string) {
	c.due(v.now)
	return c.want(v)
}

// scheduled returns the replicas of the schedule entry in force.
func (a *Autoscaler) scheduled(v *view) (int, string) {
	if i := latest(a.Entries, epoch.Add(seconds(v.now))); i >= 0 {
		return a.Entries[i].Replicas, a.Entries[i].Cron
	}
	return v.asked, ""
}

// latestBefore returns the last time of a schedule up to now, if any in the preceding eight days.
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

// foreseen returns the replicas for yesterday's rate at the time that lies Lead ahead.
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
