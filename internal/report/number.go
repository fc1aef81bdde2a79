package report

import (
	"cmp"
	"math"
	"strconv"
	"strings"
	"time"

	"planner/internal/stat"
	"planner/search"
)

// unknown is printed for an unknown figure.
const unknown = "-"

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// number prints v with the given number of significant digits and thousands separators, and very large and
// small values in scientific notation.
func number(v float64, digits int) string {
	switch {
	case !finite(v):
		return unknown
	case v == 0:
		return "0"
	case math.Abs(v) < 1e-4 || math.Abs(v) >= 1e9:
		return strconv.FormatFloat(v, 'e', digits-1, 64)
	}
	return fixed(v, digits-1-exponent(v, digits))
}

// exponent returns the decimal exponent of v after rounding to the given digits.
func exponent(v float64, digits int) int {
	_, e, _ := strings.Cut(strconv.FormatFloat(v, 'e', digits-1, 64), "e")
	n, _ := strconv.Atoi(e) // FormatFloat always writes a number after the e
	return n
}

// fixed prints v with the given number of decimals, which may be negative to
// round before the point, and thousands separators.
func fixed(v float64, decimals int) string {
	if !finite(v) {
		return unknown
	}
	if decimals < 0 {
		p := math.Pow(10, float64(-decimals))
		v, decimals = math.Round(v/p)*p, 0
	}
	return group(strconv.FormatFloat(v, 'f', decimals, 64))
}

// group puts commas between the thousands of a decimal number, and removes the sign of a zero.
func group(s string) string {
	s, negative := strings.CutPrefix(s, "-")
	whole, frac, point := strings.Cut(s, ".")
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	return where(negative && strings.Trim(s, "0.") != "", "-") + whole + where(point, "."+frac)
}

// plus also gives positive figures a sign.
func plus(figure string) string {
	return where(figure != unknown && figure[0] != '-' && strings.Trim(figure, "0.") != "", "+") + figure
}

func signedShare(share float64) string {
	return either(finite(share), plus(fixed(100*share, 1))+" %", unknown)
}

// exact prints a figure given by a user: six digits, or all before the point if more.
func exact(v float64) string {
	if !finite(v) {
		return unknown
	}
	s := strconv.FormatFloat(v, 'g', 6, 64)
	if strings.Contains(s, "e") {
		if math.Abs(v) < 1e-4 || math.Abs(v) >= 1e15 {
			return s
		}
		s = strconv.FormatFloat(v, 'f', -1, 64)
	}
	return group(s)
}

func count(n int) string { return group(strconv.Itoa(n)) }

// some prints a count, of which 0 means unknown.
func some(n int) string { return either(n > 0, count(n), unknown) }

// someOf prints a figure, of which 0 means unknown.
func someOf(v float64, digits int) string { return either(v <= 0, unknown, number(v, digits)) }

// rate prints requests/s given by a user, or requests per day if few.
func rate(v float64) string {
	if v > 0 && v < 1e-3 {
		daily := exact(stat.Rounded(v*86400, 6))
		return daily + either(daily == "1", " request/day", " requests/day")
	}
	return exact(v) + " requests/s"
}

// few rounds a computed rate to four digits; a small one is left to rate, which prints it in another unit.
func few(v float64) float64 { return either(v < 1e-3, v, stat.Rounded(v, 4)) }

// decimals returns how many decimals an uncertainty supports: two of its digits if they are below 36 and one
// otherwise, the rule of the Particle Data Group.
func decimals(uncertainty float64) int {
	if !finite(uncertainty) || uncertainty <= 0 {
		return 0
	}
	e := exponent(uncertainty, 3)
	if uncertainty/math.Pow(10, float64(e)) < 3.55 {
		e--
	}
	return min(-e, 6)
}

// down and up print v with the given number of decimals, rounded so as not to promise more than v: the ends of
// an interval outwards, and what a fleet may rely on downwards.
func down(v float64, decimals int) string { return outward(v, decimals, math.Floor, 1) }

func up(v float64, decimals int) string { return outward(v, decimals, math.Ceil, -1) }

