package measure

import (
	"math"
	"slices"
	"time"

	gonum "gonum.org/v1/gonum/stat"

	"planner/internal/note"
	"planner/internal/stat"
	"planner/internal/wire"
)

// ErrorsBound names the bound on failed requests among counts and verdicts, as
// [Bound.String] names the others.
const ErrorsBound = "errors"

// judged is the judgement of one bound on a trial.
type judged struct {
	Count
	allowed float64
	state   State
	// slack is the distance of the statistic from its limit, as a share of it.
	slack float64
	// failed counts the requests that are beyond the limit because they failed.
	failed int
	// doubt says why the state is Unsure.
	doubt note.Notes
}

// judge decides every bound of the objective, and the one on errors.
func (c *cohort) judge(o *Observation) []judged {
	var all []judged
	slo := c.trial.Objective
	for _, b := range slo.Bounds {
		of := c.of(b.Class)
		switch {
		case b.Metric == TPOT && o.Unpaced:
			all = append(all, judged{allowed: b.Allowed(), Count: Count{Bound: b.String(), Cluster: 1}}.empty())
		case b.Metric == ITL:
			all = append(all, c.judgeGaps(b, o))
		case b.Quantile == 0:
			all = append(all, of.judgeMean(b))
		default:
			all = append(all, of.judgeShare(b))
		}
	}
	return append(all, c.judgeErrors(slo.Errors))
}

// judgeShare decides a bound on a quantile by counting: the q-quantile is at or below the limit if
// and only if at most a share 1 - q of the requests is above it.
func (c *cohort) judgeShare(b Bound) judged {
	j := judged{allowed: b.Allowed(), Count: Count{Bound: b.String(), Cluster: 1, Whole: c.whole}}
	var at []float64
	var flags []bool
	for _, r := range c.records {
		if known, beyond := b.Decide(r, c.end); known {
			j.N++
			if beyond {
				j.K++
				if r.failed() {
					j.failed++
				}
			}
			at, flags = append(at, c.position(r)), append(flags, beyond)
		}
	}
	s := c.figures(b)
	j.slack = s.slack(b)
	if j.N == 0 {
		return j.empty()
	}
	phi, most := 1.0, 1.0
	switch {
	case c.whole:
	case len(s.values) == 0:
		phi = stat.Generic
	default:
		phi = s.dispersion(b.Quantile, stat.BatchDispersion(at, flags))
		if j.failed == 0 {
			most = s.tail(b.Quantile).beyond(b.limit())
		}
	}
	return j.share(phi, most)
}

// empty returns the judgement of a bound for which there is no observation.
func (j judged) empty() judged {
	j.Low, j.High, j.Value, j.Phi = 0, 1, 0, 1
	j.unsure(note.BoundUnseen)
	return j
}

// unsure leaves the bound undecided and says why.
func (j *judged) unsure(k note.Kind, figures ...any) {
	j.state, j.doubt = Unsure, note.Notes{note.New(k, slices.Concat([]any{j.Bound}, figures)...)}
}

// share decides a bound by its count at dispersion phi. The shape of the tail allows no larger
// share than most, which is disregarded if the observed share is larger. If the requests are the
// whole population, the observed share decides.
func (j judged) share(phi, most float64) judged {
	n, k := float64(j.N)/j.Cluster, float64(j.K)/j.Cluster
	j.Value, j.Phi = k/n, phi
	if j.Value > j.allowed*(1+1e-9) {
		j.slack = min(j.slack, max(1-j.Value/j.allowed, -1))
	}
	resolved := Resolves(j.N, 1-j.allowed, j.Whole)
	if j.Whole {
		j.Low, j.High = j.Value, j.Value
	} else {
		d := stat.Dispersion{At: phi, Level: j.allowed, Gamma: stat.Growth}
		j.Low, j.High = d.Lower(k, n, alpha), d.Upper(k, n, alpha)
		if most >= j.Value {
			// The share cannot be better known than from independent requests.
			most = max(most, stat.ShareUpper(k, n, alpha))
			j.High, resolved = min(j.High, most), resolved || most <= j.allowed
		}
	}
	switch {
	case j.Low > j.allowed*(1+1e-9):
		j.state = Missed
	case j.High <= j.allowed*(1+1e-9) && resolved:
		j.state = Met
	case !resolved:
		j.unsure(note.BoundUnresolved, j.N)
	default:
		seen := []any{j.K, j.N, 100 * j.Low, 100 * j.High, 100 * j.allowed}
		if needed := j.decidedBy(phi); math.IsInf(needed, 1) {
			j.unsure(note.BoundTooNear, seen...)
		} else {
			j.unsure(note.BoundNear, append(seen, needed)...)
		}
	}
	return j
}

