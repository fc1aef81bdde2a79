package fleet

import (
	"fmt"
	"math"
	"reflect"
	"time"

	"planner/internal/list"
)

// HPA is the HorizontalPodAutoscaler of Kubernetes, following its documented algorithm to the letter.
type HPA struct {
	// Sync is the time between two decisions. Tolerance is how far the ratio of a metric to its target may be
	// from 1 without a change.
	Sync      time.Duration `json:"sync_s"`
	Tolerance float64       `json:"tolerance"`
	// Up and Down limit how fast it scales up and down.
	Up   Behavior `json:"scale_up"`
	Down Behavior `json:"scale_down"`
}

// Behavior limits how fast an HPA scales in one direction.
type Behavior struct {
	// Stabilization is the window of past recommendations of which the one with least change is followed.
	Stabilization time.Duration `json:"stabilization_s"`
	// Select is "max" for the policy that allows the most change, "min" for the one that allows the least, and
	// "disabled" for no change.
	Select   string          `json:"select"`
	Policies []ScalingPolicy `json:"policies"`
}

// ScalingPolicy allows a change of Value pods within a period, or of Value percent of the pods at its start.
type ScalingPolicy struct {
	Percent bool          `json:"percent"`
	Value   int           `json:"value"`
	Period  time.Duration `json:"period_s"`
}

// UsualHPA is the HPA with default settings: 15 s between decisions, a tolerance of 10 %, up by 4 pods or by
// 100 % every 15 s, down at once to the highest recommendation of the last five minutes. So the documentation
// says, and it holds if either direction has settings of its own; without any the controller scales up
// differently, see hpa.limit.
func UsualHPA() HPA {
	const period = 15 * time.Second
	return HPA{
		Sync: period, Tolerance: 0.1,
		Up:   Behavior{Select: "max", Policies: []ScalingPolicy{{false, 4, period}, {true, 100, period}}},
		Down: Behavior{Stabilization: 5 * time.Minute, Select: "max", Policies: []ScalingPolicy{{true, 100, period}}},
	}
}

// Bare reports whether neither direction has settings and the tolerance, which is set in the same object, is
// the default.
func (h *HPA) Bare() bool {
	usual := UsualHPA()
	usual.Sync = h.Sync
	return reflect.DeepEqual(*h, usual)
}

// hpa is an HPA with its history.
type hpa struct {
	spec            HPA
	min, max        int
	recommendations []scaleEvent
	ups, downs      []scaleEvent
}

// scaleEvent is a number of replicas recommended, added or removed at a time in seconds.
type scaleEvent struct {
	at       float64
	replicas int
}

func newHPA(spec HPA, least, most, current int) *hpa {
	return &hpa{spec: spec, min: least, max: most, recommendations: []scaleEvent{{0, current}}}
}

// podMetric is a pod's metric as the HPA sees it.
type podMetric struct {
	value float64
	// known says that there is a value, unready that the pod is not yet scheduled.
	known, unready bool
}

// podReplicas returns the number of replicas that a per-pod metric with a target mean asks for. Pods without a
// value dampen the change: they count as on target when it would scale down and as idle when it would scale up;
// unready pods count only then, as idle.
func podReplicas(pods []podMetric, current int, target, tolerance float64) (want int, ok bool) {
	sum, measured, unready, missing := 0.0, 0, 0, 0
	for _, p := range pods {
		switch {
		case p.unready:
			unready++
		case !p.known:
			missing++
		default:
			sum += p.value
			measured++
		}
	}
	if measured == 0 {
		return 0, false
	}
	ratio := sum / float64(measured) / target
	up := ratio > 1
	if missing == 0 && !(up && unready > 0) {
		if within(ratio, tolerance) {
			return current, true
		}
		return ceil(ratio * float64(measured)), true
	}
	counted := measured + missing
	if ratio < 1 {
		sum += float64(missing) * target
	}
	if up {
		counted += unready
	}
	again := sum / float64(counted) / target
	if within(again, tolerance) || ratio < 1 && again > 1 || ratio > 1 && again < 1 {
		return current, true
	}
	want = ceil(again * float64(counted))
	if again < 1 && want > current || again > 1 && want < current {
		return current, true
	}
	return want, true
}

// valueReplicas returns the number of replicas that a metric of the whole fleet with a target value asks for.
func valueReplicas(value, target float64, current, ready int, tolerance float64) int {
	ratio := value / target
	if current == 0 {
		return ceil(ratio)
	}
	if within(ratio, tolerance) {
		return current
	}
	return ceil(ratio * float64(ready))
}

// averageReplicas returns the number of replicas that a metric of the whole fleet with a target per replica
// asks for.
func averageReplicas(total, target float64, current int, tolerance float64) int {
	if within(total/(target*float64(current)), tolerance) {
		return current
	}
	return ceil(total / target)
}

