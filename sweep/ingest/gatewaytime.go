package ingest

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// logLayouts are the ways in which logs write a time; without a zone it is UTC.
var logLayouts = []string{
	time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02 15:04:05Z07:00", "2006-01-02 15:04:05", "2006-01-02 15:04:05 -0700",
	"2006-01-02T15:04:05-0700", "2006-01-02 15:04:05,000", "02/Jan/2006:15:04:05 -0700", time.RFC1123Z, time.RFC1123, time.ANSIC,
}

// instant reads a time: a number in a unit that is to be found out, or a date, as
// seconds since 1970.
func instant(v logValue) (at float64, numeric bool, err error) {
	if v.numeric {
		if math.IsNaN(v.number) || math.IsInf(v.number, 0) {
			return 0, true, fmt.Errorf("%g is no time", v.number)
		}
		return v.number, true, nil
	}
	for _, layout := range logLayouts {
		if t, err := time.Parse(layout, v.text); err == nil && t.Year() >= 1970 && t.Year() < 2200 {
			return float64(t.Unix()) + float64(t.Nanosecond())/1e9, false, nil
		}
	}
	return 0, false, fmt.Errorf("%q is no time that is understood", shorten(v.text))
}

// lasted reads a duration.
func lasted(v logValue) (time.Duration, error) {
	switch {
	case !v.ok:
		return 0, errors.New("is missing: the log gives the end of requests, and only the duration tells their arrival")
	case !v.numeric:
		if d, err := time.ParseDuration(v.text); err == nil && d >= 0 {
			return d, nil
		}
		return 0, fmt.Errorf("%q is no duration", shorten(v.text))
	case v.unit == 0:
		return 0, errors.New("its unit is not known; the key should end in _s or _ms")
	}
	d, ok := duration(v.number, v.unit)
	if !ok {
		return 0, fmt.Errorf("%g is no duration", v.number)
	}
	return d, nil
}
