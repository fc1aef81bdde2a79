package design

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"planner/sweep"
	"planner/sweep/measure"
)

// TestPrepare: the warm-up comes from the requests that ended well, and where none did there
// is nothing to measure.
func TestPrepare(t *testing.T) {
	good := measure.Record{Outcome: measure.OK, Last: 40 * time.Second}
	bad := measure.Record{Outcome: measure.HTTPStatus, Detail: "429: slow down", Last: measure.Never}
	for name, c := range map[string]struct {
		records []measure.Record
		want    time.Duration
		refused string
	}{
		"all good":      {[]measure.Record{good, good, good}, time.Minute, ""},
		"refused first": {[]measure.Record{bad, good, good}, time.Minute, ""},
		"all refused":   {[]measure.Record{bad, bad, bad}, 0, "each of 3 requests failed, the last one: http_status 429: slow down"},
	} {
		p := &PointStudy{Trial: measure.Trial{Window: time.Hour}, probe: true}
		err := p.Prepare(t.Context(), func(context.Context, measure.Trial) (measure.Observation, error) {
			return measure.Observation{Records: c.records}, nil
		}, nil)
		if p.Trial.Warmup != c.want || (err != nil) != (c.refused != "") || err != nil && !strings.Contains(err.Error(), c.refused) {
			t.Errorf("%s: %v, %v", name, p.Trial.Warmup, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	err := (&PointStudy{probe: true}).Prepare(ctx, func(context.Context, measure.Trial) (measure.Observation, error) {
		cancel()
		return measure.Observation{}, ctx.Err()
	}, nil)
	if !errors.Is(err, sweep.ErrInterrupted) {
		t.Error("a probe that was interrupted can be gone on with:", err)
	}
}
