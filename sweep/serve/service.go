package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"planner/model/sim"
	"planner/sweep/workload"
)

// service is a running Simulator, its defaults filled in: the port and its connections.
type service struct {
	Simulator
	loop     *eventLoop
	requests atomic.Uint64
	// resets counts how many times the prefix cache was emptied.
	resets   atomic.Uint64
	sessions sync.WaitGroup
	// bodies counts the bytes of request bodies in memory.
	bodies atomic.Int64

	mu    sync.Mutex
	conns map[*net.TCPConn]bool
	// refused is how long the port stays closed; 0 while it is open.
	refused time.Duration
	stopped bool
}

// start fills in the defaults and sets the backend to time zero.
func (s *Simulator) start() (*service, error) {
	v := &service{Simulator: *s, conns: map[*net.TCPConn]bool{}}
	v.Model, v.Version = cmp.Or(s.Model, defaultName), cmp.Or(s.Version, defaultName)
	v.reply, v.limits = cmp.Or(s.reply, defaultReply), cmp.Or(s.limits, usualLimits)
	if v.MaxModelLen == 0 {
		if v.MaxModelLen = defaultModelLen; s.Timer != nil {
			v.MaxModelLen = s.Config.ModelLen
		}
	}
	waker, err := newWaker()
	if err != nil {
		return nil, fmt.Errorf("serve: %w", err)
	}
	l := &eventLoop{start: time.Now(), waker: waker, metrics: newMetrics(v.Model), replies: map[int]*reply{}, idle: v.limits.idle}
	if s.Timer == nil {
		l.backend = newFixed(s.Fixed, s.Seed)
	} else {
		l.backend = sim.NewEngine(s.Timer, s.Config).Online()
		l.metrics.describeCache(&s.Config)
	}
	l.log = startLog(s.Log, LogStart{UnixNS: l.start.UnixNano(), MonotonicNS: monotonic()})
	v.loop = l
	return v, nil
}

// serve runs until ctx ends, and returns when every goroutine has ended.
func (v *service) serve(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var loop, closer sync.WaitGroup
	loop.Go(v.loop.run)
	closer.Go(func() { <-ctx.Done(); v.stop() })
	err := v.accept(ctx)
	cancel()
	closer.Wait()
	v.sessions.Wait()
	loop.Wait()
	v.loop.waker.close()
	return errors.Join(err, v.loop.log.close())
}

func (v *service) accept(ctx context.Context) error {
	port := v.listener
	for {
		conn, err := port.AcceptTCP()
		switch {
		case err == nil:
			v.welcome(conn)
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, net.ErrClosed):
			port = v.reopenPort(ctx)
		case isTemporary(err):
			time.Sleep(5 * time.Millisecond)
		default:
			return fmt.Errorf("accept connections: %w", err)
		}
	}
}

// isTemporary reports whether file descriptors ran out, or a client left too soon.
func isTemporary(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.ECONNABORTED)
}

func (v *service) welcome(conn *net.TCPConn) {
	v.mu.Lock()
	defer v.mu.Unlock()
	s, err := newSession(v, conn)
	if err != nil || v.stopped {
		conn.Close()
		return
	}
	v.conns[conn] = true
	v.sessions.Go(func() {
		s.run()
		v.mu.Lock()
		delete(v.conns, conn)
		v.mu.Unlock()
	})
}

func (v *service) stop() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.stopped = true
	v.listener.Close()
	v.loop.close()
	for conn := range v.conns {
		conn.Close()
	}
}

func (v *service) closePort(d time.Duration) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.refused == 0 {
		v.refused = max(d, 1)
		v.listener.Close()
	}
}

// reopenPort opens the port again when the time has come and the port is free; it returns the
// closed one if ctx ends first.
func (v *service) reopenPort(ctx context.Context) *net.TCPListener {
	v.mu.Lock()
	wait := v.refused
	v.mu.Unlock()
	for {
		select {
		case <-ctx.Done():
			return v.listener
		case <-time.After(wait):
		}
		if l, err := net.ListenTCP("tcp", v.listener.Addr().(*net.TCPAddr)); err == nil {
			v.mu.Lock()
			defer v.mu.Unlock()
			if v.listener, v.refused = l, 0; v.stopped {
				l.Close()
			}
			return l
		}
		wait = 100 * time.Millisecond
	}
}

func (v *service) newReply(s *session, c *completion, number uint64) *reply {
	name := s.req.Header.Get("X-Request-Id")
	if name == "" {
		name = fmt.Sprintf("%016x%016x", workload.Mix64(v.Seed+number), workload.Mix64(uint64(v.loop.start.UnixNano())+number))
	}
	r := newReply(c, "cmpl-"+name, v.Model, v.loop.start.Add(s.arrived).Unix())
	r.Arrived, r.out, r.chunked, r.keepAlive = s.arrived, s.out, s.req.ProtoAtLeast(1, 1), s.keep
	r.request = workload.Request{Prompt: len(c.prompt), Output: c.output}
	if r.caching = v.Timer != nil && v.Config.PrefixCaching; r.caching {
		r.request.Shared = c.blocks(v.Config.Layout.BlockTokens, v.resets.Load())
	}
	return r
}

// resetCache empties the prefix cache, unless requests are running. The engine keeps the blocks,
// but their contents have no names any more.
func (v *service) resetCache() bool {
	if !v.loop.metrics.idle() {
		return false
	}
	v.resets.Add(1)
	return true
}
