//go:build unix && !linux

package engine

import "syscall"

// adoptOrphans is possible on Linux only; elsewhere, processes that leave the engine's process
// group are out of reach.
func adoptOrphans() error { return nil }

// yield does nothing: only Linux can do it for one thread.
func yield() {}

func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
