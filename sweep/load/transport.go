package load

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"planner/internal/endpoint"
)

// transport carries messages to the server. It follows no redirect.
type transport interface {
	send(m *message, deadline time.Time) (response, error)
	close()
}

// maxHead is the longest head of an answer.
const maxHead = 1 << 20

// crossLimit is about how soon a request shows that it crossed a close by the server: a round trip.
// A request that breaks later was being served.
const crossLimit = time.Second

// endLimit is how long the end of a body is waited for after its last event: reading it frees the
// connection for the next request.
const endLimit = time.Second

// reuse is what a test has learned of connections that are kept for further requests.
type reuse struct {
	// resent counts the requests that met a kept connection which the server closed, and were sent
	// again on another.
	resent atomic.Int64
	// works: one has brought a second answer; none: no connection is used again.
	works, none atomic.Bool
}

// again reports whether a request that failed with err at once on a kept connection is sent again.
// If nothing of it reached the server, the close crossed it on its way. Of others, and of all that
// were reset, which does not tell what arrived, it is not known whether the server read them and
// threw them away, which is a failure, or closes its connection after each answer. The latter is
// assumed as long as no second answer has come on any connection, and then each request gets a
// connection of its own.
func (r *reuse) again(err error, unread bool) bool {
	switch {
	case unread && !errors.Is(err, syscall.ECONNRESET):
	case r.works.Load():
		return false
	default:
		r.none.Store(true)
	}
	r.resent.Add(1)
	return true
}

func (r *reuse) answered() {
	if !r.works.Load() {
		r.works.Store(true)
	}
}

// response is the answer to one request while it arrives.
type response struct {
	status int
	// stream reports a body of server-sent events, kind what the server calls it.
	stream bool
	kind   string
	// place tells where a redirect points to.
	place string
	// rest is how long the server asks not to be called again.
	rest time.Duration
	// sending: the request is still being sent, and its message in use.
	sending bool
	body    body
}

// newResponse makes a response from the head of an answer and its body.
func newResponse(res *http.Response, b body) (response, error) {
	if how := res.Header.Get("Content-Encoding"); how != "" && !strings.EqualFold(how, "identity") {
		return response{}, malformed("content-encoding %q, which was not asked for", how)
	}
	kind, _, _ := strings.Cut(res.Header.Get("Content-Type"), ";")
	r := response{status: res.StatusCode, kind: kind, stream: strings.EqualFold(strings.TrimSpace(kind), "text/event-stream"), rest: endpoint.RetryAfter(res.Header), body: b}
	if r.status/100 == 3 {
		r.place = endpoint.Redirected(res.Header.Get("Location"))
	}
	return r, nil
}

// body yields what has arrived of an answer.
type body interface {
	// next blocks for the next bytes and returns them with the time at which the read that brought
	// them returned. They are valid until the next call. The error is io.EOF after a complete body.
	next() ([]byte, time.Time, error)
	// said tells that nothing more is expected but the body's end, which is not waited for long.
	said()
	// close ends the use of the body; one that was read to its end frees its
	// connection for the next request.
	close()
}

// httpsTransport carries messages over TLS with net/http, by HTTP/2 if the server offers it.
type httpsTransport struct {
	ctx    context.Context
	url    string
	header http.Header
	// kept keeps connections for further requests, fresh opens one for each.
	kept, fresh *http.Transport
	reuse       *reuse
	// bodies lends out the bodies, with their buffers.
	bodies sync.Pool
}

// newHTTPTransport returns a Transport without the limit of two idle connections per host that the
// zero value has, and without compression. A Transport writes into its TLS configuration, so it
// gets a copy.
func newHTTPTransport(conf *tls.Config, dial func(context.Context, string, string) (net.Conn, error)) *http.Transport {
	return &http.Transport{
		DialContext:            dial,
		TLSClientConfig:        conf.Clone(),
		ForceAttemptHTTP2:      true,
		DisableCompression:     true,
		MaxIdleConnsPerHost:    math.MaxInt32,
		IdleConnTimeout:        idleLimit,
		ReadBufferSize:         32 << 10,
		MaxResponseHeaderBytes: maxHead,
	}
}

