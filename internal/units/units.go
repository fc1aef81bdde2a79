// Package units converts figures between files and the program: milliseconds and
// seconds there, durations here, null there for what is not known.
package units

import (
	"math"
	"strconv"
	"time"
)

// Finite returns a figure for a file: nil when it is infinite or no number.
func Finite(x float64) *float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return nil
	}
	return &x
}

// Known returns a figure that is never negative for a file: nil when it is, or is
// infinite or no number.
func Known(x float64) *float64 {
	if x < 0 {
		return nil
	}
	return Finite(x)
}

// Millis returns a time in milliseconds, nil for a negative one, which is not known.
func Millis(d time.Duration) *float64 {
	if d < 0 {
		return nil
	}
	ms := float64(d) / float64(time.Millisecond)
	return &ms
}

// FromMillis is the inverse of [Millis], -1 for nil. It is exact for times below 26
// days.
func FromMillis(ms *float64) time.Duration {
	if ms == nil {
		return -1
	}
	return Duration(*ms, time.Millisecond)
}

// Duration returns x units of time, rounded to whole nanoseconds and kept within what
// a [time.Duration] holds.
func Duration(x float64, unit time.Duration) time.Duration {
	const most = 1 << 62
	return time.Duration(math.Round(min(max(x*float64(unit), -most), most)))
}

// Milliseconds converts seconds. The result has twelve digits, so that what is read,
// taken for [Seconds] and written again stays the same to the byte.
func Milliseconds(seconds float64) float64 {
	ms, err := strconv.ParseFloat(strconv.FormatFloat(1e3*seconds, 'g', 12, 64), 64)
	if err != nil {
		return 1e3 * seconds
	}
	return ms
}

// Seconds is the inverse of [Milliseconds].
func Seconds(milliseconds float64) float64 { return milliseconds / 1e3 }