func within(ratio, tolerance float64) bool { return 1-tolerance <= ratio && ratio <= 1+tolerance }

// ceil rounds up, ignoring an excess due to rounding errors.
func ceil(x float64) int { return int(math.Ceil(min(x, 1e6) - 1e-9)) }

// normalize applies stabilisation, policies and bounds to the number that the metrics ask for.
func (h *hpa) normalize(now float64, current, desired int) int {
	if current == 0 && h.min > 0 {
		return 0 // scaled to zero by hand, which disables an HPA
	}
	stable := h.stabilize(now, current, desired)
	to := stable
	switch {
	case stable > current:
		to = min(stable, h.max, max(h.limit(now, current, &h.spec.Up, 1), current))
	case stable < current:
		to = max(stable, h.min, min(h.limit(now, current, &h.spec.Down, -1), current))
	}
	to = min(max(to, h.min), h.max)
	if to > current {
		h.ups = append(h.ups, scaleEvent{now, to - current})
	} else if to < current {
		h.downs = append(h.downs, scaleEvent{now, current - to})
	}
	return to
}

// stabilize follows the recommendation with least change in the window of either direction.
func (h *hpa) stabilize(now float64, current, desired int) int {
	up, down := desired, desired
	upFrom, downFrom := now-h.spec.Up.Stabilization.Seconds(), now-h.spec.Down.Stabilization.Seconds()
	kept := h.recommendations[:0]
	for _, r := range h.recommendations {
		if r.at > upFrom {
			up = min(up, r.replicas)
		}
		if r.at > downFrom {
			down = max(down, r.replicas)
		}
		if r.at > upFrom || r.at > downFrom {
			kept = append(kept, r)
		}
	}
	h.recommendations = append(kept, scaleEvent{now, desired})
	if h.spec.Bare() { // an older rule, which applies the down window while growing, too
		return down
	}
	return min(max(current, up), down)
}

// limit is the number of replicas that the policies of a direction, 1 or -1, allow. Upward, a bare HPA follows
// an older rule: to twice as many or to 4, if that is more, at each decision.
func (h *hpa) limit(now float64, current int, b *Behavior, direction int) int {
	if direction > 0 && h.spec.Bare() {
		return max(2*current, 4)
	}
	if b.Select == "disabled" {
		return current
	}
	limit, first := current, true
	for _, p := range b.Policies {
		start := current - recent(h.ups, now, p.Period) + recent(h.downs, now, p.Period)
		to := start + direction*p.Value
		if p.Percent {
			share := 1 + float64(direction*p.Value)/100
			if to = ceil(float64(start) * share); direction < 0 {
				to = int(float64(start) * share)
			}
		}
		// The largest change is the highest limit upward and the lowest downward.
		if first || (b.Select == "min") == (direction*to < direction*limit) {
			limit, first = to, false
		}
	}
	return limit
}

// recent sums the changes within the period up to now.
func recent(changes []scaleEvent, now float64, period time.Duration) int {
	within := list.Filter(changes, func(c scaleEvent) bool { return c.at > now-period.Seconds() })
	return list.Sum(within, func(c scaleEvent) int { return c.replicas })
}

// hpaControl is an HPA with its metrics.
type hpaControl struct {
	*hpa
	regular
	metrics []Metric
}

// decide follows the metric that asks for most; if some are unknown it does not scale down.
func (h *hpaControl) decide(v *view) (int, string) {
	h.due(v.now)
	want, unknown, why := 0, 0, ""
	for _, m := range h.metrics {
		n, value, ok := h.proposal(v, m)
		if !ok {
			unknown++
			continue
		}
		if n > want || why == "" {
			want, why = n, fmt.Sprintf("%s %.4g, target %.4g", m.Name, value, m.Target)
		}
	}
	if why == "" || unknown > 0 && want < v.asked {
		return v.asked, ""
	}
	return h.normalize(v.now, v.asked, want), why
}

// proposal returns the number of replicas that one metric asks for, and its value.
func (h *hpa) proposal(v *view, m Metric) (want int, value float64, ok bool) {
	if m.ofFleet() {
		if value, ok = v.fleetValue(m.Name); !ok {
			return 0, 0, false
		}
		return valueReplicas(value, m.Target, v.asked, v.ready, h.spec.Tolerance), value, true
	}
	pods := v.pods(m.Name)
	counted := list.Filter(pods, func(p podMetric) bool { return p.known && !p.unready })
	value = list.Sum(counted, func(p podMetric) float64 { return p.value })
	want, ok = podReplicas(pods, v.asked, m.Target, h.spec.Tolerance)
	return want, value / float64(max(len(counted), 1)), ok
}
