// Package load sends a schedule to an HTTP endpoint, open loop or closed loop,
// and records when each request was due, when it left and when its tokens came.
package load

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"time"

	"planner/internal/note"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

// Client is a load generator for one endpoint. It needs URL; the zero value of
// every other field is a sensible default, but for Stream, which a measurement
// of a first token needs. A Client may run several trials, one after another.
type Client struct {
	// URL is the server's address, with or without the /v1 behind it.
	URL string
	// Model is the name that the server knows; "" means the first of its list.
	Model string
	// Chat sends to /v1/chat/completions instead of /v1/completions, Stream asks
	// for an answer token by token.
	Chat, Stream bool
	// Engine names the dialect: vllm, sglang, trtllm, tgi, llama-server,
	// lmdeploy, transformers, simulated; anything else that is not known is an
	// error, "" means the plain OpenAI dialect.
	Engine string
	// Headers are added to every request.
	Headers map[string]string
	// APIKeyEnv names the environment variable that holds the key; the key
	// itself goes into requests and nowhere else.
	APIKeyEnv string
	// Salt sets the prompts of this run apart from those of others that the
	// server may still have in its prefix cache.
	Salt uint64
	// Vocab is the size of the model's vocabulary, which bounds the ids of tokens that
	// prompts are drawn from; 0 where it is not known.
	Vocab int
	// Abort, where it is set, is asked every 250 ms; a reason ends the trial.
	// records gives what is known at now of every request that was sent, those
	// in flight included, so that their age can be judged.
	Abort func(now time.Duration, records func() []measure.Record) note.Reason

	// For tests: dial opens connections, nil means TCP; tls configures https, nil
	// means the system's trust; plainTimer paces on the runtime's timers alone,
	// where the clock is not the kernel's.
	dial       func(ctx context.Context, network, address string) (net.Conn, error)
	tls        *tls.Config
	plainTimer bool
}

// Run sends the schedule of a trial and returns what was observed, once every
// request due in the trial's window has ended and the schedule is over;
// requests of the cool-down that are still in flight then are cut and recorded
// as such. When ctx ends early, the observation so far comes with its cause as
// the error. A turn of a conversation whose parent never ended never came due,
// and has no record.
func (c *Client) Run(ctx context.Context, trial measure.Trial, schedule []workload.Request) (measure.Observation, error) {
	r, err := c.Start(ctx, trial, schedule)
	if err != nil {
		return measure.Observation{}, err
	}
	return r.Wait()
}

// Start begins a trial, as Run does, and returns once the first request is
// about to leave.
func (c *Client) Start(ctx context.Context, trial measure.Trial, schedule []workload.Request) (*Test, error) {
	e, err := c.target(ctx)
	if err != nil {
		return nil, err
	}
	if err := checkSchedule(&trial, schedule); err != nil {
		return nil, err
	}
	return newTest(ctx, c, e, trial, schedule)
}

// Check reports what is wrong with the client before anything is sent: an address
// that is none, an unknown dialect, a header or an API key that cannot be sent.
func (c *Client) Check() error {
	_, err := c.resolve()
	return err
}

func checkSchedule(trial *measure.Trial, schedule []workload.Request) error {
	last := time.Duration(0)
	for i := range schedule {
		r := &schedule[i]
		switch {
		case r.Prompt < 1 || r.Output < 1:
			return fmt.Errorf("request %d: prompt of %d and output of %d tokens; both must be 1 at least", r.ID, r.Prompt, r.Output)
		case r.Due < last:
			return fmt.Errorf("request %d: due at %v, before the one ahead of it", r.ID, r.Due)
		case trial.Closed() && r.Parent > 0:
			return fmt.Errorf("request %d: a closed loop has no conversations", r.ID)
		}
		last = r.Due
	}
	// Spare files are for the journal, logs and what the process has open.
	const spare = 64
	slots := min(trial.Concurrency, len(schedule))
	if limit := openFiles(); limit > 0 && slots+spare > limit {
		return fmt.Errorf("concurrency %d needs %d open files, the limit is %d (ulimit -n)", slots, slots+spare, limit)
	}
	return nil
}