func newHTTPSTransport(of *Test) *httpsTransport {
	e, conf := of.target, of.client.tls
	t := &httpsTransport{ctx: of.ctx, reuse: &of.reuse, url: e.url.String(), header: e.header, kept: newHTTPTransport(conf, counting(e.dial)), fresh: newHTTPTransport(conf, e.dial)}
	t.fresh.DisableKeepAlives = true
	t.bodies.New = func() any { return &httpBody{} }
	return t
}

// send implements transport. The message of what it returns is always in use: net/http may still
// read a request's body when the answer has come.
func (t *httpsTransport) send(m *message, deadline time.Time) (response, error) {
	if t.reuse.none.Load() {
		return t.try(t.fresh, m, deadline, &connUse{})
	}
	var a connUse
	r, err := t.try(t.kept, m, deadline, &a)
	at := a.kept.Load()
	if err == nil && a.used.Load() {
		t.reuse.answered()
	}
	// net/http closes a connection itself when it sees the close of the server.
	stale := err != nil && (isStale(err) || errors.Is(err, net.ErrClosed))
	soon := at > 0 && time.Now().UnixNano()-at <= int64(crossLimit)
	if !stale || !soon || a.heard.Load() || t.ctx.Err() != nil || !t.reuse.again(err, a.unread()) {
		return r, err
	}
	return t.try(t.fresh, m, deadline, &connUse{})
}

// connUse is what is known of one attempt to send a request: when it got a kept connection, in Unix
// nanoseconds, which connection it got, how much had been sent on that before and whether for
// another request, and whether any byte of an answer came.
type connUse struct {
	kept, before atomic.Int64
	via          atomic.Pointer[countedConn]
	used, heard  atomic.Bool
}

func (u *connUse) on(i httptrace.GotConnInfo) {
	if s, ok := i.Conn.(*tls.Conn); ok {
		if c, ok := s.NetConn().(*countedConn); ok {
			u.before.Store(c.sent.Load())
			u.via.Store(c)
			u.used.Store(c.used.Swap(true))
		}
	}
	if i.Reused {
		u.kept.Store(time.Now().UnixNano())
	}
}

// unread reports whether nothing that was written since the request got its connection, which is
// closed, reached the server.
func (u *connUse) unread() bool {
	c := u.via.Load()
	if c == nil {
		return false
	}
	acked := c.acked.Load()
	return acked >= 0 && acked <= u.before.Load()
}

// countedConn knows whether a request has used it, how many bytes were written, and, once it is
// closed, how many of them the other end had received, negative before and if that is not known.
type countedConn struct {
	net.Conn
	used        atomic.Bool
	sent, acked atomic.Int64
	once        sync.Once
}

// counting makes dial return connections that count.
func counting(dial func(context.Context, string, string) (net.Conn, error)) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		nc, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		c := &countedConn{Conn: nc}
		c.acked.Store(-1)
		return c, nil
	}
}

func (c *countedConn) Write(b []byte) (int, error) {
	c.sent.Add(int64(len(b)))
	return c.Conn.Write(b)
}

func (c *countedConn) Close() error {
	c.once.Do(func() { c.acked.Store(acknowledged(c.Conn)) })
	return c.Conn.Close()
}

func (t *httpsTransport) try(via *http.Transport, m *message, deadline time.Time, a *connUse) (response, error) {
	ctx, cancel := t.ctx, context.CancelFunc(func() {})
	if !deadline.IsZero() {
		ctx, cancel = context.WithDeadline(ctx, deadline)
	}
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn:              a.on,
		GotFirstResponseByte: func() { a.heard.Store(true) },
	})
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, t.url, bytes.NewReader(m.body))
	if err != nil {
		cancel()
		return response{}, err
	}
	req.Header, req.Host = t.header, t.header.Get("Host")
	res, err := via.RoundTrip(req)
	if err != nil {
		cancel()
		if !a.heard.Load() && (errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)) {
			err = errNoAnswer
		}
		return response{sending: true}, err
	}
	b := t.bodies.Get().(*httpBody)
	b.in, b.cancel, b.bodies = res.Body, cancel, &t.bodies
	r, err := newResponse(res, b)
	if err != nil {
		b.close()
	}
	r.sending = true
	return r, err
}

func (t *httpsTransport) close() { t.kept.CloseIdleConnections() }

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

func (b *httpBody) said() { time.AfterFunc(endLimit, b.cancel) }

func (b *httpBody) close() {
	b.in.Close()
	b.cancel()
	b.bodies.Put(b)
}
