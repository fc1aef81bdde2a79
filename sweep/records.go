package sweep

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/klauspost/compress/zstd"

	"planner/internal/input"
	"planner/internal/wire"
	"planner/sweep/engine"
	"planner/sweep/measure"
)

// RecordsName is the file of a trial's records in a run folder.
func RecordsName(trial int) string { return "records/" + fileName(trial) + ".jsonl.zst" }

// WriteRecords writes the records of a trial into the run folder: one line of JSON per request,
// compressed with Zstandard.
func (f Folder) WriteRecords(trial int, records []measure.Record) error {
	return f.WriteFrom(RecordsName(trial), func(w io.Writer) error {
		z, err := zstd.NewWriter(w)
		if err != nil {
			return err
		}
		lines := json.NewEncoder(z)
		for i := range records {
			err = errors.Join(err, lines.Encode(&records[i]))
		}
		return errors.Join(err, z.Close())
	})
}

// mostRecords bounds what is read of a file of records: a small one may unpack to a large one.
const mostRecords = 1_000_000

// Records reads the records of a trial.
func (f Folder) Records(trial int) ([]measure.Record, error) {
	file, err := f.Open(RecordsName(trial))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var records []measure.Record
	wrong := func(err error) ([]measure.Record, error) {
		return nil, fmt.Errorf("read record %d of %s: %w", len(records)+1, file.Name(), err)
	}
	unpacked, err := input.Unpack(file)
	if err != nil {
		return wrong(err)
	}
	lines := bufio.NewScanner(unpacked)
	for lines.Scan() {
		var rec measure.Record
		if err := json.Unmarshal(lines.Bytes(), &rec); err != nil {
			return wrong(err)
		}
		if len(records) == mostRecords {
			return wrong(fmt.Errorf("more than %d, which is the most that is read of a trial", mostRecords))
		}
		records = append(records, rec)
	}
	if err := lines.Err(); err != nil {
		return wrong(err)
	}
	return records, nil
}

// engineDir is the folder of a run that holds what engines said.
const engineDir = "engine"

// fileName begins the names of a trial's files.
func fileName(trial int) string { return fmt.Sprintf("%04d", trial) }

// link gives the log of an engine that an earlier trial started a second name, after this trial. On
// a file system without links only the telemetry of the trial names the log.
func (l *Live) link(e *engine.Engine, trial int) {
	own := fileName(trial) + ".log"
	if trial == 0 || e.Log == "" || filepath.Base(e.Log) == own {
		return
	}
	path := filepath.Join(l.Settings.Dir, own)
	if _, err := os.Lstat(path); err == nil && l.reported != e {
		return // the log of an engine that broke down in this trial
	}
	l.unlink(fileName(trial))
	_ = os.Symlink(filepath.Base(e.Log), path)
}

// unlink removes a log's second name, lest an engine that is started under that name overwrites the
// first: a resumed run starts one in the middle.
func (l *Live) unlink(name string) {
	path := filepath.Join(l.Settings.Dir, name+".log")
	if info, err := os.Lstat(path); err == nil && info.Mode()&os.ModeSymlink != 0 {
		_ = os.Remove(path)
	}
}

// EngineTelemetryName is the file of a run folder that sums up what was seen of the engine in a
// trial.
func EngineTelemetryName(trial int) string { return engineDir + "/" + fileName(trial) + ".json" }

// SamplesName is the file of a run folder with what an engine and its GPUs said
// in a trial, second by second.
func SamplesName(trial int) string { return engineDir + "/" + fileName(trial) + ".jsonl" }

// HistogramsName is the file of a trial's latencies in a run folder.
func HistogramsName(trial int) string { return "histograms/" + fileName(trial) + ".hlog" }

// WriteHistograms writes the latencies of a trial into the run folder, second by second, as an
// HdrHistogram log.
func (f Folder) WriteHistograms(trial int, log []byte) error {
	return f.Write(HistogramsName(trial), log)
}

// WriteEngineTelemetry writes what was seen of an engine in a trial into the run folder: its
// summary, its samples, and the client's latencies. For an engine that never got to serve there is
// only the summary.
func (f Folder) WriteEngineTelemetry(s EngineTelemetry) error {
	kept := s
	kept.Engine.Log = logName(s.Engine.Log)
	if s.Failure != nil {
		failure := *s.Failure
		failure.Log, kept.Failure = logName(failure.Log), &failure
	}
	if err := f.WriteJSON(EngineTelemetryName(s.Trial), kept); err != nil {
		return err
	}
	if s.Client == nil {
		return nil
	}
	if err := f.WriteFrom(SamplesName(s.Trial), func(w io.Writer) error { return writeSamples(w, &s.Said) }); err != nil {
		return err
	}
	return f.WriteHistograms(s.Trial, s.Client.Histograms)
}

// ReadEngineTelemetry reads the summaries of a run folder in the order of the trials.
// Samples and latencies are not read back. A run on the simulated engine has none.
func (f Folder) ReadEngineTelemetry() ([]EngineTelemetry, error) {
	names, err := fs.Glob(os.DirFS(f.Path), engineDir+"/[0-9][0-9][0-9][0-9]*.json")
	if err != nil {
		return nil, fmt.Errorf("read what engines said: %w", err)
	}
	var all []EngineTelemetry
	for _, name := range names {
		var s EngineTelemetry
		if err := f.ReadJSON(name, &s); err != nil {
			return nil, fmt.Errorf("read what engines said: %w", err)
		}
		if s.Failure != nil {
			s.Failure.Knobs = s.Knobs
		}
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b EngineTelemetry) int { return a.Trial - b.Trial })
	return all, nil
}

func logName(path string) string {
	if path == "" {
		return ""
	}
	return engineDir + "/" + filepath.Base(path)
}

// writeSamples writes the samples of an engine and its GPUs in order of time, one line of JSON
// each.
func writeSamples(w io.Writer, said *engine.Metrics) error {
	type sample struct {
		at   time.Duration
		line any
	}
	var lines []sample
	for i := range said.Snapshots {
		lines = append(lines, sample{said.Snapshots[i].At, &said.Snapshots[i]})
	}
	for i := range said.GPUs {
		lines = append(lines, sample{said.GPUs[i].At, map[string]any{"at_s": said.GPUs[i].At, "gpu": &said.GPUs[i]}})
	}
	slices.SortStableFunc(lines, func(a, b sample) int { return cmp.Compare(a.at, b.at) })
	for i := range lines {
		line, err := wire.Marshal(lines[i].line)
		if err != nil {
			return err
		}
		if _, err := w.Write(append(line, '\n')); err != nil {
			return err
		}
	}
	return nil
}
