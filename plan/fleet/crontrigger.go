package fleet

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// CronTrigger is a KEDA cron trigger: a number of replicas from each time of Start to the next of End.
type CronTrigger struct {
	Start, End string
	Replicas   int
}

// CronTriggers returns a trigger for each entry of a schedule that asks for more than the minimum. A trigger
// ends at the times of another entry, or at that entry's time of day on its own days; if neither reproduces the
// schedule, it is an error. KEDA takes a trigger for active if its next end comes no later than its next start.
func (p *Policy) CronTriggers() ([]CronTrigger, error) {
	entries := slices.Clone(p.Autoscaler.Entries)
	for i := range entries {
		if err := entries[i].Parse(); err != nil {
			return nil, fmt.Errorf("cron %q: %w", entries[i].Cron, err)
		}
	}
	var triggers []CronTrigger
	for i := range entries {
		asks := p.bounded(entries[i].Replicas)
		if asks == p.Min {
			continue
		}
		by := ends(entries, i)
		k := slices.IndexFunc(by, func(end Entry) bool { return p.endsBy(entries, i, end) })
		if k < 0 {
			return nil, fmt.Errorf("no cron trigger of KEDA does what the entry %q of the schedule does: want another entry that ends it each time, "+
				`as "0 18 * * 1-5" ends "0 8 * * 1-5"`, entries[i].Cron)
		}
		triggers = append(triggers, CronTrigger{entries[i].Cron, by[k].Cron, asks})
	}
	if triggers == nil {
		return nil, errors.New("the schedule never asks for more than fleet.min_replicas, which needs no autoscaler")
	}
	return triggers, nil
}

func (p *Policy) bounded(n int) int { return min(max(n, p.Min), p.Max) }

// ends returns the candidates for the end of an entry's trigger.
func ends(entries []Entry, which int) []Entry {
	var all []Entry
	own := strings.Fields(entries[which].Cron)
	for _, e := range entries {
		other := strings.Fields(e.Cron)
		if len(own) != 5 || len(other) != 5 {
			continue // KEDA accepts no other expressions
		}
		onOwnDays := Entry{Cron: strings.Join(append(other[:2:2], own[2:]...), " ")}
		for _, end := range []Entry{e, onOwnDays} {
			if end.Cron != entries[which].Cron && end.Parse() == nil {
				all = append(all, end)
			}
		}
	}
	return all
}

// endsBy reports whether a trigger from an entry to an end is active whenever that entry is in force, and at
// other times asks for no more than the entry in force.
func (p *Policy) endsBy(entries []Entry, which int, end Entry) bool {
	return !slices.ContainsFunc(changesOf(append(slices.Clone(entries), end)), func(at time.Time) bool {
		now := latest(entries, at)
		active := !end.schedule.Next(at).After(entries[which].schedule.Next(at))
		harmless := now >= 0 && p.bounded(entries[which].Replicas) <= p.bounded(entries[now].Replicas)
		return active != (now == which) && !(active && harmless)
	})
}

// changesOf returns the times of entries in the second and third week.
func changesOf(entries []Entry) []time.Time {
	const week = 7 * 24 * time.Hour
	var all []time.Time
	for _, e := range entries {
		for at := e.schedule.Next(epoch.Add(week)); !at.IsZero() && at.Before(epoch.Add(3*week)); at = e.schedule.Next(at) {
			all = append(all, at)
		}
	}
	return all
}

// latest returns the index of the entry in force at a time, -1 before any.
func latest(entries []Entry, now time.Time) int {
	which, last := -1, time.Time{}
	for i, e := range entries {
		if at := latestBefore(e.schedule, now); at.After(last) {
			which, last = i, at
		}
	}
	return which
}
