// Package load sends a schedule to an HTTP endpoint, open loop or closed loop,
// and records when each request was due, when it left and when its tokens came.
package load

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

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
	// TLS configures https; nil means the system's trust.
	TLS *tls.Config
	// Salt sets the prompts of this run apart from those of others that the
	// server may still have in its prefix cache.
	Salt uint64
	// Drain limits the wait for the window's requests after the schedule; 0
	// means as long as their timeout lasts.
	Drain time.Duration
	// Abort, where it is set, is asked every 250 ms; a reason ends the trial.
	// records gives what is known at now of every request that was sent, those
	// in flight included, so that their age can be judged.
	Abort func(now time.Duration, records func() []measure.Record) string
	// Dial opens connections; nil means TCP.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// plainTimer paces on the runtime's timers alone, for tests whose clock is
	// not the kernel's.
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
	e, err := c.endpoint(ctx)
	if err != nil {
		return nil, err
	}
	if err := checkSchedule(&trial, schedule); err != nil {
		return nil, err
	}
	return newTest(ctx, c, e, trial, schedule)
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

// endpoint is a Client's configuration, checked and resolved.
type endpoint struct {
	base    string
	url     *url.URL
	header  http.Header
	model   string
	dialect *dialect
	dial    func(ctx context.Context, network, address string) (net.Conn, error)
	// http serves the calls that are not part of the load.
	http *http.Client
}

// endpoint resolves the configuration, and the model's name with the server's
// help where it is not given.
func (c *Client) endpoint(ctx context.Context) (*endpoint, error) {
	e, err := c.resolve()
	if err != nil || e.model != "" {
		return e, err
	}
	defer e.http.CloseIdleConnections()
	if e.model, err = e.firstModel(ctx); err != nil {
		return nil, fmt.Errorf("find the model's name: %w", err)
	}
	return e, nil
}

// resolve checks the configuration.
func (c *Client) resolve() (*endpoint, error) {
	base := strings.TrimSuffix(strings.TrimSuffix(c.URL, "/"), "/v1")
	path := "/v1/completions"
	if c.Chat {
		path = "/v1/chat/completions"
	}
	u, err := url.Parse(base + path)
	if err != nil {
		return nil, fmt.Errorf("parse URL: %w", err)
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("URL %q: want http://HOST or https://HOST", c.URL)
	}
	e := &endpoint{base: base, url: u, model: c.Model, header: http.Header{}, dial: c.Dial}
	if e.dialect, err = dialectOf(c.Engine); err != nil {
		return nil, err
	}
	if err := c.headers(e.header); err != nil {
		return nil, err
	}
	if e.dial == nil {
		e.dial = (&net.Dialer{}).DialContext
	}
	e.http = &http.Client{Transport: newHTTPTransport(c.TLS, e.dial), Timeout: 30 * time.Second}
	return e, nil
}

func (c *Client) headers(h http.Header) error {
	h.Set("Content-Type", "application/json")
	h.Set("User-Agent", "planner")
	h.Set("Accept", "application/json")
	if c.Stream {
		h.Set("Accept", "text/event-stream")
	}
	for k, v := range c.Headers {
		if strings.ContainsAny(k, "\r\n: ") || strings.ContainsAny(v, "\r\n") || k == "" {
			return fmt.Errorf("header %q: not a header", k)
		}
		h.Set(k, v)
	}
	if c.APIKeyEnv != "" {
		key := os.Getenv(c.APIKeyEnv)
		if key == "" {
			return fmt.Errorf("environment variable %s: no API key in it", c.APIKeyEnv)
		}
		if strings.ContainsAny(key, "\r\n") {
			return fmt.Errorf("environment variable %s: the API key has a line break", c.APIKeyEnv)
		}
		h.Set("Authorization", "Bearer "+key)
	}
	return nil
}
