package main

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
)

// interrupts turns signals into ends. Ctrl-C ends a command at once, unless the
// command has asked for patience: then the first one only asks it to finish the
// trial that runs and to report, and a second one ends it. SIGTERM always ends. The
// second signal of any kind leaves engines no time to end by themselves either, and
// ends the process itself where nothing has been started: it may wait for what never
// comes, from a pipe that nobody writes to.
type interrupts struct {
	patient, asked atomic.Bool
	// exit ends the process; nil where none may.
	exit func(code int)
	// hurry is closed by the second signal.
	hurry chan struct{}
	made  sync.Once
	// say, if set, answers the first Ctrl-C of a patient command.
	say atomic.Pointer[func(string)]
}

// watch begins to listen; cancel ends the program's work.
func (i *interrupts) watch(cancel context.CancelFunc) {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		for n := 1; ; n++ {
			s := <-signals
			if n == 2 {
				close(i.hurrying())
				if i.exit != nil && !i.patient.Load() {
					i.exit(exitInterrupted)
				}
			}
			if s == syscall.SIGTERM || !i.patient.Load() || i.asked.Swap(true) {
				cancel()
				continue
			}
			if say := i.say.Load(); say != nil {
				(*say)("finishing the trial that runs, then reporting; Ctrl-C once more stops now")
			}
		}
	}()
}

// hurrying is closed once the user does not want to wait any more.
func (i *interrupts) hurrying() chan struct{} {
	i.made.Do(func() { i.hurry = make(chan struct{}) })
	return i.hurry
}

// patience makes the first Ctrl-C gentle and returns the question whether it
// has come. say is told in words what it does.
func (i *interrupts) patience(say func(string)) (enough func() bool) {
	i.say.Store(&say)
	i.patient.Store(true)
	return i.asked.Load
}
