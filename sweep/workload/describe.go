package workload

import (
	"math"
	"slices"
	"time"

	"gonum.org/v1/gonum/stat"

	"planner/internal/list"
)

// Description says what the traffic of a trace looks like. Figures that the trace is too short for
// are NaN.
type Description struct {
	Requests int `json:"requests"`
	// Span is the time from the first arrival to the last, Rate the mean rate in
	// requests per second: Requests - 1 gaps in Span.
	Span time.Duration `json:"span_s"`
	Rate float64       `json:"rate_per_s"`
	// GapCV is the coefficient of variation of the gaps between arrivals (1 for Poisson),
	// GapCorrelation the correlation of each gap with the next (0 for Poisson).
	GapCV          float64 `json:"gap_cv"`
	GapCorrelation float64 `json:"gap_autocorrelation"`
	// Dispersion holds the variance over the mean of the arrivals in windows of
	// 1, 10 and 60 s.
	Dispersion []DispersionIndex `json:"index_of_dispersion"`
	// Prompt, Output and Total are lengths in tokens; Correlation is Pearson's, of
	// prompts with outputs.
	Prompt      LengthSummary `json:"prompt_tokens"`
	Output      LengthSummary `json:"output_tokens"`
	Total       LengthSummary `json:"total_tokens"`
	Correlation float64       `json:"prompt_output_correlation"`
	// Prefix is nil for a trace that does not identify prefixes.
	Prefix *PrefixSummary `json:"prefix"`
	// BusiestHour and BusiestMinute are those with the most arrivals.
	BusiestHour   Busiest `json:"busiest_hour"`
	BusiestMinute Busiest `json:"busiest_minute"`
}

// DispersionIndex is the index of dispersion of counts in windows of one length: 1
// for Poisson arrivals, above it for bursts.
type DispersionIndex struct {
	Window time.Duration `json:"window_s"`
	Index  float64       `json:"index"`
	// Windows is how many whole windows the trace holds.
	Windows int `json:"windows"`
}

// LengthSummary describes lengths in tokens; quantiles are those of the inverse empirical
// distribution.
type LengthSummary struct {
	Mean   float64 `json:"mean"`
	StdDev float64 `json:"stddev"`
	Least  int     `json:"min"`
	P50    int     `json:"p50"`
	P90    int     `json:"p90"`
	P99    int     `json:"p99"`
	Most   int     `json:"max"`
	// Sum is over all requests.
	Sum int `json:"sum"`
}

// PrefixSummary says how much of the prompts repeats the beginnings of others.
type PrefixSummary struct {
	// Repeated is the share of prompt tokens that repeat the beginning of an earlier request: the
	// hit rate of an unlimited prefix cache.
	Repeated float64 `json:"repeated_share"`
	// Sharing is the share of the requests that begin as another one does, Distinct the number of
	// different beginnings, and Shared that of those which more than one request has.
	Sharing  float64 `json:"sharing_requests_share"`
	Distinct int     `json:"distinct"`
	Shared   int     `json:"shared"`
}

// Busiest is the hour, or the minute, with the most arrivals.
type Busiest struct {
	From     time.Duration `json:"from_s"`
	Requests int           `json:"requests"`
	// Rate is Requests over that hour or minute; for a trace that is no longer, its mean rate.
	Rate float64 `json:"rate_per_s"`
}

// Describe describes rows, which are in order of arrival.
func Describe(rows []TraceRow) Description {
	d := Description{Requests: len(rows), Rate: math.NaN(), GapCV: math.NaN(), GapCorrelation: math.NaN(), Correlation: math.NaN()}
	if len(rows) == 0 {
		return d
	}
	d.Span = rows[len(rows)-1].Arrival - rows[0].Arrival
	if d.Span > 0 {
		d.Rate = float64(len(rows)-1) / d.Span.Seconds()
	}
	d.gaps(rows)
	d.Dispersion = list.Map([]time.Duration{time.Second, 10 * time.Second, time.Minute}, func(w time.Duration) DispersionIndex { return dispersion(rows, w) })
	d.lengths(rows)
	d.Prefix = prefixes(rows)
	d.BusiestHour, d.BusiestMinute = busiest(rows, time.Hour), busiest(rows, time.Minute)
	return d
}

func (d *Description) gaps(rows []TraceRow) {
	gaps := make([]float64, 0, len(rows))
	for i := 1; i < len(rows); i++ {
		gaps = append(gaps, (rows[i].Arrival - rows[i-1].Arrival).Seconds())
	}
	if len(gaps) < 2 {
		return
	}
	mean, deviation := stat.MeanStdDev(gaps, nil)
	if mean > 0 {
		d.GapCV = deviation / mean
	}
	if len(gaps) > 2 && deviation > 0 {
		d.GapCorrelation = stat.Correlation(gaps[:len(gaps)-1], gaps[1:], nil)
	}
}

