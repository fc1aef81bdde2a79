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

// codec reads and prints the values of a key. Reading reports what is wrong with a value, which is then
// discarded, whatever is returned.
type codec[T any] struct {
	read  func(input) T
	print func(T) string
	// A composite codec reads lists itself; others read a list of one as its element.
	composite bool
	// choices are the words allowed as a value; empty if it is not one of a set.
	choices []string
}

// binding binds a key to a field of a Config.
type binding struct {
	take func(input)
	// text returns the current value as a TOML literal; "" if there is none.
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

// orNothing returns a codec whose zero value means that none is given.
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
	lowOpen, highOpen bool // whether the end is excluded
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

// text describes the range, such as "of at least 0 and below 1", with its ends as they are printed.
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

// numeric returns a codec for numbers in a range, with their name and a conversion from TOML values. The bound
// most is mentioned only to those who exceed it.
func numeric[T int | uint64 | float64 | time.Duration](name, unit string, allowed numberRange, most T, from func(any) (T, bool), print func(T) string) codec[T] {
	bound := func(x float64) string {
		if x == 0 {
			return "0" // without a unit
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

// numberIn is a number in a range, at most 1e15 so that sums and products of a few stay finite.
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

// mostTokens bounds whole numbers so that sums and products of a few stay exact.
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

// durationIn is a duration in a range: a string with a unit, as a bare number could be seconds or milliseconds.
// The maximum is more than a year; a time.Duration holds 256 times as much.
func durationIn(allowed numberRange) codec[time.Duration] {
	from := func(v any) (time.Duration, bool) {
		s, ok := v.(string)
		d, err := time.ParseDuration(s)
		return d, ok && err == nil && strings.Trim(s, "+-0123456789.") != ""
	}
	return numeric("a duration", ` with its unit, such as "500ms"`, allowed, 10000*time.Hour, from, func(d time.Duration) string { return quote(duration(d)) })
}

// duration prints a duration without the trailing zero parts of String.
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

// switched is true, false, or auto for the engine's default.
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

// choice is a single value or a list to choose from. Duplicates count once.
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
