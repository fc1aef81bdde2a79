package load

import (
	"fmt"
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
	t := &timerfd{file: f}
	t.arm = func(d time.Duration) (err error) {
		spec := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(d))}
		if cerr := raw.Control(func(fd uintptr) { err = unix.TimerfdSettime(int(fd), 0, &spec, nil) }); cerr != nil {
			return cerr
		}
		return err
	}
	return &pacer{timer: t, lead: 60 * time.Microsecond}, nil
}

type timerfd struct {
	file *os.File
	arm  func(time.Duration) error
}

func (t *timerfd) sleep(d time.Duration) bool {
	if t.arm(d) != nil {
		return false
	}
	var expirations [8]byte
	_, err := t.file.Read(expirations[:])
	return err == nil
}

func (t *timerfd) close() { t.file.Close() }
