package engine

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// adoptOrphans makes this process the parent of descendants whose own parent
// has ended.
func adoptOrphans() error { return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// behind is by how much engines are nicer than the load generator beside them: on
// processors that both share a request must leave on time, and what the engine waits
// for that is little. It makes no difference to an engine that has its own.
const behind = 10

// yield lowers the priority of this thread, and so of the processes that it starts.
func yield() {
	const thisThread, nicest = 0, 19
	// The call itself answers with 20 less the niceness, which leaves negative numbers to
	// errors.
	if priority, err := unix.Getpriority(unix.PRIO_PROCESS, thisThread); err == nil {
		_ = unix.Setpriority(unix.PRIO_PROCESS, thisThread, min(20-priority+behind, nicest))
	}
}

// ownGroup starts a process in a group of its own, to be killed with its parent.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
