package serve

import (
	"fmt"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// waker wakes one goroutine at an instant, or earlier on request. That goroutine sleeps in ppoll on
// its own thread: the kernel's timer is some 10 us late there, a timer of the Go runtime half a
// millisecond, because the poller's timeouts are whole milliseconds. A timerfd in the poller is as
// precise but takes twice the CPU at 20,000 wakings per second.
type waker struct {
	event [1]unix.PollFd
}

// timerSlack is how much the kernel may delay a sleep of the thread to make it coincide with
// others, in nanoseconds; its default is 50 us.
const timerSlack = 1000

func newWaker() (*waker, error) {
	fd, err := unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("create event: %w", err)
	}
	return &waker{[1]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}}, nil
}

// own makes the calling goroutine the one that sleeps.
func (w *waker) own() {
	runtime.LockOSThread()
	// If it fails, sleeps are a little longer, nothing else.
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, timerSlack, 0, 0, 0)
}

// sleep returns after a time, or when woken; a negative time is forever. It may return early.
func (w *waker) sleep(d time.Duration) {
	var timeout *unix.Timespec
	if d >= 0 {
		ts := unix.NsecToTimespec(int64(d))
		timeout = &ts
	}
	if n, err := unix.Ppoll(w.event[:], timeout, nil); n > 0 && err == nil {
		var count [8]byte
		_, _ = unix.Read(int(w.event[0].Fd), count[:]) // only to reset the event
	}
}

// wake wakes the goroutine that sleeps, or its next sleep.
func (w *waker) wake() {
	_, _ = unix.Write(int(w.event[0].Fd), []byte{1, 0, 0, 0, 0, 0, 0, 0}) // fails only if a wake is pending
}

// close ends the use of the waker; nobody may wake it any more. The sleeper's thread ends with its
// goroutine.
func (w *waker) close() { unix.Close(int(w.event[0].Fd)) }

func monotonic() int64 {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts) != nil {
		return 0
	}
	return ts.Nano()
}
