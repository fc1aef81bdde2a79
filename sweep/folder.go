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
	"time"

	"planner/internal/input"
	"planner/internal/wire"
)

// Folder is a run folder: the configuration as resolved, the journal and
// everything derived from them.
type Folder struct{ Path string }

// Names of the files of a run folder.
const (
	ConfigFile  = "config.toml"
	JournalFile = "journal.jsonl"
	AboutFile   = "run.json"
)

// About says how a run was started, so that it can be resumed.
type About struct {
	Command string   `json:"command"`
	Args    []string `json:"args"`
	Version string   `json:"version"`
	// Build identifies the build of a version: the revision of the source, where it is known.
	Build   string    `json:"build,omitempty"`
	Started time.Time `json:"started"`
}

// NewFolder makes a run folder under dir whose name begins with the time and
// has not been used before.
func NewFolder(dir, label string, about About, files map[string][]byte) (Folder, error) {
	name := about.Started.UTC().Format("20060102T150405Z")
	if label = slug(label); label != "" {
		name += "-" + label
	}
	for n := 1; ; n++ {
		path := filepath.Join(dir, name)
		if n > 1 {
			path = fmt.Sprintf("%s-%d", path, n)
		}
		if f, err := CreateFolder(path, about, files); !errors.Is(err, fs.ErrExist) {
			return f, err
		}
	}
}

// CreateFolder makes a run folder of exactly this name, which must not exist. It appears
// whole, with these files in it, or not at all.
func CreateFolder(path string, about About, files map[string][]byte) (Folder, error) {
	if _, err := os.Lstat(path); err == nil {
		return Folder{}, fmt.Errorf("make run folder: %s: %w, and a run is never written over", path, fs.ErrExist)
	}
	staging, err := stage(filepath.Dir(path), about, files)
	if err != nil {
		return Folder{}, err
	}
	defer os.RemoveAll(staging)
	if err := os.Rename(staging, path); err != nil {
		return Folder{}, fmt.Errorf("make run folder: %w", err)
	}
	return Folder{path}, nil
}

// stage writes the files that a run folder begins with into a hidden folder
// beside it, so that the run appears whole or not at all.
func stage(dir string, about About, files map[string][]byte) (string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("make run folder: %w", err)
	}
	dropStaged(dir)
	path, err := os.MkdirTemp(dir, staged)
	if err != nil {
		return "", fmt.Errorf("make run folder: %w", err)
	}
	f := Folder{path}
	err = f.WriteJSON(AboutFile, about)
	for name, data := range files {
		err = errors.Join(err, f.Write(name, data))
	}
	if err != nil {
		os.RemoveAll(path)
		return "", err
	}
	return path, nil
}

// staged begins the names of folders that are not runs yet; nothing else has such names.
const staged = ".planner-new-"

// dropStaged removes folders left by processes that were killed while they made a run folder, which
// takes a moment: those older than an hour.
func dropStaged(dir string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && e.IsDir() && strings.HasPrefix(e.Name(), staged) && time.Since(info.ModTime()) > time.Hour {
			os.RemoveAll(filepath.Join(dir, e.Name()))
		}
	}
}

// slug keeps what is safe in a file name, in lower case.
func slug(s string) string {
	return strings.Trim(strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '.', r == '-':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		}
		return '-'
	}, s), "-.")
}

// OpenFolder opens a run folder that exists. One that holds links is refused: what they point to
// does not belong to the run.
func OpenFolder(path string) (Folder, About, error) {
	f := Folder{path}
	var about About
	if err := f.ReadJSON(AboutFile, &about); err != nil {
		return Folder{}, about, fmt.Errorf("%s is no run folder: %w", path, err)
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return Folder{}, about, err
	}
	for _, e := range entries {
		if !e.IsDir() && !e.Type().IsRegular() {
			return Folder{}, about, fmt.Errorf("%s is neither a folder nor a plain file: a run folder holds nothing else", f.File(e.Name()))
		}
	}
	return f, about, nil
}

// File is the path of a file of the run.
func (f Folder) File(name string) string { return filepath.Join(f.Path, name) }

// Has reports whether the run has a file of that name.
func (f Folder) Has(name string) bool {
	_, err := os.Lstat(f.File(name))
	return err == nil
}

// Open opens a file of the run for reading.
func (f Folder) Open(name string) (*os.File, error) { return f.open(name, os.O_RDONLY) }

// open opens a plain file within the folder; no link leads out of it. Prompts, addresses and logs
// are for its owner alone.
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

// temporary begins the names of files that are not complete yet.
const temporary = ".tmp-"

// Write writes a file whole: beside its place, synced, then renamed. Folders are made, but nothing
// is written where a link leads out of the run.
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

// Tidy removes what a process that was killed left half written. Nobody else may be writing, except
// the processes that run the parts of the run.
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
	return IgnoreMissing(err)
}

// IgnoreMissing returns the error of reading a file that need not exist: nil if it does not.
func IgnoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// WriteFrom writes the file that fill produces.
func (f Folder) WriteFrom(name string, fill func(io.Writer) error) error {
	var b bytes.Buffer
	if err := fill(&b); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return f.Write(name, b.Bytes())
}

// WriteJSON writes a JSON document, indented for readers.
func (f Folder) WriteJSON(name string, v any) error {
	data, err := wire.Print(v)
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return f.Write(name, append(data, '\n'))
}
