package main

import (
	"time"

	"github.com/urfave/cli/v2"

	"planner/internal/config"
	"planner/sweep/load"
	"planner/sweep/measure"
)

// team is this host's place among the load generators of one trial. The zero
// value is a generator of its own that begins at once.
type team struct {
	share load.Share
	start time.Time
}

// teamOf reads --part and --start-at.
func teamOf(c *cli.Context, cfg *config.Config, t measure.Trial) (team, error) {
	var m team
	if !c.IsSet("part") && !c.IsSet("start-at") {
		return m, nil
	}
	if cfg.Engine.Kind != "attach" {
		return m, usagef("bench: --part and --start-at are for a server that runs already: give --url")
	}
	if c.IsSet("start-at") {
		at, err := time.Parse(time.RFC3339Nano, c.String("start-at"))
		if err != nil {
			return m, usagef("--start-at: %q is not a date and time with its zone, such as 2026-11-21T15:00:00Z", c.String("start-at"))
		}
		if m.start = at; time.Until(at) <= 0 {
			return m, usagef("--start-at: %s has passed by this host's clock", c.String("start-at"))
		}
	}
	if !c.IsSet("part") {
		return m, nil
	}
	var err error
	if m.share, err = load.ParseShare(c.String("part")); err != nil {
		return m, usagef("--part: %w", err)
	}
	// What each host would settle for itself must be the same on all of them.
	switch {
	case m.start.IsZero():
		return m, usagef("bench: --part needs --start-at, the same on every host, so that all begin together")
	case !t.Closed() && !c.IsSet("warm-up"):
		return m, usagef("bench: --part needs --warm-up, the same on every host; without it each would find its own")
	case t.Closed() && t.Concurrency < m.share.Of:
		return m, usagef("bench: --concurrency %d is too small for %d parts", t.Concurrency, m.share.Of)
	}
	return m, nil
}

// lead prepares the load generator for its place. Prompts of one trial that begin
// alike must do so whichever host sends them, and must not begin like those of
// another trial: the common start sets them apart.
func (m team) lead(client *load.Client) {
	client.StartAt = m.start
	if !m.share.Whole() {
		client.Salt = uint64(m.start.UnixNano())
	}
}
