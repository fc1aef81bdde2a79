package report

import (
	"math"
	"testing"
	"time"

	"planner/search"
)

func TestNumber(t *testing.T) {
	for _, tt := range []struct {
		v      float64
		digits int
		want   string
	}{
		{0, 3, "0"}, {1, 3, "1.00"}, {0.04167, 3, "0.0417"}, {999.6, 3, "1,000"}, {1234.5, 3, "1,230"}, {12345678, 3, "12,300,000"},
		{-1234.5, 3, "-1,230"}, {0.00001157, 3, "1.16e-05"}, {3e12, 3, "3.00e+12"}, {math.NaN(), 3, "-"}, {math.Inf(-1), 3, "-"}, {9.996, 3, "10.0"},
	} {
		if got := number(tt.v, tt.digits); got != tt.want {
			t.Errorf("number(%v, %d) = %q, want %q", tt.v, tt.digits, got, tt.want)
		}
	}
}

func TestWhatWasAskedStaysExact(t *testing.T) {
	for v, want := range map[float64]string{100: "100 requests/s", 0.5: "0.5 requests/s", 1e6: "1,000,000 requests/s", 12.34: "12.34 requests/s",
		1.0 / 86400: "1 request/day", 2.5 / 86400: "2.5 requests/day", 0.001: "0.001 requests/s", 1234567: "1,234,567 requests/s"} {
		if got := rate(v); got != want {
			t.Errorf("rate(%v) = %q, want %q", v, got, want)
		}
	}
	for d, want := range map[time.Duration]string{500 * ms: "500 ms", 2500 * ms: "2.5 s", 200 * time.Microsecond: "0.2 ms", time.Minute: "60 s"} {
		if got := limit(d); got != want {
			t.Errorf("limit(%v) = %q, want %q", d, got, want)
		}
	}
}

func TestLatency(t *testing.T) {
	for d, want := range map[time.Duration]string{-1: "-", 0: "0 ms", 412 * time.Microsecond: "0.412 ms", 82 * ms: "82.0 ms", 999600 * time.Microsecond: "1,000 ms",
		1234 * ms: "1.23 s", 180 * time.Second: "180 s", 21 * time.Minute: "21.0 min", 30 * time.Hour: "30.0 h"} {
		if got := latency(d); got != want {
			t.Errorf("latency(%v) = %q, want %q", d, got, want)
		}
	}
	for d, want := range map[time.Duration]string{43127 * time.Microsecond: "43.2 ms", 43100 * time.Microsecond: "43.1 ms", 999900 * time.Microsecond: "1.00 s", 1: "1.00e-06 ms"} {
		if got := latencyAbove(d); got != want {
			t.Errorf("latencyAbove(%v) = %q, want %q", d, got, want)
		}
	}
}

func TestMoney(t *testing.T) {
	for v, want := range map[float64]string{0: "$0.00", 83.72: "$83.72", 1234.5: "$1,234.50", 885183.52: "$885,184", 0.0042: "$0.0042", 0.31: "$0.31", 10000: "$10,000"} {
		if got := money(v); got != want {
			t.Errorf("money(%v) = %q, want %q", v, got, want)
		}
	}
	if dollars(nil) != "-" || money(math.NaN()) != "-" {
		t.Error("what is not known is no amount")
	}
}

// The decimals are the Particle Data Group's, two digits of an uncertainty below 36
// and one above, and no fewer than three digits of the value; ends and safe rates
// are rounded to the side that promises less.
func TestEstimatesAreRoundedToTheirUncertainty(t *testing.T) {
	of := func(v, half float64) search.Estimate {
		return search.Estimate{Value: v, Low: v - half, High: v + half, Safe: v - half, Confidence: 0.9}
	}
	for _, tt := range []struct {
		e                     search.Estimate
		value, interval, safe string
	}{
		{of(0.827, 0.119), "0.827", "0.708-0.946 at 90 %", "0.708"},
		{of(0.827, 0.367), "0.827", "0.460-1.194 at 90 %", "0.460"},
		{search.Estimate{Value: 12.34, Low: 0.2957, High: 40, Safe: 0.2957, Confidence: 0.9}, "12.3", "0.295-40.0 at 90 %", "0.295"},
		{of(16.912, 0.78), "16.9", "16.1-17.7 at 90 %", "16.1"},
		{of(123456, 2345), "123,500", "121,100-125,900 at 90 %", "121,100"},
		{search.Estimate{Value: 27.6, Low: 23.73, High: 31.04, Safe: 23.73, Confidence: 0.9}, "27.6", "23.7-31.1 at 90 %", "23.7"},
		{of(20, 0.5), "20.0", "19.5-20.5 at 90 %", "19.5"},
		{of(1.157e-5, 2e-7), "1.16e-05", "1.14e-05 to 1.18e-05 at 90 %", "1.13e-05"},
		{search.Estimate{Value: 2e-5, Low: 1.7e-5, High: 2.3e-5, Safe: 1.7699e-5, Confidence: 0.9}, "2.00e-05", "1.70e-05 to 2.30e-05 at 90 %", "1.76e-05"},
		{search.Estimate{Value: 20.9, Low: 20.9, High: 20.9, Safe: 20.9}, "20.9", "", "20.9"},
		{search.Estimate{Value: math.NaN(), Low: math.NaN(), High: math.Inf(1)}, "-", "", "0"},
	} {
		value, interval, safe := estimate(tt.e)
		if value != tt.value || interval != tt.interval || safe != tt.safe {
			t.Errorf("%+v: %s, %s, %s, want %s, %s, %s", tt.e, value, interval, safe, tt.value, tt.interval, tt.safe)
		}
	}
}

func TestAvailability(t *testing.T) {
	for p, want := range map[float64]string{1: "over 99.9999999 %", 0.999913: "99.991 %", 0.912: "91 %", 0.0123: "1 %", 0.0099: "less than 1 %"} {
		if got := availability(p); got != want {
			t.Errorf("%v: %q, want %q", p, got, want)
		}
	}
}

func TestGain(t *testing.T) {
	for g, want := range map[search.Estimate]string{
		{Value: 1, Low: 0.86, High: 1.15, Confidence: 0.9}:      "+100 % (+86 to +115 at 90 %)",
		{Value: 0, Low: -0.066, High: 0.071, Confidence: 0.9}:   "0 % (-7 to +7 at 90 %)",
		{Value: -0.003, Low: -0.1, High: 0.09, Confidence: 0.9}: "0 % (-10 to +9 at 90 %)",
	} {
		if got := gain(g); got != want {
			t.Errorf("%v: %q, want %q", g, got, want)
		}
	}
}

func TestPercent(t *testing.T) {
	for v, want := range map[float64]string{0: "0 %", 0.999: "99.9 %", 0.9992: "99.9 %", 0.9995: "99.95 %", 0.9999: "99.99 %", 0.99987: "99.987 %", 0.999999: "99.9999 %", 1 - 1.3e-11: "more than 99.9999 %", 1: "100 %", 1.0003: "100 %", 1 - 1e-14: "100 %", 0.9: "90 %", 0.001: "0.1 %", 0.00042: "0.042 %", 0.0057: "0.57 %", 0.1734: "17.3 %", -0.0004: "-0.04 %", 1e-9: "less than 0.01 %", math.NaN(): "-"} {
		if got := percent(v); got != want {
			t.Errorf("percent(%v) = %q, want %q", v, got, want)
		}
	}
}
