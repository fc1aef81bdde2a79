package sweep

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"planner/internal/input"
	"planner/internal/wire"
	"planner/sweep/measure"
)

// Journal is the file that makes a run repeatable: one JSON line per trial or rejected
// configuration, synced before the next trial begins. A nil Journal keeps nothing.
type Journal struct {
	file *os.File
	// held are the measurements of an earlier process that were not yet asked for, in order.
	held []measure.Measurement
	// confirm, if set, is called before a line is written.
	confirm func() error
}

// openJournal opens or creates the journal at path and locks it against a
// second process. A torn last line, left by a process that was killed, is cut
// off. A damaged line before the last one is an error.
func openJournal(path string) (j *Journal, err error) {
	f, err := Folder{filepath.Dir(path)}.open(filepath.Base(path), os.O_RDWR|os.O_CREATE|os.O_APPEND)
	if err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	defer func() {
		if err != nil {
			f.Close()
		}
	}()
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("journal %s is in use by another process", path)
		}
		// Some network file systems have no locks; the journal works without.
		if !errors.Is(err, unix.ENOLCK) && !errors.Is(err, unix.ENOTSUP) {
			return nil, fmt.Errorf("lock journal %s: %w", path, err)
		}
	}
	data, err := input.ReadOpen(f, input.Journal)
	if err != nil {
		return nil, fmt.Errorf("read journal: %w", err)
	}
	held, size, err := parseJournal(data)
	if err != nil {
		return nil, fmt.Errorf("journal %s: %w", path, err)
	}
	if size < len(data) {
		if err := f.Truncate(int64(size)); err != nil {
			return nil, fmt.Errorf("cut torn line: %w", err)
		}
	}
	return &Journal{file: f, held: held}, nil
}

// Limits of what is read of a journal: a line of few bytes takes the memory of a whole
// measurement, and a short text in it that of a note.
const (
	mostLines      = 50_000
	mostComposites = 500_000
	mostNotes      = 300_000
	longestLine    = 1 << 20
)

// parseJournal reads the whole lines of a journal and returns the length of the part that is sound.
func parseJournal(data []byte) (held []measure.Measurement, size int, err error) {
	err = errors.Join(input.CheckJSON(data, input.Composite, mostComposites), input.CheckJSON(data, input.AnyValue, mostValues))
	if err != nil {
		return nil, 0, err
	}
	notes := 0
	for number := 1; size < len(data); number++ {
		line, rest, whole := bytes.Cut(data[size:], []byte{'\n'})
		if !whole {
			return held, size, nil
		}
		m, err := parseLine(line)
		if notes += len(m.Warnings); number > mostLines || notes > mostNotes {
			return nil, 0, fmt.Errorf("more than %d lines or %d warnings, which is the most that is read of one", mostLines, mostNotes)
		}
		if err != nil {
			if len(rest) == 0 && !errors.Is(err, measure.ErrImpossible) {
				return held, size, nil
			}
			return nil, 0, fmt.Errorf("line %d: %w", number, err)
		}
		held = append(held, m)
		size += len(line) + 1
	}
	return held, size, nil
}

// ReadJournal returns the measurements of a journal without opening it for
// writing; a torn last line is left out.
func ReadJournal(path string) ([]measure.Measurement, error) {
	held, _, err := ReadJournalFrom(path, 0)
	return held, err
}

// ReadJournalFrom returns the measurements after an offset in a journal, where a line must begin,
// and the offset to go on from.
func ReadJournalFrom(path string, from int) ([]measure.Measurement, int, error) {
	data, err := Folder{filepath.Dir(path)}.Read(filepath.Base(path))
	if err != nil {
		return nil, from, err
	}
	held, size, err := parseJournal(data[min(from, len(data)):])
	if err != nil {
		return nil, from, fmt.Errorf("journal %s: %w", path, err)
	}
	return held, from + size, nil
}

func parseLine(line []byte) (measure.Measurement, error) {
	var m measure.Measurement
	if len(line) > longestLine {
		return m, fmt.Errorf("longer than %d bytes", longestLine)
	}
	err := wire.Unmarshal(line, &m)
	return m, err
}

// Close releases the journal.
func (j *Journal) Close() error {
	if j == nil || j.file == nil {
		return nil
	}
	return j.file.Close()
}

// Held returns how many measurements of an earlier process are still to be asked for.
func (j *Journal) Held() int {
	if j == nil {
		return 0
	}
	return len(j.held)
}

// trialText describes a trial so that it differs from any other, with all digits of its rate.
func trialText(t *measure.Trial) string {
	load := fmt.Sprintf("%v requests/s", t.Rate)
	if t.Closed() {
		load = fmt.Sprintf("concurrency %d", t.Concurrency)
	}
	return fmt.Sprintf("%s at %s with seed %d", t.Knobs.Describe(), load, t.Seed)
}

