//go:build !unix

package load

import "time"

// processCPU and openFiles are not known here.
func processCPU() time.Duration { return 0 }
func openFiles() int            { return 0 }
