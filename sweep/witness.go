package sweep

import (
	"context"
	"fmt"
	"time"

	"planner/sweep/engine"
	"planner/sweep/load"
	"planner/sweep/measure"
)

// Witness watches a server that ran already while somebody else puts load on it.
// [Attend] makes one.
type Witness struct {
	engine   *engine.Engine
	sampling *engine.Sampling
	began    time.Time
	trip     time.Duration
}

// patienceForFacts bounds how long a server is asked for what it says of itself.
const patienceForFacts = 15 * time.Second

// Attend asks a server what it is, for [Witness.Watch] to be called when the load
// begins. It is asked for one token, as any engine is. A server that says nothing of
// itself is an error that need not stop anybody from measuring it.
func Attend(ctx context.Context, s engine.Settings, k measure.Knobs) (*Witness, error) {
	short, cancel := context.WithTimeout(ctx, patienceForFacts)
	defer cancel()
	e, err := engine.Start(short, s, k, "", nil)
	if err != nil {
		return nil, fmt.Errorf("ask the server what it is: %w", err)
	}
	return &Witness{engine: e, trip: e.RoundTrip(short)}, nil
}

// Watch begins to read the server's metrics, once, as the load begins: what was
// waited for until then is no part of the trial.
func (w *Witness) Watch(ctx context.Context) {
	w.began, w.sampling = time.Now(), w.engine.Sample(ctx)
}

// Leave ends the watching, which must have begun, and returns what was seen of a
// trial that brought o, to which it adds what the server said. r is what the load
// generator says of itself.
func (w *Witness) Leave(ctx context.Context, t measure.Trial, o *measure.Observation, r load.Telemetry) Sighting {
	seen := newSighting(&t)
	seen.serve(w.engine, true)
	seen.RoundTrip = w.trip
	seen.used(r)
	seen.hear(w.sampling.Stop(ctx))
	seen.EngineTime = time.Since(w.began)
	if len(seen.Said.Snapshots) > 0 {
		o.Server = server(w.engine, &seen.Said)
		seen.compare(o.Records, r)
	}
	o.Remarks = append(o.Remarks, seen.Notes...)
	return seen
}