// ErrOtherTrials says that a journal does not hold the trials that a study asks for.
var ErrOtherTrials = errors.New("the journal holds other trials")

// recall returns what was measured for t. The trial must be the one that was journaled at this
// place: a journal belongs to one configuration.
func (j *Journal) recall(t measure.Trial) (measure.Measurement, error) {
	m := j.held[0]
	was := m.Trial
	if !Measures(&m, &t) {
		return m, fmt.Errorf("%w: trial %d was %s, and is now %s", ErrOtherTrials, t.Number, trialText(&was), trialText(&t))
	}
	if alike, err := sameObjective(was.Objective, t.Objective); m.Ran() && (err != nil || !alike) {
		return m, errors.Join(fmt.Errorf("%w: trial %d was judged by another objective than the configuration has: "+
			"its counts say nothing about the limits now; begin a new run", ErrOtherTrials, t.Number), err)
	}
	if m.Ran() && !was.Workload.Alike(t.Workload) {
		return m, fmt.Errorf("%w: trial %d was of another workload than the configuration has: "+
			"its latencies say nothing about the requests now; begin a new run", ErrOtherTrials, t.Number)
	}
	j.held = j.held[1:]
	m.Trial = t
	return m, nil
}

// sameObjective reports whether two objectives are written alike. One without a
// bound judges nothing.
func sameObjective(a, b measure.SLO) (bool, error) {
	if a.Empty() && b.Empty() {
		return true, nil
	}
	x, err := wire.Marshal(a)
	if err != nil {
		return false, err
	}
	y, err := wire.Marshal(b)
	return bytes.Equal(x, y), err
}

// journalLine is a line of a journal and the measurement as it will be read back.
type journalLine struct {
	line []byte
	back measure.Measurement
}

func newJournalLine(m measure.Measurement) (e journalLine, err error) {
	if e.line, err = wire.Marshal(m); err != nil {
		return e, fmt.Errorf("journal: %w", err)
	}
	if e.back, err = parseLine(e.line); err != nil {
		return e, fmt.Errorf("journal: a line does not read back: %w", err)
	}
	return e, nil
}

// append writes one line and syncs it.
func (j *Journal) append(m measure.Measurement) error {
	e, err := newJournalLine(m)
	if err != nil {
		return err
	}
	return j.write(e)
}

func (j *Journal) write(e journalLine) error {
	if j == nil {
		return nil
	}
	if j.file == nil {
		return fmt.Errorf("%w: the journal ends there", ErrInterrupted)
	}
	if j.confirm != nil {
		if err := j.confirm(); err != nil {
			return err
		}
	}
	if _, err := j.file.Write(append(e.line, '\n')); err != nil {
		return fmt.Errorf("write journal: %w", err)
	}
	if err := j.file.Sync(); err != nil {
		return fmt.Errorf("sync journal: %w", err)
	}
	return nil
}

// reject journals configurations that cannot run and were never tried. On a
// resumed run they take the lines of the earlier process instead.
func (j *Journal) reject(all []measure.Rejection) error {
	for _, r := range all {
		if j.Held() > 0 {
			if m := j.held[0]; m.Ran() || m.Trial.Knobs != r.Knobs {
				return fmt.Errorf("%w: %s is now rejected (%s), and was not", ErrOtherTrials, r.Knobs.Describe(), r.Reason.Text)
			}
			j.held = j.held[1:]
			continue
		}
		if err := j.append(measure.Measurement{Trial: measure.Trial{Knobs: r.Knobs}, Rejected: r.Reason}); err != nil {
			return err
		}
	}
	return nil
}

// ForgetFailures drops from the end of the journal the knobs whose engines failed, so that they are
// tried again.
func (f Folder) ForgetFailures() error {
	j, err := openJournal(f.File(JournalFile))
	if err != nil {
		return err
	}
	defer j.Close()
	data, err := os.ReadFile(j.file.Name())
	if err != nil {
		return fmt.Errorf("read journal: %w", err)
	}
	size := len(data)
	for n := len(j.held); n > 0 && measure.Broke(j.held[n-1].Rejected); n-- {
		size = bytes.LastIndexByte(data[:size-1], '\n') + 1
	}
	if err := j.file.Truncate(int64(size)); err != nil {
		return fmt.Errorf("drop failures from the journal: %w", err)
	}
	return nil
}

// WriteJournal writes the journal of measurements that no study asked for.
func (f Folder) WriteJournal(all []measure.Measurement) error {
	j, err := openJournal(f.File(JournalFile))
	if err != nil {
		return err
	}
	defer j.Close()
	for _, m := range all {
		if err := j.append(m); err != nil {
			return err
		}
	}
	return nil
}
