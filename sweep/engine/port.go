package engine

import (
	"fmt"
	"net"
	"strconv"
	"time"
)

// freePort finds a port that nobody listens on. Somebody may take it before the
// engine does; that start then fails with [PortTaken] and is worth another.
func freePort() (int, error) {
	l, err := net.Listen("tcp", net.JoinHostPort(loopback, "0"))
	if err != nil {
		return 0, fmt.Errorf("engine: find a free port: %w", err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// portClosed reports whether nobody accepts connections on a port within limit.
func portClosed(port int, limit time.Duration) bool {
	for start := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		c, err := net.DialTimeout("tcp", net.JoinHostPort(loopback, strconv.Itoa(port)), time.Second)
		if err != nil {
			return true
		}
		c.Close()
		if time.Since(start) > limit {
			return false
		}
	}
}
