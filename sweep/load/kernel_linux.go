package load

import (
	"fmt"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// newPacer returns a pacer on a timerfd that the Go poller waits for. Unlike a
// thread asleep in clock_nanosleep it holds none of the GOMAXPROCS processors,
// and the goroutine that it starts for a request runs next on the one that woke.
func newPacer() (*pacer, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("create timer: %w", err)
	}
	f := os.NewFile(uintptr(fd), "timerfd")
	raw, err := f.SyscallConn()
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("use timer: %w", err)
	}
	sleep := func(d time.Duration) bool {
		spec := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(d))}
		var armed error
		err := raw.Control(func(fd uintptr) { armed = unix.TimerfdSettime(int(fd), 0, &spec, nil) })
		if err != nil || armed != nil {
			return false
		}
		var expirations [8]byte
		_, err = f.Read(expirations[:])
		return err == nil
	}
	return &pacer{sleep: sleep, close: func() { f.Close() }, lead: 60 * time.Microsecond}, nil
}

// acknowledged is how many of the bytes written to a connection the other end's kernel has
// acknowledged: those that came before the other end closed. It is negative where that is
// not known.
func acknowledged(nc net.Conn) int64 {
	n := int64(-1)
	_ = control(nc, func(fd int) {
		if info, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
			n = max(int64(info.Bytes_acked)-1, 0) // the first is the beginning of the connection
		}
	})
	return n
}
