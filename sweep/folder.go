package sweep

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
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
	// Build tells builds of one version apart: the revision of the source, where it is known.
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

// staged begins the names of folders that are no run yet, and of none but planner's.
const staged = ".planner-new-"

// dropStaged removes what processes left that were killed while they made a run folder,
// which takes a moment.
func dropStaged(dir string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && e.IsDir() && strings.HasPrefix(e.Name(), staged) && time.Since(info.ModTime()) > time.Hour {
			os.RemoveAll(filepath.Join(dir, e.Name()))
		}
	}
}

// slug keeps what is safe in a file name.
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

// OpenFolder opens a run folder that exists. One that holds links is refused: what they
// point to is not the run's to read or to write.
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
