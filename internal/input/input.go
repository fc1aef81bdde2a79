// Package input reads files of others within limits, so that no file takes the memory of
// the machine: not one that never ends, nor a small one that unpacks to a large one.
package input

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// Sizes of files, each far above what is met in practice.
const (
	// Settings are written by hand: configurations, catalogs, calibrations.
	Settings = 1 << 20
	// ModelConfig is a model's config.json, which may list every module that was not quantized: 3 MiB are seen.
	ModelConfig = 16 << 20
	// Results are those of other tools, which may list every token of every request.
	Results = 32 << 20
	// Lengths are a list of numbers.
	Lengths = 16 << 20
	// Journal is a file of a run folder.
	Journal = 128 << 20
)

// A LimitError says that a file is larger than what is read of such a file.
type LimitError struct{ Most int64 }

// Error says how large the file may be.
func (e *LimitError) Error() string {
	unit, size := "bytes", e.Most
	for _, larger := range []string{"KiB", "MiB"} {
		if size%1024 == 0 {
			unit, size = larger, size/1024
		}
	}
	return fmt.Sprintf("larger than %d %s, which is the most that is read of such a file", size, unit)
}

// ReadFile reads a file of at most most bytes.
func ReadFile(name string, most int64) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return ReadOpen(f, most)
}

// ReadOpen reads what an open file holds, unpacked, at most most bytes.
func ReadOpen(f *os.File, most int64) ([]byte, error) {
	var b bytes.Buffer
	if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
		if info.Size() > most {
			return nil, &fs.PathError{Op: "read", Path: f.Name(), Err: &LimitError{most}}
		}
		b.Grow(int(info.Size()) + bytes.MinRead)
	}
	r, err := Unpack(f)
	if err == nil {
		_, err = b.ReadFrom(Limit(r, most))
	}
	if err != nil {
		return nil, &fs.PathError{Op: "read", Path: f.Name(), Err: err}
	}
	return b.Bytes(), nil
}

// Limit passes on at most most bytes of r, and fails with a [LimitError] where there are
// more.
func Limit(r io.Reader, most int64) *LimitedReader { return &LimitedReader{r, most, most} }

// LimitedReader reads no more than a limit.
type LimitedReader struct {
	from       io.Reader
	left, most int64
}

// Again lets as many bytes follow as at first.
func (l *LimitedReader) Again() { l.left = l.most }

// Read reads one byte more than is left at most, to know whether there is one.
func (l *LimitedReader) Read(p []byte) (int, error) {
	if l.left < 0 {
		return 0, &LimitError{l.most}
	}
	p = p[:min(int64(len(p)), l.left+1)]
	n, err := l.from.Read(p)
	if l.left -= int64(n); l.left < 0 {
		return n - 1, &LimitError{l.most}
	}
	return n, err
}
