package workload

import (
	"math"
	"testing"
	"time"
)

// threeHours has a request every six minutes in its first and last hour and every minute in the one
// between, with one more in the middle of the first of these minutes.
func threeHours() []TraceRow {
	var rows []TraceRow
	add := func(at int) {
		rows = append(rows, TraceRow{Arrival: time.Duration(at) * time.Second, Prompt: 10, Output: 5})
	}
	for at := 0; at < 10800; {
		add(at)
		switch {
		case at < 3600 || at >= 7200:
			at += 360
		case at == 3600:
			at = 3630
		case at == 3630:
			at = 3660
		default:
			at += 60
		}
	}
	return rows
}

// 81 rows from 0 to 10440 s: 80 gaps make 2/261 requests/s, the hour in the middle has
// 61 requests and its first minute two.
func TestRatesOfATrace(t *testing.T) {
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got/want-1) > 1e-9 {
			t.Errorf("%s: %g, want %g", what, got, want)
		}
	}
	rows := threeHours()
	r := RatesOf(rows, RateOfBusiestHour)
	near("mean", r.Mean, 2.0/261)
	near("busiest hour", r.BusiestHour, 61.0/3600)
	near("busiest minute", r.BusiestMinute, 2.0/60)
	near("hour over mean", r.Peak(), 61.0/3600*261/2)
	near("minute over mean", r.As(RateOfBusiestMinute).Peak(), 4.35)
	near("mean over mean", r.As(RateOfMean).Peak(), 1)
	if d := Describe(rows); d.BusiestHour.Rate != r.BusiestHour || d.BusiestMinute.Rate != r.BusiestMinute || d.BusiestHour.From != time.Hour {
		t.Errorf("described as %+v and %+v", d.BusiestHour, d.BusiestMinute)
	}
	for of, want := range map[RateOf]string{RateOfMean: "in the mean", RateOfBusiestHour: "in the busiest hour", RateOfBusiestMinute: "in the busiest minute"} {
		if got := r.As(of).Meant(); got != want {
			t.Errorf("%s: %q", of, got)
		}
	}
}

// At ten times the rate of its busiest hour the trace has the requests of that hour in six minutes,
// and a lap takes a tenth of its length.
func TestReplayAtTheRateThatIsMeant(t *testing.T) {
	rows := threeHours()
	w := &Workload{Arrivals: Trace, Replay: rows, Rates: RatesOf(rows, RateOfBusiestHour)}
	rate := 10 * 61.0 / 3600
	lap := w.Lap(rate)
	if want := 81 * 10440 * time.Second / 80 / 10; math.Abs(float64(lap-want)) > 1e3 {
		t.Errorf("a lap takes %v, want %v", lap, want)
	}
	n := 0
	requests := w.Schedule(rate, lap, 1)
	for _, r := range requests {
		if r.Due >= 360*time.Second-time.Millisecond && r.Due < 720*time.Second-time.Millisecond {
			n++
		}
	}
	if n != 61 || len(requests) != 81 {
		t.Errorf("%d requests in the busiest six minutes, %d in all", n, len(requests))
	}
	if got := w.WholeLaps(lap+1, rate); got != 2*lap {
		t.Errorf("%v of whole laps in more than %v", got, lap)
	}
	plain := &Workload{Arrivals: Poisson}
	if plain.MeanRate(3) != 3 || plain.WholeLaps(time.Second, 3) != time.Second || plain.Rates.Meant() != "" {
		t.Error("a rate without a trace is not the mean")
	}
}

// The busiest hour of a trace of at most an hour is the whole, to the last bit: what was said of
// such a trace before there was a choice still holds.
func TestShortTraceIsItsBusiestHour(t *testing.T) {
	for _, span := range []time.Duration{0, time.Second, 59*time.Minute + 7*time.Nanosecond, time.Hour} {
		rows := []TraceRow{{}, {Arrival: span / 7}, {Arrival: span}}
		r := RatesOf(rows, RateOfBusiestHour)
		if r.Peak() != 1 || r.Meant() != "in the mean" {
			t.Errorf("%v: %+v, %s", span, r, r.Meant())
		}
		old := &Workload{Arrivals: Trace, Replay: rows}
		if now := (&Workload{Arrivals: Trace, Replay: rows, Rates: r}); !old.Alike(now) {
			t.Errorf("%v: no longer the same workload", span)
		}
	}
	if RatesOf(nil, RateOfMean) != nil {
		t.Error("rates of no rows")
	}
	rows := threeHours()
	if old := (&Workload{Arrivals: Trace, Replay: rows}); old.Alike(&Workload{Arrivals: Trace, Replay: rows, Rates: RatesOf(rows, RateOfBusiestHour)}) {
		t.Error("a rate of the mean is taken for one of the busiest hour")
	}
}

// A day of many requests has a period: nanoseconds times rows would overflow a duration.
func TestPeriodOfManyRows(t *testing.T) {
	rows := make([]TraceRow, 400_001)
	for i := range rows {
		rows[i].Arrival = time.Duration(i) * 216 * time.Millisecond
	}
	if got, want := periodOf(rows), 400_001*216*time.Millisecond; got != want {
		t.Errorf("%v, want %v", got, want)
	}
}