// decidedBy returns how many requests would decide the bound if the observed share stayed as it is;
// infinite if even 128 times as many as now would not.
func (j judged) decidedBy(phi float64) float64 {
	d := stat.Dispersion{At: phi, Level: j.allowed}
	n, k := float64(j.N)/j.Cluster, float64(j.K)/j.Cluster
	decides := func(times float64) bool {
		if k/n > j.allowed {
			return d.CountAbove(k*times, n*times, j.allowed) <= alpha
		}
		return d.CountBelow(k*times, n*times, j.allowed) <= alpha
	}
	low, high := 1.0, 128.0
	if !decides(high) {
		return math.Inf(1)
	}
	for high/low > 1.02 {
		if mid := math.Sqrt(low * high); decides(mid) {
			high = mid
		} else {
			low = mid
		}
	}
	return high * n
}

// slack returns how far the bounded quantile stays below its limit, as a share of the limit and at
// least -1, which also stands for a quantile beyond what was seen; 0 when nothing is known.
func (s *series) slack(b Bound) float64 {
	if len(s.values) == 0 {
		return 0
	}
	v := s.quantile(b.Quantile)
	if v == Unresolved {
		return -1
	}
	return slackOf(v, b.limit())
}

func slackOf(v, limit time.Duration) float64 {
	return max(1-float64(v)/float64(limit), -1)
}

// judgeErrors decides the share of failed requests by plain binomial bounds: failures have causes
// and do not clump as in a queue. A trial without failures meets every allowance, even that of
// none: proving a share of 1/m would take 3m requests, and a server that fails under load shows it
// in every other bound as well. The count's High says what is proven.
func (c *cohort) judgeErrors(allowed float64) judged {
	j := judged{allowed: allowed, slack: 1, Count: Count{Bound: ErrorsBound, Cluster: 1, Phi: 1, High: 1, Whole: c.whole}}
	j.N, j.K = len(c.records)-c.count((*Record).open), c.count((*Record).failed)
	if j.N > 0 {
		n, k := float64(j.N), float64(j.K)
		j.Value = k / n
		j.Low, j.High = stat.ShareLower(k, n, alpha), stat.ShareUpper(k, n, alpha)
		if j.Whole {
			j.Low, j.High = j.Value, j.Value
		}
	}
	if allowed < 0 {
		j.state = Met
		return j
	}
	switch {
	case allowed > 0:
		j.slack = max(1-j.Value/allowed, -1)
	case j.K > 0:
		j.slack = -1
	}
	switch {
	case j.Low > allowed:
		j.state = Missed
	case j.N > 0 && (j.High <= allowed || j.K == 0):
		j.state = Met
	default:
		j.unsure(note.BoundErrorsNear, j.K, j.N, 100*allowed, 100*j.Low, 100*j.High)
	}
	return j
}

// verdict combines the judgements: missed if one bound is, met if all are. The binding bound is the
// worst, and among equals the one with the least slack. If most requests beyond its limit are so
// because they failed, the bound on errors binds instead, if that is missed as well.
func verdict(all []judged) *Verdict {
	worst := 0
	severity := map[State]int{Met: 0, Unsure: 1, Missed: 2}
	for i, j := range all {
		a, b := severity[j.state], severity[all[worst].state]
		if a > b || a == b && j.slack < all[worst].slack {
			worst = i
		}
	}
	for i, j := range all {
		if j.Bound == ErrorsBound && j.state == Missed && 2*all[worst].failed > all[worst].K {
			worst = i
		}
	}
	j := all[worst]
	return &Verdict{State: j.state, Binding: j.Bound, Slack: j.slack}
}

