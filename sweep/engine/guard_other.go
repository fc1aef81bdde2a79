//go:build unix && !linux

package engine

import "syscall"

// adoptOrphans is possible on Linux only; elsewhere what leaves the engine's
// process group is out of reach.
func adoptOrphans() error { return nil }

// yield is possible for one thread on Linux only.
func yield() {}

func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