// outward ignores the rounding errors of floating point.
func outward(v float64, decimals int, side func(float64) float64, inward float64) string {
	p := math.Pow(10, float64(decimals))
	return fixed(side(v*p+inward*1e-9*math.Abs(v*p))/p, decimals)
}

// estimate prints an estimate with the decimals that its interval supports, and at least three digits of the
// value and the safe rate, so that dividing a load by them gives the fleet shown. The interval reads "20.4-21.7
// at 90 %", empty if there is none.
func estimate(e search.Estimate) (value, interval, safe string) {
	half := (e.High - e.Low) / 2
	sensible := finite(e.Value) && finite(half) && e.Value >= 0
	if sensible && e.Value >= 1e-4 && e.Value < 1e9 {
		d := 2 - exponent(e.Value, 3)
		if half > 0 {
			d = max(d, decimals(half))
		}
		low := d
		if e.Safe > 0 {
			low = max(d, min(2-exponent(e.Safe, 3), d+2))
		}
		value, interval, safe = fixed(e.Value, d), down(e.Low, low)+"-"+up(e.High, d), down(e.Safe, low)
	} else { // a hyphen would look like the sign of an exponent
		value, interval, safe = number(e.Value, 3), number(e.Low, 3)+" to "+number(e.High, 3), number(stat.RoundedDown(e.Safe, 3), 3)
	}
	return value, where(sensible && half > 0, interval+where(e.Confidence > 0, " at "+percent(e.Confidence))), safe
}

// percent prints a share with at most one decimal, 99.9 %, but two digits of a small one, 0.012 %, or of a
// small distance from 100 %, 99.987 %.
func percent(share float64) string {
	p := 100 * share
	small := p
	if left := 100 - p; left > 1e-9 && left < 0.05 {
		small = left
	}
	switch a := math.Abs(p); {
	case !finite(p):
		return unknown
	case a > 0 && a < 0.01:
		return "less than 0.01 %"
	case small != p && small < 5e-5:
		return "more than 99.9999 %"
	}
	return strings.TrimRight(strings.TrimRight(fixed(p, max(1, 1-exponent(small, 2))), "0"), ".") + " %"
}

func share(v float64) string { return percent(math.Round(100*v) / 100) }

// quotient prints the number of instances that a load needs, with at least one decimal so that the rounding
// shows.
func quotient(v float64) string {
	return either(v < 1e-3, "less than 0.001", fixed(v, max(1, 2-exponent(v, 3))))
}

// latency prints a duration in a suitable unit with three digits.
func latency(d time.Duration) string {
	switch {
	case d < 0:
		return unknown
	case d < time.Second:
		return number(millis(d), 3) + " ms"
	case d < 10*time.Minute:
		return number(d.Seconds(), 3) + " s"
	case d < 10*time.Hour:
		return number(d.Minutes(), 3) + " min"
	}
	return number(d.Hours(), 3) + " h"
}

// latencyAbove is latency rounded up, so that an insufficient limit never looks sufficient.
func latencyAbove(d time.Duration) string {
	if d <= 0 {
		return latency(d)
	}
	step := time.Duration(math.Pow(10, math.Floor(math.Log10(float64(d)))-2))
	if step > 1 {
		d = (d + step - 1) / step * step
	}
	return latency(d)
}

// limit prints a latency given by a user.
func limit(d time.Duration) string {
	return either(d >= time.Second, exact(d.Seconds())+" s", exact(millis(d))+" ms")
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func milliseconds(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// money prints US dollars: whole from 10,000 on, with cents below, and two digits below ten cents.
func money(v float64) string {
	switch a := math.Abs(v); {
	case !finite(v):
		return unknown
	case a >= 1e4:
		return "$" + fixed(v, 0)
	case a >= 0.1 || a == 0:
		return "$" + fixed(v, 2)
	}
	return "$" + number(v, 2)
}

func dollars(v *float64) string { return cmp.Or(told(v, money), unknown) }

// plural prints "1 instance", "2 instances".
func plural(n int, noun string) string {
	return count(n) + " " + noun + where(n != 1, "s")
}
