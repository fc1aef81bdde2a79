package measure

import (
	"math"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"planner/internal/note"
	"planner/internal/stat"
)

// Floors of a bound on a mean: below meanFloor values a batch estimate of its
// spread is no estimate, and above censoredShare of requests without an end the
// mean of the others is not the mean.
const (
	meanFloor     = 20
	censoredShare = 0.01
)

// judgeMean decides a bound on a mean by an interval around it: Student's t with
// the nine degrees of freedom of ten batches, widened by the blended dispersion.
// Requests in flight count at their age, or at the time per token so far. Failed requests have no latency; who
// bounds the errors has said how many may fail, and the mean is then over the
// rest. Without that, a mean over the survivors is never met.
func (c *cohort) judgeMean(b Bound) judged {
	j := judged{allowed: 1, Count: Count{Bound: b.String(), Cluster: 1, Phi: 1, High: math.MaxFloat64}}
	var at, values []float64
	failed, censored := 0, 0
	for _, r := range c.records {
		v, ok := r.value(b.Metric)
		switch {
		case r.failed():
			failed++
			continue
		case !ok && r.Outcome == OK:
			continue
		case !ok && b.Metric == TPOT && r.First >= 0 && r.Output > 1 && r.Last > r.First:
			v = (r.Last - r.First) / time.Duration(r.Output-1)
		case !ok:
			if v, ok = r.least(b.Metric, c.end); !ok {
				continue
			}
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
	if !c.whole {
		j.Phi = stat.Blend(stat.Generic, stat.MeanDispersion(at, values))
	}
	j = j.around(values, b.Limit, c.whole)
	switch {
	case j.state == Missed:
	case failed > 0 && c.trial.Objective.Errors < 0:
		j.unsure(note.BoundMeanFailed, failed)
	case float64(censored) > censoredShare*float64(j.N):
		j.unsure(note.BoundMeanOpen, censored)
	}
	return j
}

// around decides a mean of values against limit, as a ratio to the limit.
func (j judged) around(values []float64, limit time.Duration, whole bool) judged {
	sum, squares := 0.0, 0.0
	for _, v := range values {
		sum += v / float64(limit)
	}
	n := float64(len(values))
	j.Value = sum / n
	for _, v := range values {
		squares += (v/float64(limit) - j.Value) * (v/float64(limit) - j.Value)
	}
	half := 0.0
	if !whole && n > 1 {
		half = stat.StudentT(1-alpha, 9) * math.Sqrt(squares/(n-1)*j.Phi/n)
	}
	return j.ratio(half, whole || n >= meanFloor)
}

// ratio decides Value, a ratio to the limit, that is known within half.
func (j judged) ratio(half float64, enough bool) judged {
	j.Low, j.High = max(j.Value-half, 0), j.Value+half
	j.slack = max(1-j.Value, -1)
	switch {
	case !enough:
		j.unsure(note.BoundMeanUnresolved, j.N)
	case j.Low > 1:
		j.state = Missed
	case j.High <= 1:
		j.state = Met
	default:
		j.unsure(note.BoundMeanNear, j.N, j.Low, j.High)
	}
	return j
}

// judgeGaps decides a bound on the inter-token times. They come without their times,
// so a request counts as one observation however many tokens it has, and clumps of
// requests are taken from the time per token. The tokens that a failed request still
// owed are beyond the limit on a quantile, and in no mean.
func (c *cohort) judgeGaps(b Bound, o *Observation) judged {
	j := judged{allowed: b.Allowed(), Count: Count{Bound: b.String(), Cluster: 1, Phi: 1}}
	if o.Gaps == nil || o.Gaps.TotalCount() == 0 {
		return j.empty()
	}
	j.N, j.K = int(o.Gaps.TotalCount()), gapsAbove(o.Gaps, b.Limit)
	requests, failed, owed := 0, 0, 0
	for _, r := range c.records {
		switch {
		case r.failed():
			failed++
			owed += max(r.Asked-max(r.Output, 1), 1)
		case r.First >= 0 && r.Output > 1:
			requests++
		}
	}
	if b.Quantile == 0 {
		return c.judgeGapMean(j, b.Limit, o.Gaps, requests, failed)
	}
	j.N, j.K, requests = j.N+owed, j.K+owed, requests+failed
	j.Cluster = max(float64(j.N)/float64(max(requests, 1)), 1)
	q := time.Duration(o.Gaps.ValueAtQuantile(b.Quantile*100)) * time.Microsecond
	j.slack = slackOf(q, b.Limit)
	phi := 1.0
	if !c.whole {
		phi = stat.Generic
		if s := c.latency(TPOT); len(s.values) > 0 {
			phi = s.dispersion(b.Quantile, math.NaN())
		}
	}
	return j.share(phi, c.whole)
}

// judgeGapMean decides a bound on the mean inter-token time, with the requests
// as the observations.
func (c *cohort) judgeGapMean(j judged, most time.Duration, gaps *hdrhistogram.Histogram, requests, failed int) judged {
	j.allowed = 1
	j.Cluster = max(float64(j.N)/float64(max(requests, 1)), 1)
	limit := float64(most / time.Microsecond)
	j.Value = gaps.Mean() / limit
	half := 0.0
	if !c.whole {
		j.Phi = stat.Generic
		half = stat.StudentT(1-alpha, 9) * gaps.StdDev() / limit * math.Sqrt(j.Phi/float64(max(requests, 1)))
	}
	j = j.ratio(half, c.whole || requests >= meanFloor)
	if j.state == Met && failed > 0 && c.trial.Objective.Errors < 0 {
		j.unsure(note.BoundMeanFailed, failed)
	}
	return j
}
