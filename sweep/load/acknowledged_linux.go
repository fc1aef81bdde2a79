package load

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// acknowledged is how many of the bytes written to a connection the other end's kernel has
// acknowledged: those that came before the other end closed. It is negative where that is
// not known.
func acknowledged(nc net.Conn) int64 {
	sc, ok := nc.(syscall.Conn)
	if !ok {
		return -1
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return -1
	}
	n := int64(-1)
	_ = raw.Control(func(fd uintptr) {
		if info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
			n = max(int64(info.Bytes_acked)-1, 0) // the first is the beginning of the connection
		}
	})
	return n
}