// dispersion counts arrivals in the whole windows that follow the first arrival.
func dispersion(rows []TraceRow, window time.Duration) DispersionIndex {
	start := rows[0].Arrival
	n := int((rows[len(rows)-1].Arrival - start) / window)
	d := DispersionIndex{Window: window, Index: math.NaN(), Windows: n}
	if n < 2 {
		return d
	}
	// Counts are kept for the windows with arrivals only: a log may be silent for
	// years.
	var sum, squares, count float64
	at := -1
	for _, r := range rows {
		i := int((r.Arrival - start) / window)
		if i >= n {
			break
		}
		if i != at {
			sum, squares = sum+count, squares+count*count
			at, count = i, 0
		}
		count++
	}
	sum, squares = sum+count, squares+count*count
	mean := sum / float64(n)
	variance := (squares - mean*sum) / float64(n-1)
	d.Index = variance / mean
	return d
}

func (d *Description) lengths(rows []TraceRow) {
	prompts, outputs, totals := make([]float64, len(rows)), make([]float64, len(rows)), make([]float64, len(rows))
	for i, r := range rows {
		prompts[i], outputs[i], totals[i] = float64(r.Prompt), float64(r.Output), float64(r.Prompt+r.Output)
	}
	if len(rows) > 2 {
		d.Correlation = stat.Correlation(prompts, outputs, nil)
	}
	d.Prompt, d.Output, d.Total = summarizeLengths(prompts), summarizeLengths(outputs), summarizeLengths(totals)
}

// DescribeLengths describes lengths without arrivals; prompts and outputs need
// not belong together, so their sums and their correlation are left out.
func DescribeLengths(prompts, outputs []int) Description {
	d := Describe(nil)
	d.Requests = len(prompts)
	if len(prompts) > 0 && len(outputs) > 0 {
		float := func(n int) float64 { return float64(n) }
		d.Prompt, d.Output = summarizeLengths(list.Map(prompts, float)), summarizeLengths(list.Map(outputs, float))
	}
	return d
}

// summarizeLengths sorts the lengths.
func summarizeLengths(x []float64) LengthSummary {
	slices.Sort(x)
	at := func(q float64) int { return int(stat.Quantile(q, stat.Empirical, x, nil)) }
	s := LengthSummary{Least: int(x[0]), P50: at(0.50), P90: at(0.90), P99: at(0.99), Most: int(x[len(x)-1])}
	s.Mean, s.StdDev = stat.MeanStdDev(x, nil)
	for _, v := range x {
		s.Sum += int(v)
	}
	return s
}

// prefixes follows the shared parts of each prompt as far as an earlier request had them too. Two
// requests share a part only if they share everything before it.
func prefixes(rows []TraceRow) *PrefixSummary {
	// seen is how many tokens of a part were seen after the same beginning; the key is both.
	seen := map[[2]Content]int{}
	uses := map[Content]int{}
	total, repeated := 0, 0
	for i := range rows {
		r := &rows[i]
		total += r.Prompt
		if len(r.Shared) == 0 {
			continue
		}
		uses[r.Shared[0].Content]++
		repeated += walk(seen, r)
	}
	if len(uses) == 0 {
		return nil
	}
	s := &PrefixSummary{Distinct: len(uses)}
	sharing := list.Count(rows, func(r TraceRow) bool { return len(r.Shared) > 0 && uses[r.Shared[0].Content] > 1 })
	for _, n := range uses {
		if n > 1 {
			s.Shared++
		}
	}
	if total > 0 {
		s.Repeated = float64(repeated) / float64(total)
	}
	s.Sharing = float64(sharing) / float64(len(rows))
	return s
}

// walk counts the tokens at the beginning of a prompt that were seen before, and notes all parts as
// seen.
func walk(seen map[[2]Content]int, r *TraceRow) (repeated int) {
	before, along := Content(0), true
	for _, part := range r.Shared {
		b := [2]Content{before, part.Content}
		had := seen[b]
		if along {
			repeated += min(had, part.Tokens)
			along = had >= part.Tokens
		}
		seen[b] = max(had, part.Tokens)
		before = contentOf(uint64(before), uint64(part.Content), uint64(part.Tokens))
	}
	return repeated
}

// busiest finds the window with the most arrivals, of those that begin at an arrival.
func busiest(rows []TraceRow, window time.Duration) Busiest {
	var b Busiest
	last := 0
	for first := range rows {
		for last < len(rows) && rows[last].Arrival < rows[first].Arrival+window {
			last++
		}
		if n := last - first; n > b.Requests {
			b = Busiest{From: rows[first].Arrival - rows[0].Arrival, Requests: n}
		}
	}
	if b.Rate = float64(b.Requests) / window.Seconds(); rows[len(rows)-1].Arrival-rows[0].Arrival <= window {
		b.Rate = meanRate(rows)
	}
	return b
}
