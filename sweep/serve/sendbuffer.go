package serve

import (
	"errors"
	"net"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// maxBacklog is how many bytes are kept for a client that does not read before it counts as gone.
const maxBacklog = 16 << 20

var errBacklog = errors.New("client does not read")

// sendBuffer writes to one client without waiting for it: the one goroutine that serves all clients
// must not stall because one of them does not read. What the connection does not accept at once is
// written by a goroutine that lasts until it has caught up.
type sendBuffer struct {
	conn *net.TCPConn
	raw  syscall.RawConn
	try  func(fd uintptr) bool
	// part is what try writes; wrote and failed are the outcome.
	part   []byte
	wrote  int
	failed error

	mu       sync.Mutex
	backlog  []byte
	draining bool
	broken   error
	drains   sync.WaitGroup
}

func newSendBuffer(conn *net.TCPConn) (*sendBuffer, error) {
	raw, err := conn.SyscallConn()
	s := &sendBuffer{conn: conn, raw: raw}
	s.try = func(fd uintptr) bool {
		s.wrote, s.failed = writeNow(fd, s.part)
		return true
	}
	return s, err
}

// write sends bytes or keeps them for later, and reports which. Only one goroutine may call it at a
// time.
func (s *sendBuffer) write(b []byte) (kept bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken != nil {
		return false, s.broken
	}
	if !s.draining {
		s.part, s.wrote, s.failed = b, 0, nil
		if err := errors.Join(s.raw.Write(s.try), s.failed); err != nil {
			return false, err
		}
		if b = b[s.wrote:]; len(b) == 0 {
			return false, nil
		}
	}
	if len(s.backlog)+len(b) > maxBacklog {
		return false, errBacklog
	}
	s.backlog = append(s.backlog, b...)
	if !s.draining {
		s.draining = true
		s.drains.Go(s.drain)
	}
	return true, nil
}

// drain writes the backlog until there is none, or the connection is closed.
func (s *sendBuffer) drain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.backlog) > 0 && s.broken == nil {
		b := s.backlog
		s.backlog = nil
		s.mu.Unlock()
		_, err := s.conn.Write(b)
		s.mu.Lock()
		s.broken = err
	}
	s.draining = false
}

// flush waits until nothing is kept any more.
func (s *sendBuffer) flush() { s.drains.Wait() }

// writeNow writes what a non-blocking descriptor accepts at once.
func writeNow(fd uintptr, b []byte) (int, error) {
	for {
		n, err := unix.Write(int(fd), b)
		switch err {
		case nil:
			return n, nil
		case unix.EINTR:
		case unix.EAGAIN:
			return 0, nil
		default:
			return 0, err
		}
	}
}
