package serve

import (
	"errors"
	"net"
	"sync"
	"syscall"
)

// maxBacklog is how many bytes are kept for a client that does not read before it
// counts as gone.
const maxBacklog = 16 << 20

var errBacklog = errors.New("client does not read")

// outlet writes to one client without waiting for it: the one goroutine that
// tells all clients of their tokens must not stand still because one of them
// does not read. What the connection does not take at once is written by a
// goroutine that lasts until it has caught up.
type outlet struct {
	conn net.Conn
	raw  syscall.RawConn // nil if the connection has none
	try  func(fd uintptr) bool
	// part is what try writes; wrote and failed are what came of it.
	part   []byte
	wrote  int
	failed error

	mu       sync.Mutex
	caught   *sync.Cond // the backlog is empty, or lost
	backlog  []byte
	draining bool
	broken   error
}

func newOutlet(conn net.Conn) *outlet {
	o := &outlet{conn: conn}
	o.caught = sync.NewCond(&o.mu)
	if c, ok := conn.(syscall.Conn); ok {
		if raw, err := c.SyscallConn(); err == nil {
			o.raw = raw
		}
	}
	o.try = func(fd uintptr) bool {
		o.wrote, o.failed = writeNow(fd, o.part)
		return true
	}
	return o
}

// write sends bytes or keeps them for later, which it reports. Only one goroutine
// may call it at a time.
func (o *outlet) write(b []byte) (kept bool, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.broken != nil {
		return false, o.broken
	}
	if !o.draining {
		if b, err = o.attempt(b); err != nil || len(b) == 0 {
			return false, err
		}
	}
	if len(o.backlog)+len(b) > maxBacklog {
		return false, errBacklog
	}
	o.backlog = append(o.backlog, b...)
	if !o.draining {
		o.draining = true
		go o.drain()
	}
	return true, nil
}

// attempt writes what the connection takes now and returns the rest.
func (o *outlet) attempt(b []byte) ([]byte, error) {
	if o.raw == nil {
		return b, nil
	}
	o.part = b
	err := o.raw.Write(o.try)
	o.part = nil
	if err == nil {
		err = o.failed
	}
	if err != nil {
		return nil, err
	}
	return b[o.wrote:], nil
}

// drain writes the backlog until there is none. It ends when the connection is
// closed, at the latest.
func (o *outlet) drain() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.backlog) > 0 && o.broken == nil {
		b := o.backlog
		o.backlog = nil
		o.mu.Unlock()
		_, err := o.conn.Write(b)
		o.mu.Lock()
		o.broken = err
	}
	o.draining = false
	o.caught.Broadcast()
}

// flush waits until nothing is kept any more.
func (o *outlet) flush() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.draining {
		o.caught.Wait()
	}
}
