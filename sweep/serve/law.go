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

// Law is a distribution of durations. The zero value is always zero.
type Law struct {
	kind string // "" for a constant
	// a and b are the parameters in seconds; sigma of a lognormal has no unit.
	a, b float64
}

// Constant is the law of a duration that never varies.
func Constant(d time.Duration) Law { return Law{a: d.Seconds()} }

// ParseLaw reads a duration such as "100ms", or a distribution:
// "exponential:MEAN", "lognormal:MEDIAN,SIGMA" with sigma of the logarithm,
// "uniform:LOW,HIGH".
func ParseLaw(s string) (Law, error) {
	kind, rest, found := strings.Cut(s, ":")
	if !found {
		a, err := parseSeconds(s)
		return Law{a: a}, err
	}
	if !slices.Contains([]string{"exponential", "lognormal", "uniform"}, kind) {
		return Law{}, fmt.Errorf("read distribution %q: unknown kind %q; allowed: a duration, exponential, lognormal, uniform", s, kind)
	}
	first, second, two := strings.Cut(rest, ",")
	a, err := parseSeconds(first)
	if err != nil {
		return Law{}, err
	}
	l := Law{kind: kind, a: a}
	switch kind {
	case "exponential":
		if two {
			return Law{}, fmt.Errorf("read distribution %q: exponential takes its mean alone", s)
		}
		return l, nil
	case "lognormal":
		l.b, err = strconv.ParseFloat(second, 64)
		if err != nil || !(l.b >= 0) || math.IsInf(l.b, 1) {
			return Law{}, fmt.Errorf("read distribution %q: lognormal takes a median and a sigma, as in lognormal:100ms,0.5", s)
		}
		return l, nil
	default: // uniform
		l.b, err = parseSeconds(second)
		if err != nil || l.b < l.a {
			return Law{}, fmt.Errorf("read distribution %q: uniform takes a low and a high end, as in uniform:80ms,120ms", s)
		}
		return l, nil
	}
}

func parseSeconds(s string) (float64, error) {
	d, err := time.ParseDuration(strings.TrimSpace(s))
	if err != nil || d < 0 {
		return 0, fmt.Errorf("read duration %q: want one that is not negative, as in 100ms", s)
	}
	return d.Seconds(), nil
}

// String is what [ParseLaw] reads.
func (l Law) String() string {
	a := seconds(l.a).String()
	switch l.kind {
	case "":
		return a
	case "exponential":
		return l.kind + ":" + a
	case "lognormal":
		return l.kind + ":" + a + "," + strconv.FormatFloat(l.b, 'g', -1, 64)
	}
	return l.kind + ":" + a + "," + seconds(l.b).String()
}

// draw takes one duration.
func (l Law) draw(rng *rand.Rand) time.Duration {
	switch l.kind {
	case "exponential":
		return seconds(l.a * rng.ExpFloat64())
	case "lognormal":
		return seconds(l.a * math.Exp(l.b*rng.NormFloat64()))
	case "uniform":
		return seconds(l.a + (l.b-l.a)*rng.Float64())
	}
	return seconds(l.a)
}

func seconds(s float64) time.Duration { return time.Duration(math.Round(min(s, 1e9) * 1e9)) }
