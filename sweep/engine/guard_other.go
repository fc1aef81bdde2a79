//go:build unix && !linux

package engine

import "syscall"

// adoptOrphans is possible on Linux only; elsewhere what leaves the engine's
// process group is out of reach.
func adoptOrphans() error { return nil }

func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
