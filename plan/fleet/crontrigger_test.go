package fleet

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// active is KEDA's rule: a trigger whose next start comes before its next end is not active.
func active(t CronTrigger, now time.Time) bool {
	start, end := Entry{Cron: t.Start}, Entry{Cron: t.End}
	if start.Parse() != nil || end.Parse() != nil {
		panic("not a cron expression")
	}
	from, to := start.schedule.Next(now).Unix(), end.schedule.Next(now).Unix()
	return !(from < to && now.Unix() < from) && now.Unix() <= to
}

// TestCronTriggers holds the triggers of random schedules, hour by hour over a week, against
// the schedules.
func TestCronTriggers(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	days := []string{"*", "1-5", "6,0"}
	written := 0
	for range 60 {
		p := Policy{Min: 1 + r.IntN(2), Max: 9, Autoscaler: Autoscaler{Kind: Schedule}}
		for range 1 + r.IntN(4) {
			p.Autoscaler.Entries = append(p.Autoscaler.Entries,
				Entry{Cron: fmt.Sprintf("0 %d * * %s", r.IntN(24), days[r.IntN(3)*r.IntN(2)]), Replicas: r.IntN(11)})
		}
		triggers, err := p.CronTriggers()
		if err != nil {
			continue
		}
		written++
		for i := range p.Autoscaler.Entries {
			_ = p.Autoscaler.Entries[i].Parse() // without an error, as there are triggers
		}
		control := p.Autoscaler.start(1, &p)
		for hour := 8 * 24; hour < 15*24; hour++ {
			at := float64(hour)*3600 + 1800
			want, _ := control.decide(&view{now: at})
			got := p.Min
			for _, trigger := range triggers {
				if active(trigger, epoch.Add(seconds(at))) {
					got = max(got, trigger.Replicas)
				}
			}
			if got != min(max(want, p.Min), p.Max) {
				t.Fatalf("%+v\n%+v: %d replicas in hour %d, want %d", p.Autoscaler.Entries, triggers, got, hour, want)
			}
		}
	}
	if written < 15 {
		t.Errorf("%d of 60 schedules have triggers", written)
	}
}

// TestScheduleOfWorkingDays ends an entry of working days by one of all days, and refuses
// what nothing ends.
func TestScheduleOfWorkingDays(t *testing.T) {
	p := Policy{Min: 2, Max: 8, Autoscaler: Autoscaler{Kind: Schedule, Entries: []Entry{{Cron: "0 8 * * 1-5", Replicas: 6}, {Cron: "30 18 * * *", Replicas: 2}}}}
	if got, err := p.CronTriggers(); err != nil || len(got) != 1 || got[0] != (CronTrigger{"0 8 * * 1-5", "30 18 * * 1-5", 6}) {
		t.Errorf("%+v, %v", got, err)
	}
	for want, entries := range map[string][]Entry{
		"ends it each time": {{Cron: "0 8 * * *", Replicas: 6}},
		"never asks":        {{Cron: "0 8 * * *", Replicas: 2}},
	} {
		p.Autoscaler.Entries = entries
		if _, err := p.CronTriggers(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
