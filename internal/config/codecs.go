package config

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// codec says how the values of a key are read, or what is wrong with them, and printed.
type codec[T any] struct {
	read  func(input) (T, bool)
	print func(T) string
	// composite codecs take lists as they are; others a list of one as its element.
	composite bool
}

// binding ties a key to a place in a Config.
type binding struct {
	take func(input)
	// text is the TOML literal of what holds now; "" when nothing does.
	text func() string
}

// in ties a key to a place by the codec.
func (k codec[T]) in(p *T) binding {
	take := func(n input) {
		if !k.composite {
			n = n.only()
		}
		if x, ok := k.read(n); ok {
			*p = x
		}
	}
	return binding{take, func() string { return k.print(*p) }}
}

// optional is a binding whose absence means something that no value says.
func optional(s binding, given *bool) binding {
	take := func(n input) {
		*given = true
		s.take(n)
	}
	return binding{take, func() string {
		if !*given {
			return ""
		}
		return s.text()
	}}
}

// orNothing is a codec whose zero value says that none is given.
func orNothing[T comparable](k codec[T]) codec[T] {
	var zero T
	print := k.print
	k.print = func(x T) string {
		if x == zero {
			return ""
		}
		return print(x)
	}
	return k
}

// pointer is a codec whose values may be missing.
func pointer[T any](k codec[T]) codec[*T] {
	read := func(n input) (*T, bool) {
		x, ok := k.read(n)
		return &x, ok
	}
	return codec[*T]{read, func(p *T) string {
		if p == nil {
			return ""
		}
		return k.print(*p)
	}, k.composite}
}

// numberRange is the range that a number must be in.
type numberRange struct {
	low, high float64
	above     bool // low itself is not allowed
	below     bool // high itself is not allowed
}

// The numbers of the configuration. The upper end of the open ranges is where sums
// and products of such numbers are still finite.
var (
	positive    = numberIn(numberRange{low: 0, above: true, high: 1e15})
	nonNegative = numberIn(numberRange{low: 0, high: 1e15})
	share       = numberIn(numberRange{low: 0, above: true, high: 1, below: true})
	shareOrOne  = numberIn(numberRange{low: 0, above: true, high: 1})
	shareOrZero = numberIn(numberRange{low: 0, high: 1, below: true})
)

// unspoken is where an upper end is so high that only who goes beyond it is told.
const unspoken = 1e6

func (s numberRange) holds(x float64) bool {
	return x >= s.low && x <= s.high && !(s.above && x == s.low) && !(s.below && x == s.high)
}

// String says which numbers it holds, as "of at least 0 and below 1".
func (s numberRange) String() string {
	low, high := "of at least ", " and at most "
	if s.above {
		low = "above "
	}
	if s.below {
		high = " and below "
	}
	text := low + number(s.low)
	if s.high < unspoken {
		text += high + number(s.high)
	}
	return text
}

// number prints a float as TOML reads it.
func number(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

// numberIn is a number in a range.
func numberIn(in numberRange) codec[float64] {
	read := func(n input) (float64, bool) {
		x := math.NaN()
		switch v := n.value.(type) {
		case float64:
			x = v
		case int64:
			x = float64(v)
		}
		switch {
		case in.holds(x):
			return x, true
		case x > in.high && in.high >= unspoken && !math.IsInf(x, 0):
			n.wrong("a number of at most " + number(in.high))
		default:
			n.wrong("a finite number " + in.String())
		}
		return 0, false
	}
	return codec[float64]{read: read, print: number}
}

// mostTokens bounds whole numbers, so that sums and products of a few stay exact.
const mostTokens = 1 << 31

// wholeFrom is a whole number from low.
func wholeFrom(low int) codec[int] {
	read := func(n input) (int, bool) {
		x, ok := n.value.(int64)
		switch {
		case ok && x >= int64(low) && x <= mostTokens:
			return int(x), true
		case x > mostTokens:
			n.wrong(fmt.Sprintf("a whole number of at most %d", mostTokens))
		default:
			n.wrong(fmt.Sprintf("a whole number of at least %d", low))
		}
		return 0, false
	}
	return codec[int]{read: read, print: strconv.Itoa}
}

// anySeed is any whole number from 0.
var anySeed = codec[uint64]{
	read: func(n input) (uint64, bool) {
		x, ok := n.value.(int64)
		if !ok || x < 0 {
			n.wrong("a whole number of at least 0")
			return 0, false
		}
		return uint64(x), true
	},
	print: func(x uint64) string { return strconv.FormatUint(x, 10) },
}

// truth is true or false.
var truth = codec[bool]{
	read: func(n input) (bool, bool) {
		x, ok := n.value.(bool)
		if !ok {
			n.wrong("true or false")
		}
		return x, ok
	},
	print: strconv.FormatBool,
}

// longestPeriod is more than a year; sums and products of such durations by counts
// of tokens stay within what a time.Duration holds.
const longestPeriod = 10000 * time.Hour

// period is a duration above 0, pause one that may be 0. Both are strings with a
// unit: a bare number could be seconds as well as milliseconds.
var (
	period = durationFrom(1, `a duration above 0 with its unit, such as "500ms"`)
	pause  = durationFrom(0, `a duration with its unit, such as "30s"`)
)

func durationFrom(least time.Duration, want string) codec[time.Duration] {
	read := func(n input) (time.Duration, bool) {
		s, ok := n.value.(string)
		d, err := time.ParseDuration(s)
		switch {
		case ok && err == nil && d > longestPeriod:
			n.wrong("a duration of at most " + duration(longestPeriod))
		case !ok || err != nil || d < least || strings.Trim(s, "+-0123456789.") == "":
			n.wrong(want)
		default:
			return d, true
		}
		return 0, false
	}
	return codec[time.Duration]{read: read, print: func(d time.Duration) string { return quote(duration(d)) }}
}

// duration prints a duration without the zero parts that String puts behind it.
func duration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// orAuto is a duration, or the word auto.
func orAuto(k codec[time.Duration]) codec[Auto] {
	read := func(n input) (Auto, bool) {
		if n.value == "auto" {
			return Auto{}, true
		}
		d, ok := k.read(n)
		return Auto{Given: true, Duration: d}, ok
	}
	return codec[Auto]{read: read, print: func(a Auto) string {
		if !a.Given {
			return `"auto"`
		}
		return k.print(a.Duration)
	}}
}

// choice is a value that pins a setting, or a list to choose from. What is listed
// twice counts once.
func choice[T comparable](k codec[T]) codec[[]T] {
	read := func(n input) ([]T, bool) {
		nodes := n.list()
		if len(nodes) == 0 {
			n.wrong("one value or a list of at least one")
		}
		var out []T
		for _, item := range nodes {
			if x, ok := k.read(item); ok && !slices.Contains(out, x) {
				out = append(out, x)
			}
		}
		return out, len(nodes) > 0
	}
	return codec[[]T]{read, func(items []T) string {
		switch len(items) {
		case 0:
			return ""
		case 1:
			return k.print(items[0])
		}
		return brackets(items, k.print)
	}, true}
}

func brackets[T any](items []T, print func(T) string) string {
	texts := make([]string, len(items))
	for i, x := range items {
		texts[i] = print(x)
	}
	return "[" + strings.Join(texts, ", ") + "]"
}

// braces prints an inline table.
func braces(keys []string, value func(string) string) string {
	if len(keys) == 0 {
		return "{}"
	}
	parts := make([]string, len(keys))
	for i, key := range keys {
		parts[i] = fmt.Sprintf("%s = %s", join("", key), value(key))
	}
	return "{ " + strings.Join(parts, ", ") + " }"
}