// Limits for judging a mean: with fewer than meanFloor values a batch estimate of their spread is
// worthless, and with a share of more than censoredShare of requests still open the mean of the
// others is biased.
const (
	meanFloor     = 20
	censoredShare = 0.01
)

// judgeMean decides a bound on a mean by an interval around it: Student's t with the nine degrees
// of freedom of ten batches, widened by the blended dispersion. Requests in flight count at their
// age, or at their time per token so far. Failed requests have no latency: if the objective bounds
// errors, that says how many may fail, and the mean is over the rest. Otherwise a mean over the
// survivors is never met.
func (c *cohort) judgeMean(b Bound) judged {
	j := judged{allowed: 1, Count: Count{Bound: b.String(), Cluster: 1, Phi: 1, High: math.MaxFloat64, Whole: c.whole}}
	var at, values []float64
	failed, censored := 0, 0
	for _, r := range c.records {
		v, open, ok := r.Latency(b.Metric, c.end)
		switch {
		case r.failed():
			failed++
			continue
		case r.Outcome == InFlight && b.Metric == TPOT && r.First >= 0 && r.Output > 1 && r.Last > r.First:
			v = (r.Last - r.First) / time.Duration(r.Output-1)
		case !ok:
			continue
		case open:
			censored++
		}
		j.N++
		if v > b.Limit {
			j.K++
		}
		at, values = append(at, c.position(r)), append(values, float64(v))
	}
	if j.N == 0 {
		return j.empty()
	}
	if !j.Whole {
		j.Phi = stat.Blend(stat.Generic, stat.MeanDispersion(at, values))
	}
	mean, variance := gonum.MeanVariance(values, nil)
	if len(values) == 1 {
		variance = 0
	}
	return c.mean(j, mean/float64(b.Limit), math.Sqrt(variance)/float64(b.Limit), len(values), failed, censored)
}

// mean decides a bound on a mean from n observations; mean and standard deviation are ratios to the
// limit. Failed requests, or too many that had not ended, may leave it undecided.
func (c *cohort) mean(j judged, mean, deviation float64, n, failed, censored int) judged {
	half := 0.0
	if !j.Whole {
		half = stat.StudentT(1-alpha, 9) * deviation * math.Sqrt(j.Phi/float64(n))
	}
	j.Value, j.Low, j.High = mean, max(mean-half, 0), mean+half
	j.slack = max(1-mean, -1)
	switch enough := j.Whole || n >= meanFloor; {
	case enough && j.Low > 1:
		j.state = Missed
	case failed > 0 && c.trial.Objective.Errors < 0:
		j.unsure(note.BoundMeanFailed, failed)
	case float64(censored) > censoredShare*float64(j.N):
		j.unsure(note.BoundMeanOpen, censored)
	case !enough:
		j.unsure(note.BoundMeanUnresolved, j.N)
	case j.High <= 1:
		j.state = Met
	default:
		j.unsure(note.BoundMeanNear, j.N, j.Low, j.High)
	}
	return j
}

// State says whether an objective is met. The zero value is Unsure, so that what was never judged
// is never met.
type State int

// The three states of a verdict.
const (
	Unsure State = iota
	Met
	Missed
)

var stateNames = []string{"unsure", "met", "missed"}

// String is the state's name in files.
func (s State) String() string { return stateNames[s] }

// MarshalText writes the state's name.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads a state's name; one that is unknown is an error, never a
// state.
func (s *State) UnmarshalText(b []byte) error { return wire.ReadName(s, stateNames, b) }

// Verdict says whether a measurement meets its objective, and which bound
// decides.
type Verdict struct {
	State State `json:"state"` // met, missed or unsure
	// Binding names the bound that is missed or closest to it, [ErrorsBound] and [ThroughputBound]
	// included.
	Binding string `json:"binding"`
	// Slack is how far the binding statistic stays below its limit, as a share
	// of the limit; negative when it is above.
	Slack float64 `json:"slack"`
}
