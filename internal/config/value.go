package config

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// value is the room of one key in a Config.
type value interface {
	// take reads what was given, or notes what is wrong with it.
	take(n node)
	// text is the TOML literal of what holds now; "" when nothing does.
	text() string
}

// span is the range that a number must be in.
type span struct {
	low, high float64
	above     bool // low itself is not allowed
	below     bool // high itself is not allowed
}

// The ranges of the configuration. The upper end of the open ones is where sums
// and products of such numbers are still finite.
var (
	positive    = span{low: 0, above: true, high: 1e15}
	nonNegative = span{low: 0, high: 1e15}
	share       = span{low: 0, above: true, high: 1, below: true}
	shareOrOne  = span{low: 0, above: true, high: 1}
	shareOrZero = span{low: 0, high: 1, below: true}
)

// unspoken is where an upper end is so high that only who goes beyond it is told.
const unspoken = 1e6

func (s span) holds(x float64) bool {
	return x >= s.low && x <= s.high && !(s.above && x == s.low) && !(s.below && x == s.high)
}

// String says which numbers the span holds, as "of at least 0 and below 1".
func (s span) String() string {
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
func number(x float64) string {
	return strconv.FormatFloat(x, 'g', -1, 64)
}

// float is a number.
type float struct {
	p  *float64
	in span
}

func (v float) take(n node) {
	n = n.only()
	if x, ok := readFloat(n, v.in); ok {
		*v.p = x
	}
}

func (v float) text() string { return number(*v.p) }

func readFloat(n node, in span) (float64, bool) {
	var x float64
	switch v := n.value.(type) {
	case float64:
		x = v
	case int64:
		x = float64(v)
	default:
		x = math.NaN()
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

// mostTokens bounds whole numbers, so that sums and products of a few stay exact.
const mostTokens = 1 << 31

// whole is a whole number.
type whole struct {
	p   *int
	low int
}

func (v whole) take(n node) {
	n = n.only()
	if x, ok := readWhole(n, v.low); ok {
		*v.p = x
	}
}

func (v whole) text() string { return strconv.Itoa(*v.p) }

func readWhole(n node, low int) (int, bool) {
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

// truth is true or false.
type truth struct{ p *bool }

func (v truth) take(n node) {
	n = n.only()
	if x, ok := readTruth(n); ok {
		*v.p = x
	}
}

func (v truth) text() string { return strconv.FormatBool(*v.p) }

func readTruth(n node) (bool, bool) {
	x, ok := n.value.(bool)
	if !ok {
		n.wrong("true or false")
	}
	return x, ok
}

// word is a string, one of a set unless the set is empty.
type word struct {
	p       *string
	allowed []string
}

func (v word) take(n node) {
	n = n.only()
	if s, ok := readWord(n, v.allowed); ok {
		*v.p = s
	}
}

func (v word) text() string { return quote(*v.p) }

func readWord(n node, allowed []string) (string, bool) {
	s, ok := n.typed()
	switch {
	case !ok && len(allowed) == 0:
		n.wrong("a string in quotes")
		return "", false
	case len(allowed) == 0 || slices.Contains(allowed, s):
		return s, true
	}
	allowed = slices.DeleteFunc(slices.Clone(allowed), func(s string) bool { return s == "" })
	want := "one of " + strings.Join(allowed, ", ")
	if near := nearest(s, allowed); s != "" && likeness(s, near) <= (len(s)+1)/2 {
		want += " (nearest: " + near + ")"
	}
	n.wrong(want)
	return "", false
}

// quote prints a string as TOML reads it.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r < 0x20 || r == 0x7f:
			fmt.Fprintf(&b, `\u%04X`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// period is a duration, a string with its unit.
type period struct {
	p    *time.Duration
	zero bool // 0 is allowed
}

func (v period) take(n node) {
	n = n.only()
	if d, ok := readPeriod(n, v.zero); ok {
		*v.p = d
	}
}

func (v period) text() string { return quote(duration(*v.p)) }

// longestPeriod is more than a year; sums and products of such durations by counts
// of tokens stay within what a time.Duration holds.
const longestPeriod = 10000 * time.Hour

// readPeriod reads "500ms"; a bare number is refused, because it could be seconds
// as well as milliseconds.
func readPeriod(n node, zero bool) (time.Duration, bool) {
	want := `a duration above 0 with its unit, such as "500ms"`
	if zero {
		want = `a duration with its unit, such as "30s"`
	}
	s, ok := n.value.(string)
	if !ok {
		n.wrong(want)
		return 0, false
	}
	d, err := time.ParseDuration(s)
	if err == nil && d > longestPeriod {
		n.wrong("a duration of at most " + duration(longestPeriod))
		return 0, false
	}
	if err != nil || d < 0 || d == 0 && !zero || strings.Trim(s, "+-0123456789.") == "" {
		n.wrong(want)
		return 0, false
	}
	return d, true
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

// auto is a duration, or the word auto for 0.
type auto struct {
	p    *Auto
	zero bool
}

func (v auto) take(n node) {
	n = n.only()
	if s, ok := n.value.(string); ok && s == "auto" {
		*v.p = Auto{}
		return
	}
	if d, ok := readPeriod(n, v.zero); ok {
		*v.p = Auto{Given: true, Duration: d}
	}
}

func (v auto) text() string {
	if !v.p.Given {
		return `"auto"`
	}
	return quote(duration(v.p.Duration))
}

// optional is a value whose absence means something that no value says.
type optional struct {
	value
	given *bool
}

func (v optional) take(n node) {
	*v.given = true
	v.value.take(n)
}

func (v optional) text() string {
	if !*v.given {
		return ""
	}
	return v.value.text()
}
