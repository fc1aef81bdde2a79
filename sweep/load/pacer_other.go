//go:build !linux

package load

import "time"

// newPacer returns a pacer on the runtime's timers. They may be more than a
// millisecond late, so it wakes that much early and spins.
func newPacer() (*pacer, error) {
	return newRuntimePacer(1200 * time.Microsecond), nil
}
