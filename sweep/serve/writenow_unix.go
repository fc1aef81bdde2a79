//go:build unix

package serve

import "golang.org/x/sys/unix"

// writeNow writes what a non-blocking descriptor takes at once.
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
