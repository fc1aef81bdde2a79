package engine

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// adoptOrphans makes this process the parent of descendants whose own parent has ended.
func adoptOrphans() error { return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// behind is by how much engines are nicer than the load generator: on processors that both share, a
// request must leave on time, and the engine waits little for that. It makes no difference to an
// engine with processors of its own.
const behind = 10

// yield lowers the priority of this thread, and so of the processes that it starts.
func yield() {
	const thisThread, nicest = 0, 19
	// The raw system call returns 20 minus the niceness, so that negative values can mean errors.
	if priority, err := unix.Getpriority(unix.PRIO_PROCESS, thisThread); err == nil {
		_ = unix.Setpriority(unix.PRIO_PROCESS, thisThread, min(20-priority+behind, nicest))
	}
}

// ownGroup has a process started in a group of its own and killed with its parent.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
