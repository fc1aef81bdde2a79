package load

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"math"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// transport carries messages to the server.
type transport interface {
	send(m *message, deadline time.Time) (response, error)
	close()
}

// response is the answer to one request while it arrives.
type response struct {
	status int
	// stream reports a body of server-sent events.
	stream bool
	body   body
}

// newResponse takes what the head says of the body.
func newResponse(res *http.Response, b body) (response, error) {
	if how := res.Header.Get("Content-Encoding"); how != "" && !strings.EqualFold(how, "identity") {
		return response{}, malformed("content-encoding %q, which was not asked for", how)
	}
	stream := strings.HasPrefix(strings.ToLower(res.Header.Get("Content-Type")), "text/event-stream")
	return response{status: res.StatusCode, stream: stream, body: b}, nil
}

// body yields what has arrived of an answer.
type body interface {
	// next blocks for the next bytes and returns them with the time at which
	// the read that brought them returned. They are valid until the next call.
	// The error is io.EOF behind a complete body.
	next() ([]byte, time.Time, error)
	// close ends the use of the body; one that was read to its end frees its
	// connection for the next request.
	close()
}

// httpsTransport carries messages over TLS, by HTTP/2 where the server offers it,
// with net/http.
type httpsTransport struct {
	ctx    context.Context
	url    string
	header http.Header
	client *http.Transport
	// bodies lends out their buffers.
	bodies sync.Pool
}

// newHTTPTransport is a Transport without the limit of two idle connections per
// host that the zero value has, and without compression.
func newHTTPTransport(conf *tls.Config, dial func(context.Context, string, string) (net.Conn, error)) *http.Transport {
	return &http.Transport{
		DialContext:         dial,
		TLSClientConfig:     conf,
		ForceAttemptHTTP2:   true,
		DisableCompression:  true,
		MaxIdleConnsPerHost: math.MaxInt32,
		IdleConnTimeout:     idleLimit,
		ReadBufferSize:      32 << 10,
	}
}

func (t *httpsTransport) send(m *message, deadline time.Time) (response, error) {
	ctx, cancel := t.ctx, context.CancelFunc(func() {})
	if !deadline.IsZero() {
		ctx, cancel = context.WithDeadline(ctx, deadline)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, t.url, bytes.NewReader(m.body))
	if err != nil {
		cancel()
		return response{}, err
	}
	req.Header = t.header
	res, err := t.client.RoundTrip(req)
	if err != nil {
		cancel()
		if err == io.EOF {
			err = errNoAnswer
		}
		return response{}, err
	}
	b := t.bodies.Get().(*httpBody)
	b.in, b.cancel, b.bodies = res.Body, cancel, &t.bodies
	r, err := newResponse(res, b)
	if err != nil {
		b.close()
	}
	return r, err
}

func (t *httpsTransport) close() { t.client.CloseIdleConnections() }

type httpBody struct {
	in     io.ReadCloser
	cancel context.CancelFunc
	bodies *sync.Pool
	buf    [16 << 10]byte
}

func (b *httpBody) next() ([]byte, time.Time, error) {
	n, err := b.in.Read(b.buf[:])
	return b.buf[:n], time.Now(), err
}

func (b *httpBody) close() {
	b.in.Close()
	b.cancel()
	b.bodies.Put(b)
}
