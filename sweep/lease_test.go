package sweep

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"planner/internal/evidence/must"
	"planner/sweep/measure"
)

var quickTerms = LeaseTerms{Beat: 20 * time.Millisecond, Expiry: 400 * time.Millisecond}

func leased(t *testing.T, f Folder, terms LeaseTerms) (*Lease, context.Context) {
	t.Helper()
	l, ctx, err := f.Lease(t.Context(), "7", terms)
	must.OK(err)
	return l, ctx
}

// TestLeaseIsReleased: the next holder of a lease that was given back does not wait.
func TestLeaseIsReleased(t *testing.T) {
	f := Folder{t.TempDir()}
	first, _ := leased(t, f, quickTerms)
	must.OK(errors.Join(first.Confirm(), first.Release()))
	slow := quickTerms
	slow.Expiry = time.Hour
	second, _ := leased(t, f, slow)
	if err := first.Confirm(); !errors.Is(err, ErrLeaseLost) {
		t.Errorf("the first holder still holds: %v", err)
	}
	must.OK(second.Release())
	all, err := f.Attempts()
	if err != nil || len(all) != 2 || !all[0].Ended || !all[1].Ended || all[0].Job != "7" {
		t.Errorf("attempts %+v, %v", all, err)
	}
}

// TestLeaseOfTheLiving: a holder that lives is left alone, or evicted: then it is told,
// may write no more, and the other begins only when it has ended.
func TestLeaseOfTheLiving(t *testing.T) {
	f := Folder{t.TempDir()}
	first, held := leased(t, f, quickTerms)
	if _, _, err := f.Lease(t.Context(), "", quickTerms); err == nil {
		t.Fatal("two hold the lease")
	}
	if err := first.Confirm(); err != nil {
		t.Fatalf("a holder lost its lease to one that may not evict it: %v", err)
	}
	var ended time.Time
	go func() {
		<-held.Done()
		time.Sleep(50 * time.Millisecond) // its engine stops
		ended = time.Now()
		first.Release()
	}()
	evict := quickTerms
	evict.Evict, evict.Expiry = true, time.Minute
	second, _ := leased(t, f, evict)
	defer second.Release()
	if began := time.Now(); !errors.Is(context.Cause(held), ErrLeaseLost) || ended.IsZero() || began.Before(ended) {
		t.Errorf("the first ended %v at %v, the second began at %v", context.Cause(held), ended, began)
	}
	if err := first.Confirm(); !errors.Is(err, ErrLeaseLost) {
		t.Errorf("the first holder may still write: %v", err)
	}
}

// TestLeaseOfTheSilent: a holder on another host that shows no life loses the lease after its
// expiry, a dead one on the same host at once.
func TestLeaseOfTheSilent(t *testing.T) {
	f := Folder{t.TempDir()}
	host := must.Get(os.Hostname())
	for _, on := range []string{host, "elsewhere"} {
		gone := Attempt{ID: "GONE", Host: on, Seconds: 5}
		must.OK(errors.Join(f.WriteJSON("attempts/GONE.json", gone), f.WriteJSON(leaseFile, gone.ID)))
		began := time.Now()
		l, _ := leased(t, f, quickTerms)
		if waited := time.Since(began) >= quickTerms.Expiry; waited != (on != host) {
			t.Errorf("holder on %s: waited %v", on, time.Since(began))
		}
		l.Release()
	}
}

// TestJournalOfALostLease: a process that lost the lease writes no line.
func TestJournalOfALostLease(t *testing.T) {
	f := Folder{t.TempDir()}
	l, _ := leased(t, f, quickTerms)
	defer l.Release()
	j := must.Get(openJournal(f.File(JournalFile)))
	defer j.Close()
	j.confirm = l.Confirm
	must.OK(j.append(measure.Measurement{Trial: measure.Trial{Number: 1}}))
	must.OK(f.WriteJSON(leaseFile, "SOMEBODY"))
	if err := j.append(measure.Measurement{Trial: measure.Trial{Number: 2}}); !errors.Is(err, ErrLeaseLost) {
		t.Errorf("wrote without the lease: %v", err)
	}
	if held, err := ReadJournal(f.File(JournalFile)); err != nil || len(held) != 1 {
		t.Errorf("%d lines, %v", len(held), err)
	}
}
