package serve

import (
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

// serving is a server at work.
type serving struct {
	config     Server
	terms      terms
	desk       *desk
	identities *identities // nil without a prefix cache
	asked      atomic.Uint64

	mu       sync.Mutex
	port     net.Listener // nil while it refuses
	addr     string
	reopen   *time.Timer
	opened   chan struct{}
	conns    map[net.Conn]bool
	stopped  chan struct{}
	failure  error
	sessions sync.WaitGroup
}

func (s *Server) begin() (*serving, error) {
	v := &serving{config: *s, port: s.listener, addr: s.listener.Addr().String(), opened: make(chan struct{}, 1), conns: map[net.Conn]bool{}, stopped: make(chan struct{})}
	c := &v.config
	if c.Model == "" {
		c.Model = defaultName
	}
	if c.Version == "" {
		c.Version = defaultName
	}
	if c.Reply == 0 {
		c.Reply = defaultReply
	}
	if c.MaxModelLen == 0 {
		if c.MaxModelLen = defaultModelLen; c.Timer != nil {
			c.MaxModelLen = c.Config.Limits.ModelLen
		}
	}
	v.terms = terms{model: c.Model, modelLen: c.MaxModelLen, reply: c.Reply}
	alarm, err := newAlarm()
	if err != nil {
		return nil, fmt.Errorf("serve: %w", err)
	}
	d := &desk{start: time.Now(), alarm: alarm, meter: &meter{model: c.Model}, replies: map[int]*reply{}}
	d.meter.init(c.MaxModelLen)
	if c.Timer == nil {
		d.backend = newFixed(c.Fixed, c.Seed)
	} else {
		l := &c.Config.Limits
		d.backend, d.caching = sim.NewEngine(c.Timer, c.Config).Live(), l.PrefixCaching
		d.meter.blocks, d.meter.blockTokens, d.meter.prefixCaching = l.Blocks, l.BlockTokens, l.PrefixCaching
		if l.PrefixCaching {
			v.identities = newIdentities(l.Blocks*max(c.Config.Replicas, 1), l.BlockTokens)
		}
	}
	d.log = startLog(c.Log, LogStart{UnixNS: d.start.UnixNano(), MonotonicNS: monotonic()})
	v.desk = d
	return v, nil
}

// serve runs until it is stopped, and returns when every goroutine has ended.
func (v *serving) serve() error {
	var desk sync.WaitGroup
	desk.Go(v.desk.run)
	err := v.accept()
	v.stop()
	v.sessions.Wait()
	desk.Wait()
	v.desk.alarm.close()
	v.mu.Lock()
	defer v.mu.Unlock()
	return errors.Join(err, v.failure, v.desk.log.close())
}

// accept takes connections until the server is stopped.
func (v *serving) accept() error {
	for {
		v.mu.Lock()
		port := v.port
		v.mu.Unlock()
		if port == nil {
			select {
			case <-v.opened:
				continue
			case <-v.stopped:
				return nil
			}
		}
		conn, err := port.Accept()
		switch {
		case err == nil:
			v.welcome(conn)
		case v.isStopped():
			return nil
		case errors.Is(err, net.ErrClosed): // closed for a while
		case isTemporary(err):
			time.Sleep(5 * time.Millisecond)
		default:
			return fmt.Errorf("accept connections: %w", err)
		}
	}
}

// isTemporary: out of file descriptors, or a client that left too soon.
func isTemporary(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.ECONNABORTED)
}

func (v *serving) isStopped() bool {
	select {
	case <-v.stopped:
		return true
	default:
		return false
	}
}

func (v *serving) welcome(conn net.Conn) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.isStopped() {
		conn.Close()
		return
	}
	v.conns[conn] = true
	v.sessions.Go(func() {
		newClient(v, conn).converse()
		v.mu.Lock()
		delete(v.conns, conn)
		v.mu.Unlock()
	})
}

// stop closes the port, the desk and all connections. It may be called again.
func (v *serving) stop() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.isStopped() {
		return
	}
	close(v.stopped)
	if v.reopen != nil {
		v.reopen.Stop()
	}
	if v.port != nil {
		v.port.Close()
	}
	v.desk.close()
	for conn := range v.conns {
		conn.Close()
	}
}

// crash stops the server as if its process had died.
func (v *serving) crash() {
	v.mu.Lock()
	v.failure = ErrCrash
	for conn := range v.conns {
		if c, ok := conn.(*net.TCPConn); ok {
			_ = c.SetLinger(0) // a dead process's connections are reset
		}
	}
	v.mu.Unlock()
	v.stop()
}

// closePort refuses new connections for a while.
func (v *serving) closePort(d time.Duration) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.port == nil || v.isStopped() {
		return
	}
	v.port.Close()
	v.port = nil
	v.reopen = time.AfterFunc(d, v.openPort)
}

// openPort takes connections again, or tries once more if the port is taken.
func (v *serving) openPort() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.isStopped() {
		return
	}
	l, err := net.Listen("tcp", v.addr)
	if err != nil {
		v.reopen = time.AfterFunc(100*time.Millisecond, v.openPort)
		return
	}
	v.port = l
	select {
	case v.opened <- struct{}{}:
	default: // nobody took notice of the time before
	}
}

// newReply prepares the answer to a request.
func (v *serving) newReply(c *client, a *ask, number uint64, name string, arrived time.Duration) *reply {
	if name == "" {
		name = fmt.Sprintf("%016x%016x", mix(v.config.Seed+number), mix(uint64(v.desk.start.UnixNano())+number))
	}
	id := "cmpl-" + name
	if a.chat {
		id = "chat" + id
	}
	created := v.desk.start.Add(arrived).Unix()
	return &reply{
		ask: a, frames: newFrames(a, id, v.config.Model, created), out: c.out, arrived: arrived, request: -1, done: make(chan struct{}),
		due: make([]time.Duration, 0, min(a.output, 1024)), left: make([]time.Duration, 0, min(a.output, 1024)),
	}
}

// describe says of a request what the engine must know.
func (v *serving) describe(a *ask) workload.Request {
	q := workload.Request{Prompt: len(a.prompt), Output: a.output}
	if v.identities != nil {
		v.identities.identify(&q, a.salt, a.prompt, a.token)
	}
	return q
}

// resetCache empties the prefix cache, unless requests use it. The engine keeps
// the blocks, but nobody can name what is in them any more.
func (v *serving) resetCache() bool {
	m := v.desk.meter
	m.mu.Lock()
	busy := m.load.Running > 0
	m.mu.Unlock()
	if busy {
		return false
	}
	if v.identities != nil {
		v.identities.forget()
	}
	return true
}
