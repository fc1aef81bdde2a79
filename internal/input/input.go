// Package input reads untrusted files within limits, so that none exhausts the machine's memory: neither one
// that never ends nor a small one that decompresses to a large one.
package input

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// Maximum file sizes, each far above what occurs in practice.
const (
	// Settings are files written by hand: configurations, catalogs, calibrations.
	Settings = 1 << 20
	// ModelConfig is a model's config.json, which may list every module not quantized: 3 MiB have been seen.
	ModelConfig = 16 << 20
	// Results are result files of other tools, which may list every token of every request.
	Results = 32 << 20
	// Lengths is a list of numbers.
	Lengths = 16 << 20
	// Journal is a file of a run folder.
	Journal = 128 << 20
)

// A LimitError says that a file exceeds the maximum for its kind.
type LimitError struct{ Most int64 }

// Error gives the maximum size.
func (e *LimitError) Error() string {
	unit, size := "bytes", e.Most
	for _, larger := range []string{"KiB", "MiB"} {
		if size%1024 == 0 {
			unit, size = larger, size/1024
		}
	}
	return fmt.Sprintf("larger than %d %s, which is the most that is read of such a file", size, unit)
}

// ReadFile reads a file of at most most bytes, decompressed.
func ReadFile(name string, most int64) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return ReadOpen(f, most)
}

// ReadOpen reads an open file of at most most bytes, decompressed.
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

// Limit passes on at most most bytes of r, and fails with a [LimitError] if there are more.
func Limit(r io.Reader, most int64) *LimitedReader { return &LimitedReader{r, most, most} }

// LimitedReader reads up to a limit.
type LimitedReader struct {
	from       io.Reader
	left, most int64
}

// Again resets the limit, counting from here.
func (l *LimitedReader) Again() { l.left = l.most }

// Read reads at most one byte more than is left, to detect whether there is one.
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
