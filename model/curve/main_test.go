package curve

import (
	"runtime/debug"
	"testing"
)

// TestMain collects garbage as rarely as the program does.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	m.Run()
}
