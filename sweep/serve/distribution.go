package serve

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Distribution draws durations; nil draws zeros.
type Distribution func(*rand.Rand) time.Duration

// ParseDistribution reads a duration such as "100ms", which never varies, or
// "exponential:MEAN", "lognormal:MEDIAN,SIGMA" with sigma of the logarithm,
// "uniform:LOW,HIGH".
func ParseDistribution(s string) (Distribution, error) {
	kind, parameters, found := strings.Cut(s, ":")
	if !found {
		d, err := parseSeconds(s)
		return func(*rand.Rand) time.Duration { return seconds(d) }, err
	}
	if !slices.Contains([]string{"exponential", "lognormal", "uniform"}, kind) {
		return nil, fmt.Errorf("read distribution %q: unknown kind %q; allowed: a duration, exponential, lognormal, uniform", s, kind)
	}
	first, second, two := strings.Cut(parameters, ",")
	a, err := parseSeconds(first)
	if err != nil {
		return nil, err
	}
	switch kind {
	case "exponential":
		if two {
			return nil, fmt.Errorf("read distribution %q: exponential takes its mean alone", s)
		}
		return func(rng *rand.Rand) time.Duration { return seconds(a * rng.ExpFloat64()) }, nil
	case "lognormal":
		sigma, err := strconv.ParseFloat(second, 64)
		if err != nil || !(sigma >= 0) || math.IsInf(sigma, 1) {
			return nil, fmt.Errorf("read distribution %q: lognormal takes a median and a sigma, as in lognormal:100ms,0.5", s)
		}
		return func(rng *rand.Rand) time.Duration { return seconds(a * math.Exp(sigma*rng.NormFloat64())) }, nil
	default: // uniform
		b, err := parseSeconds(second)
		if err != nil || b < a {
			return nil, fmt.Errorf("read distribution %q: uniform takes a low and a high end, as in uniform:80ms,120ms", s)
		}
		return func(rng *rand.Rand) time.Duration { return seconds(a + (b-a)*rng.Float64()) }, nil
	}
}

func parseSeconds(s string) (float64, error) {
	d, err := time.ParseDuration(strings.TrimSpace(s))
	if err != nil || d < 0 {
		return 0, fmt.Errorf("read duration %q: want one that is not negative, as in 100ms", s)
	}
	return d.Seconds(), nil
}

func (d Distribution) draw(rng *rand.Rand) time.Duration {
	if d == nil {
		return 0
	}
	return d(rng)
}

func seconds(s float64) time.Duration { return time.Duration(math.Round(min(s, 1e9) * 1e9)) }
