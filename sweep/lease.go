package sweep

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Files of a run folder that say which process may write to it: the holder's name, a lock that
// tells on one machine whether the holder lives, and a folder with a file per attempt.
const (
	leaseFile   = "lease.json"
	lockFile    = "lease.lock"
	attemptsDir = "attempts"
)

// LeaseTerms say how leases are kept and taken over.
type LeaseTerms struct {
	// Beat is how often a holder shows that it lives and looks whether it still holds
	// the lease. Expiry is how long a holder may be silent; several times Beat.
	Beat, Expiry time.Duration
	// Evict takes the lease from a holder that lives, which then ends; without it that
	// is an error.
	Evict bool
}

// Attempt is one process that held the lease of a run folder.
type Attempt struct {
	ID      string    `json:"id"`
	Host    string    `json:"host"`
	PID     int       `json:"pid"`
	Job     string    `json:"job,omitempty"`
	Began   time.Time `json:"began"`
	Seconds float64   `json:"seconds"`
	// Ended says that it writes no more.
	Ended bool `json:"ended"`
}

// ErrLeaseLost says that another process has taken a run over, or that nothing can be written
// there.
var ErrLeaseLost = errors.New("this process has lost the run and writes no more")

// Lease is the right to write a run folder, even on file systems without locks. No two clocks are
// compared: a holder that sees another's name in the lease ends, and a process that takes a lease
// over waits for long enough that the holder has seen it.
type Lease struct {
	folder Folder
	terms  LeaseTerms
	own    Attempt
	lock   *os.File

	cancel context.CancelCauseFunc
	done   chan struct{}
	ended  sync.WaitGroup
}

// Lease takes the lease of a run folder for the scheduler's job, "" for none, waiting for
// an earlier holder to end. The context that it returns ends, with [ErrLeaseLost], when
// another process takes the lease.
func (f Folder) Lease(ctx context.Context, job string, terms LeaseTerms) (*Lease, context.Context, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, ctx, fmt.Errorf("lease: %w", err)
	}
	l := &Lease{folder: f, terms: terms, done: make(chan struct{}),
		own: Attempt{ID: rand.Text(), Host: host, PID: os.Getpid(), Job: job, Began: time.Now().UTC()}}
	if l.lock, err = f.open(lockFile, os.O_RDWR|os.O_CREATE); err != nil {
		return nil, ctx, fmt.Errorf("lease: %w", err)
	}
	if err := l.claim(ctx); err != nil {
		l.lock.Close()
		return nil, ctx, err
	}
	held, cancel := context.WithCancelCause(ctx)
	l.cancel = cancel
	l.ended.Go(l.beat)
	return l, held, nil
}

// claim writes the own name into the lease once its holder is known to be dead, or has had the time
// to see that it lost it.
func (l *Lease) claim(ctx context.Context) error {
	alone := unix.Flock(int(l.lock.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil
	holder, err := l.holder()
	if errors.Is(err, fs.ErrNotExist) {
		return l.write()
	} else if err != nil {
		return err
	}
	was, err := l.attempt(holder)
	if err != nil {
		return err
	}
	if was.Ended || alone && was.Host == l.own.Host {
		return l.write()
	}
	if l.terms.Evict {
		if err := l.write(); err != nil {
			return err
		}
	}
	for began := time.Now(); time.Since(began) < l.terms.Expiry; {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(l.terms.Beat / 2):
		}
		now, err := l.attempt(holder)
		switch {
		case err != nil:
			return err
		case now.Ended:
			return l.write()
		case !l.terms.Evict && now.Seconds > was.Seconds:
			return fmt.Errorf("%s is in use by another process: planner on %s, process %d", l.folder.Path, was.Host, was.PID)
		}
	}
	return l.write()
}

func (l *Lease) write() error {
	if err := l.record(); err != nil {
		return err
	}
	if err := l.folder.WriteJSON(leaseFile, l.own.ID); err != nil {
		return fmt.Errorf("lease: %w", err)
	}
	return nil
}

func (l *Lease) record() error {
	l.own.Seconds = time.Since(l.own.Began).Seconds()
	return l.folder.WriteJSON(path.Join(attemptsDir, l.own.ID+".json"), l.own)
}

func (l *Lease) holder() (id string, err error) {
	return id, l.folder.ReadJSON(leaseFile, &id)
}

// attempt reads what is known of an attempt, nothing if there is no such file.
func (l *Lease) attempt(id string) (a Attempt, err error) {
	err = IgnoreMissing(l.folder.ReadJSON(path.Join(attemptsDir, id+".json"), &a))
	return a, err
}

// Confirm returns an error unless the lease is still held.
func (l *Lease) Confirm() error {
	id, err := l.holder()
	switch {
	case err != nil:
		return fmt.Errorf("lease: %w", err)
	case id != l.own.ID:
		lost := fmt.Errorf("%w: another process has taken it over", ErrLeaseLost)
		l.cancel(lost)
		return lost
	}
	return nil
}

// beat shows that the holder lives, until it ends or the lease is lost. A lease that cannot be
// confirmed for half of Expiry is lost.
func (l *Lease) beat() {
	confirmed := time.Now()
	for {
		select {
		case <-l.done:
			return
		case <-time.After(l.terms.Beat):
		}
		err := l.Confirm()
		if err == nil {
			err = l.record()
		}
		switch {
		case err == nil:
			confirmed = time.Now()
		case errors.Is(err, ErrLeaseLost):
			return
		case time.Since(confirmed) > l.terms.Expiry/2:
			l.cancel(fmt.Errorf("%w: %w", ErrLeaseLost, err))
			return
		}
	}
}

// Release ends the holding: everything has been stopped and written.
func (l *Lease) Release() error {
	close(l.done)
	l.ended.Wait()
	l.cancel(nil)
	l.own.Ended = true
	return errors.Join(l.record(), l.lock.Close())
}

// AttemptFiles lists the files of the processes that held the lease of a run folder.
func (f Folder) AttemptFiles() ([]string, error) {
	return fs.Glob(os.DirFS(f.Path), attemptsDir+"/*.json")
}

// Attempts lists those processes.
func (f Folder) Attempts() ([]Attempt, error) {
	names, err := f.AttemptFiles()
	if err != nil {
		return nil, err
	}
	var all []Attempt
	for _, name := range names {
		var a Attempt
		if err := f.ReadJSON(name, &a); err != nil {
			return nil, err
		}
		all = append(all, a)
	}
	return all, nil
}
