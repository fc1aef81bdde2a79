package workload

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat/distuv"

	"planner/internal/list"
)

// Dist names the family of a length distribution. The zero value is invalid.
type Dist string

// The families of interface and configuration.
const (
	Fixed     Dist = "fixed"
	Uniform   Dist = "uniform"
	Normal    Dist = "normal"
	Lognormal Dist = "lognormal"
	Empirical Dist = "empirical"
)

// UnmarshalText rejects an unknown family; an empty text is the zero value.
func (d *Dist) UnmarshalText(b []byte) error {
	return readName(d, b, Fixed, Uniform, Normal, Lognormal, Empirical)
}

// Lengths is a distribution of lengths in tokens. Draws outside [Min, Max] are
// set to the nearer end (clipped), as the configuration says.
type Lengths struct {
	Dist Dist `json:"dist"` // fixed, uniform, normal, lognormal or empirical
	// Value is the length of a fixed distribution.
	Value int `json:"value,omitempty"`
	// Median and Sigma shape a lognormal: exp(ln Median + Sigma z).
	Median float64 `json:"median,omitempty"`
	Sigma  float64 `json:"sigma,omitempty"`
	// Mean and StdDev shape a normal.
	Mean   float64 `json:"mean,omitempty"`
	StdDev float64 `json:"stddev,omitempty"`
	// Min and Max clip the draws; Max 0 means no upper end.
	Min int `json:"min,omitempty"`
	Max int `json:"max,omitempty"`
	// Samples are the sorted values of an empirical distribution, and File is where
	// they came from, for the record only.
	Samples []int  `json:"-"`
	File    string `json:"file,omitempty"`
}

// Words describes the distribution in words.
func (l Lengths) Words() string {
	ends := ""
	switch {
	case l.Max > 0:
		ends = fmt.Sprintf(" in %d..%d", l.Min, l.Max)
	case l.Min > 1:
		ends = fmt.Sprintf(" from %d", l.Min)
	}
	switch l.Dist {
	case Fixed:
		return fmt.Sprintf("of %d tokens", l.Value)
	case Uniform:
		return "uniform" + ends
	case Normal:
		return fmt.Sprintf("normal %.6g +- %.6g%s", l.Mean, l.StdDev, ends)
	case Lognormal:
		return fmt.Sprintf("lognormal of median %.6g and sigma %.2g%s", l.Median, l.Sigma, ends)
	}
	return fmt.Sprintf("%d lengths of %s%s", len(l.Samples), l.File, ends)
}

// LognormalMedian returns the median of an unclipped lognormal of a mean.
func LognormalMedian(mean, sigma float64) float64 { return mean * math.Exp(-sigma*sigma/2) }

// Quantile returns the clipped length at probability u in (0, 1), at least one token. Lengths are
// drawn by inverting the distribution at uniform numbers, so two workloads drawn with one seed
// differ only where their distributions do. It panics for a distribution that cannot be drawn from:
// one without a family, or an empirical one without samples.
func (l Lengths) Quantile(u float64) int {
	var x float64
	switch l.Dist {
	case Fixed:
		x = float64(l.Value)
	case Uniform:
		return max(min(l.Min+int(u*float64(max(l.Max-l.Min, 0)+1)), l.Max), l.Min, 1)
	case Normal:
		x = l.Mean + l.StdDev*distuv.UnitNormal.Quantile(u)
	case Lognormal:
		x = l.Median * math.Exp(l.Sigma*distuv.UnitNormal.Quantile(u))
	case Empirical:
		x = float64(l.Samples[min(int(u*float64(len(l.Samples))), len(l.Samples)-1)])
	default:
		panic("workload: lengths without a distribution")
	}
	// Clipped before it is rounded, to stay in int's range; this is beyond any Max.
	n := int(math.Round(min(max(x, 0), 1<<40)))
	if l.Max > 0 {
		n = min(n, l.Max)
	}
	return max(n, l.Min, 1)
}

// Expected returns the mean of the clipped distribution in tokens, by the midpoint rule over 4,096
// equal slices of probability.
func (l Lengths) Expected() float64 {
	const slices = 4096
	sum := 0.0
	for i := range slices {
		sum += float64(l.Quantile((float64(i) + 0.5) / slices))
	}
	return sum / slices
}

// Longest returns the largest length that can be drawn, 0 if there is no upper end.
func (l Lengths) Longest() int {
	switch {
	case l.Dist == Fixed, l.Dist == Uniform, l.Dist == Empirical && len(l.Samples) > 0:
		return l.Quantile(1)
	case l.Max > 0:
		return max(l.Max, l.Min)
	}
	return 0
}

// Longer returns the workload with all prompts, shared parts included, and all answers scaled by a
// factor each. Draws with one seed remain those of the same requests.
func (w *Workload) Longer(prompts, answers float64) *Workload {
	longer := *w
	longer.MaxLen = scaled(w.MaxLen, max(prompts, answers))
	longer.Shapes = list.Map(w.Shapes, func(s Shape) Shape {
		s.Prompt, s.Output = s.Prompt.longer(prompts), s.Output.longer(answers)
		s.Prefix.Tokens = scaled(s.Prefix.Tokens, prompts)
		return s
	})
	longer.Replay = list.Map(w.Replay, func(r TraceRow) TraceRow {
		r.Prompt, r.Output = scaled(r.Prompt, prompts), scaled(r.Output, answers)
		r.Shared = list.Map(r.Shared, func(s Segment) Segment {
			s.Tokens = scaled(s.Tokens, prompts)
			return s
		})
		return r
	})
	return &longer
}

func (l Lengths) longer(by float64) Lengths {
	l.Value, l.Min, l.Max = scaled(l.Value, by), scaled(l.Min, by), scaled(l.Max, by)
	l.Median, l.Mean, l.StdDev = l.Median*by, l.Mean*by, l.StdDev*by
	l.Samples = list.Map(l.Samples, func(n int) int { return scaled(n, by) })
	return l
}

func scaled(tokens int, by float64) int { return int(math.Round(float64(tokens) * by)) }
