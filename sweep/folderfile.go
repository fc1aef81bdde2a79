package sweep

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"planner/internal/input"
	"planner/internal/wire"
)

// File is the path of a file of the run.
func (f Folder) File(name string) string { return filepath.Join(f.Path, name) }

// Has reports whether the run has a file of that name.
func (f Folder) Has(name string) bool {
	_, err := os.Lstat(f.File(name))
	return err == nil
}

// Open opens a file of the run for reading.
func (f Folder) Open(name string) (*os.File, error) { return f.open(name, os.O_RDONLY) }

// open opens a plain file within the folder, whatever links there are in it. What prompts,
// addresses and logs tell is for its owner alone.
func (f Folder) open(name string, flag int) (*os.File, error) {
	root, err := os.OpenRoot(f.Path)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	if info, err := root.Lstat(name); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no plain file", f.File(name))
	}
	return root.OpenFile(name, flag, 0o600)
}

// Read reads a file of the run.
func (f Folder) Read(name string) ([]byte, error) {
	file, err := f.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := input.ReadOpen(file, input.Journal)
	if err == nil && filepath.Ext(name) == ".json" {
		err = input.CheckJSON(data, input.AnyValue, mostValues)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", f.File(name), err)
	}
	return data, nil
}

// ReadJSON reads a JSON document of the run into v.
func (f Folder) ReadJSON(name string, v any) error {
	data, err := f.Read(name)
	if err != nil {
		return err
	}
	if err := wire.Unmarshal(data, v); err != nil {
		return fmt.Errorf("%s: %w", f.File(name), err)
	}
	return nil
}

// mostValues bounds the values of a JSON document of a run.
const mostValues = 4_000_000

// temporary begins the names of files that are not written yet.
const temporary = ".tmp-"

// Write puts a file in place whole: written beside it, synced, renamed. Folders are made,
// but nothing is written where a link leads out of the run.
func (f Folder) Write(name string, data []byte) error {
	if err := f.write(name, data); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

func (f Folder) write(name string, data []byte) error {
	root, err := os.OpenRoot(f.Path)
	if err != nil {
		return err
	}
	defer root.Close()
	dir := filepath.Dir(name)
	if err := root.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	beside := filepath.Join(dir, temporary+rand.Text())
	file, err := root.OpenFile(beside, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	err = errors.Join(err, file.Sync(), file.Close())
	if err == nil {
		err = root.Rename(beside, name)
	}
	if err != nil {
		err = errors.Join(err, root.Remove(beside))
	}
	return err
}

// Tidy removes what a process that was killed left half written. Nobody else may write,
// but for the processes that run the parts of the run.
func (f Folder) Tidy() error {
	return f.Clear(".", func(name string) bool {
		return strings.HasPrefix(filepath.Base(name), temporary) && !strings.HasPrefix(name, PartsDir+"/")
	})
}

// Clear removes the files at or below a name for which unwanted is true; it need not exist.
func (f Folder) Clear(name string, unwanted func(name string) bool) error {
	root, err := os.OpenRoot(f.Path)
	if err != nil {
		return err
	}
	defer root.Close()
	err = fs.WalkDir(root.FS(), name, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() && unwanted(path) {
			err = root.Remove(path)
		}
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// WriteFrom puts a file in place that fill writes.
func (f Folder) WriteFrom(name string, fill func(io.Writer) error) error {
	var b bytes.Buffer
	if err := fill(&b); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return f.Write(name, b.Bytes())
}

// WriteJSON puts a JSON document in place, indented for readers.
func (f Folder) WriteJSON(name string, v any) error {
	data, err := wire.Print(v)
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return f.Write(name, append(data, '\n'))
}
