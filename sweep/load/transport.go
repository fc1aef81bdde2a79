package load

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
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
	send(m *message, deadline time.Time) (answer, error)
	// warm opens connections for requests to come.
	warm(n int)
	close()
}

// secure carries messages over TLS, by HTTP/2 where the server offers it, with
// net/http.
type secure struct {
	ctx    context.Context
	url    string
	header http.Header
	client *http.Transport
	// spans lends out the buffers of bodies.
	spans sync.Pool
}

func newSecure(ctx context.Context, url string, header http.Header, conf *tls.Config, dial func(context.Context, string, string) (net.Conn, error)) *secure {
	return &secure{ctx: ctx, url: url, header: header, client: newHTTPTransport(conf, dial)}
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

func (s *secure) send(m *message, deadline time.Time) (answer, error) {
	ctx, cancel := s.ctx, context.CancelFunc(func() {})
	if !deadline.IsZero() {
		ctx, cancel = context.WithDeadline(ctx, deadline)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, bytes.NewReader(m.payload()))
	if err != nil {
		cancel()
		return answer{}, err
	}
	req.Header = s.header
	res, err := s.client.RoundTrip(req)
	if err != nil {
		cancel()
		if err == io.EOF {
			err = errNoAnswer
		}
		return answer{}, err
	}
	if how := res.Header.Get("Content-Encoding"); how != "" && !strings.EqualFold(how, "identity") {
		res.Body.Close()
		cancel()
		return answer{}, fmt.Errorf("%w: content-encoding %q, which was not asked for", errMalformed, how)
	}
	buf, _ := s.spans.Get().(*[]byte)
	if buf == nil {
		b := make([]byte, 16<<10)
		buf = &b
	}
	return answer{
		status: res.StatusCode,
		stream: strings.HasPrefix(strings.ToLower(res.Header.Get("Content-Type")), "text/event-stream"),
		body:   &httpBody{in: res.Body, buf: buf, cancel: cancel, spans: &s.spans},
	}, nil
}

// warm does nothing: net/http opens connections when it needs them.
func (s *secure) warm(int) {}

func (s *secure) close() { s.client.CloseIdleConnections() }

// httpBody reads the body of a net/http response.
type httpBody struct {
	in     io.ReadCloser
	buf    *[]byte
	cancel context.CancelFunc
	spans  *sync.Pool
}

func (b *httpBody) next() ([]byte, time.Time, error) {
	n, err := b.in.Read(*b.buf)
	return (*b.buf)[:n], time.Now(), err
}

func (b *httpBody) close() {
	b.in.Close()
	b.cancel()
	b.spans.Put(b.buf)
}
