package cluster

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"planner/sweep"
	"planner/sweep/measure"
)

// seedFile holds what the run folder of a part starts with where there is no shared file system;
// mostSeed is how many bytes of it a config map holds.
const (
	seedFile = "seed.tgz"
	mostSeed = 1_000_000
	// mostUnpacked bounds each unpacked file, in bytes.
	mostUnpacked = 256 << 20
)

// named matches the keys and paths of the files that a configuration names. Paths are absolute in
// the configuration of a run folder.
var named = regexp.MustCompile(`\b(config|calibration|trace|file) = "(/[^"\\]*)"`)

// packSeed packs the run folder of a part: its configuration with the files that it names, and what
// the part has measured already.
func packSeed(f sweep.Folder) ([]byte, error) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	w := tar.NewWriter(z)
	put := func(name string, data []byte) error {
		err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(data))})
		if err == nil {
			_, err = w.Write(data)
		}
		return err
	}
	entries, err := os.ReadDir(f.Path)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		switch e.Name() {
		case sweep.JournalFile, sweep.AboutFile:
		default:
			if filepath.Ext(e.Name()) != ".toml" {
				continue
			}
		}
		data, err := f.Read(e.Name())
		if err != nil {
			return nil, err
		}
		if filepath.Ext(e.Name()) == ".toml" {
			var failed error
			data = named.ReplaceAllFunc(data, func(found []byte) []byte {
				parts := named.FindSubmatch(found)
				input, err := os.ReadFile(string(parts[2]))
				if err == nil {
					name := "inputs/" + strings.TrimPrefix(strings.ReplaceAll(string(parts[2]), "/", "-"), "-")
					err = put(name, input)
					found = fmt.Appendf(nil, "%s = %q", parts[1], name)
				}
				failed = errors.Join(failed, err)
				return found
			})
			if failed != nil {
				return nil, failed
			}
		}
		if err := put(e.Name(), data); err != nil {
			return nil, err
		}
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		return nil, err
	}
	if packed.Len() > mostSeed {
		return nil, fmt.Errorf("the files that the part begins with take %d bytes packed, and a config map holds %d: "+
			"shorten the trace (planner trace FILE --thin 0.1 -o SHORT.csv)", packed.Len(), mostSeed)
	}
	return packed.Bytes(), nil
}

// Unpack makes the run folder of a part from its seed. A journal that is no shorter is kept.
func Unpack(seed, path string) error {
	file, err := os.Open(seed)
	if err != nil {
		return err
	}
	defer file.Close()
	z, err := gzip.NewReader(file)
	if err != nil {
		return fmt.Errorf("%s: %w", seed, err)
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return err
	}
	f := sweep.Folder{Path: path}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("%s: %w", seed, err)
		}
		data, err := io.ReadAll(io.LimitReader(r, mostUnpacked))
		if err != nil {
			return fmt.Errorf("%s: %w", seed, err)
		}
		if info, err := os.Stat(f.File(h.Name)); h.Name == sweep.JournalFile && err == nil && info.Size() >= int64(len(data)) {
			continue
		}
		if err := f.Write(h.Name, data); err != nil {
			return err
		}
	}
}

// streamMark begins the lines of a job's output that hold a piece of a file.
const streamMark = "planner-file "

// piece is a piece of a file of a part.
type piece struct {
	Name string `json:"name"`
	// At is the offset at which it begins; the file ends after it.
	At   int64  `json:"at"`
	Data []byte `json:"data"`
}

// Stream prints the files of a part that the run is made of, as they grow; nothing without a
// folder.
type Stream struct {
	Folder sweep.Folder
	To     io.Writer

	sent int64
}

// See prints what an event has added to the run folder.
func (s *Stream) See(event any) error {
	if s.Folder.Path == "" {
		return nil
	}
	switch e := event.(type) {
	case measure.Measurement:
		return s.journal()
	case sweep.EngineTelemetry:
		return s.whole(sweep.EngineTelemetryName(e.Trial))
	}
	return nil
}

// End prints the rest, once everything has been written.
func (s *Stream) End() error {
	if s.Folder.Path == "" {
		return nil
	}
	return errors.Join(s.journal(), s.whole(sweep.EndingFile))
}

// journal prints what is new in the journal, after the files of the part's attempts.
func (s *Stream) journal() error {
	attempts, err := s.Folder.AttemptFiles()
	for _, name := range attempts {
		err = errors.Join(err, s.whole(name))
	}
	if err != nil {
		return err
	}
	data, err := s.Folder.Read(sweep.JournalFile)
	if err != nil || int64(len(data)) <= s.sent {
		return sweep.IgnoreMissing(err)
	}
	at := s.sent
	s.sent = int64(len(data))
	return s.print(piece{sweep.JournalFile, at, data[at:]})
}

func (s *Stream) whole(name string) error {
	data, err := s.Folder.Read(name)
	if err != nil {
		return sweep.IgnoreMissing(err)
	}
	return s.print(piece{name, 0, data})
}

func (s *Stream) print(p piece) error {
	line, err := json.Marshal(p)
	if err == nil {
		_, err = fmt.Fprintf(s.To, "%s%s\n", streamMark, line)
	}
	return err
}

// small matches the names of small files that are sent whole.
var small = regexp.MustCompile(`^(engine|attempts)/\w+\.json$`)

// take writes a piece of a file to its place, and reports whether the line of a job's output holds
// one.
func take(f sweep.Folder, line string) (bool, error) {
	text, is := strings.CutPrefix(line, streamMark)
	if !is {
		return false, nil
	}
	var p piece
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return false, nil // cut off, for example by log rotation
	}
	if p.Name != sweep.JournalFile {
		if p.Name != sweep.EndingFile && !small.MatchString(p.Name) {
			return false, nil // no part sends such a file
		}
		return true, f.Write(p.Name, p.Data)
	}
	data, err := f.Read(p.Name)
	if err = sweep.IgnoreMissing(err); err != nil {
		return true, err
	}
	have := int64(len(data))
	if have < p.At || have >= p.At+int64(len(p.Data)) {
		return true, nil // a piece before it is missing, and the next pod sends all, or all of it was read before
	}
	return true, f.Write(p.Name, append(data[:p.At:p.At], p.Data...))
}
