package config

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"planner/internal/list"
	"planner/model"
)

// codec says how the values of a key are read and printed. Reading notes what is wrong with
// a value, which is then not taken, whatever is returned.
type codec[T any] struct {
	read  func(input) T
	print func(T) string
	// composite codecs take lists as they are; others a list of one as its element.
	composite bool
	// choices are the words that a value may be; none where it is no word of a set.
	choices []string
}

// binding ties a key to a place in a Config.
type binding struct {
	take func(input)
	// text is the TOML literal of what holds now; "" when nothing does.
	text func() string
	// choices are the words to choose from, if any.
	choices []string
}

func (k codec[T]) in(p *T) binding {
	take := func(n input) {
		if !k.composite {
			n = n.only()
		}
		before := len(n.r.problems)
		if x := k.read(n); len(n.r.problems) == before {
			*p = x
		}
	}
	return binding{take, func() string { return k.print(*p) }, k.choices}
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

type numberRange struct {
	low, high         float64
	lowOpen, highOpen bool // the end itself is not in it
}

func above(low float64) numberRange   { return numberRange{low: low, high: math.Inf(1), lowOpen: true} }
func atLeast(low float64) numberRange { return numberRange{low: low, high: math.Inf(1)} }

func (s numberRange) atMost(high float64) numberRange {
	return numberRange{s.low, high, s.lowOpen, false}
}
func (s numberRange) below(high float64) numberRange {
	return numberRange{s.low, high, s.lowOpen, true}
}

func (s numberRange) holds(x float64) bool {
	return x >= s.low && x <= s.high && !(s.lowOpen && x == s.low) && !(s.highOpen && x == s.high)
}

// text says which numbers it holds, as "of at least 0 and below 1", each as it is printed.
func (s numberRange) text(print func(float64) string) string {
	low, high := "of at least ", " and at most "
	if s.lowOpen {
		low = "above "
	}
	if s.highOpen {
		high = " and below "
	}
	text := low + print(s.low)
	if !math.IsInf(s.high, 1) {
		text += high + print(s.high)
	}
	return text
}

func number(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

// numeric is a codec of the numbers in a range, by what they are called and how one is made of a
// value of TOML. Of the most that one may be only who goes beyond it is told.
func numeric[T int | uint64 | float64 | time.Duration](name, unit string, allowed numberRange, most T, from func(any) (T, bool), print func(T) string) codec[T] {
	bound := func(x float64) string {
		if x == 0 {
			return "0" // of any unit
		}
		return print(T(x))
	}
	read := func(n input) T {
		x, ok := from(n.value)
		switch {
		case ok && x > most && !math.IsInf(float64(x), 0):
			n.wrong(name + " of at most " + print(most))
		case !ok || !allowed.holds(float64(x)) || x > most:
			n.wrong(name + " " + allowed.text(bound) + unit)
		}
		return x
	}
	return codec[T]{read: read, print: print}
}

// numberIn is a number in a range; sums and products of such numbers are still finite.
func numberIn(allowed numberRange) codec[float64] {
	from := func(v any) (float64, bool) {
		switch v := v.(type) {
		case float64:
			return v, true
		case int64:
			return float64(v), true
		}
		return 0, false
	}
	return numeric("a finite number", "", allowed, 1e15, from, number)
}

func share() codec[float64] { return numberIn(above(0).below(1)) }

// mostTokens bounds whole numbers, so that sums and products of a few stay exact.
const mostTokens = 1 << 31

func wholeIn(allowed numberRange) codec[int] {
	from := func(v any) (int, bool) {
		x, ok := v.(int64)
		return int(x), ok
	}
	return numeric("a whole number", "", allowed, mostTokens, from, strconv.Itoa)
}

func seed() codec[uint64] {
	from := func(v any) (uint64, bool) {
		x, ok := v.(int64)
		return uint64(x), ok && x >= 0
	}
	return numeric("a whole number", "", atLeast(0), math.MaxInt64, from, func(x uint64) string { return strconv.FormatUint(x, 10) })
}

// durationIn is a duration in a range, a string with a unit: a bare number could be
// seconds as well as milliseconds. The most is more than a year; sums and products of
// such durations by counts of tokens stay within what a time.Duration holds.
func durationIn(allowed numberRange) codec[time.Duration] {
	from := func(v any) (time.Duration, bool) {
		s, ok := v.(string)
		d, err := time.ParseDuration(s)
		return d, ok && err == nil && strings.Trim(s, "+-0123456789.") != ""
	}
	return numeric("a duration", ` with its unit, such as "500ms"`, allowed, 10000*time.Hour, from, func(d time.Duration) string { return quote(duration(d)) })
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

func orAuto(k codec[time.Duration]) codec[time.Duration] {
	read := func(n input) time.Duration {
		if n.value == "auto" {
			return Auto
		}
		return k.read(n)
	}
	return codec[time.Duration]{read: read, print: func(d time.Duration) string {
		if d == Auto {
			return `"auto"`
		}
		return k.print(d)
	}}
}

func truth() codec[bool] {
	read := func(n input) bool {
		x, ok := n.value.(bool)
		if !ok {
			n.wrong("true or false")
		}
		return x
	}
	return codec[bool]{read: read, print: strconv.FormatBool, choices: []string{"true", "false"}}
}

// switched is true or false, or auto: what the engine does by default.
func switched() codec[model.Choice] {
	read := func(n input) model.Choice {
		switch n.value {
		case true:
			return model.On
		case false:
			return model.Off
		case "auto":
		default:
			n.wrong("true, false or auto: the engine's default")
		}
		return model.ByDefault
	}
	return codec[model.Choice]{read: read, print: func(c model.Choice) string {
		return [...]string{`"auto"`, "true", "false"}[c]
	}, choices: []string{"auto", "true", "false"}}
}

func enumerated[T model.Enumeration]() codec[T] {
	return named(model.Parse[T], T.String, model.Names[T]()...)
}

// choice is a value that pins a setting, or a list to choose from. What is listed
// twice counts once.
func choice[T comparable](k codec[T]) codec[[]T] {
	read := func(n input) (out []T) {
		items := n.list()
		if len(items) == 0 {
			n.wrong("one value or a list of at least one")
		}
		if len(items) > mostCombinations {
			n.refuse("has %d values, want at most %d", len(items), mostCombinations)
			return nil
		}
		for _, item := range items {
			before := len(n.r.problems)
			if x := k.read(item); len(n.r.problems) == before && !slices.Contains(out, x) {
				out = append(out, x)
			}
		}
		return out
	}
	return codec[[]T]{read, func(items []T) string {
		switch len(items) {
		case 0:
			return ""
		case 1:
			return k.print(items[0])
		}
		return brackets(items, k.print)
	}, true, k.choices}
}

func brackets[T any](items []T, print func(T) string) string {
	return "[" + strings.Join(list.Map(items, print), ", ") + "]"
}
