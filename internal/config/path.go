package config

import (
	"os"
	"path/filepath"
)

// pathname is the name of a file. In a file it is relative to that file, from the
// command line to the current folder; in a Config it is absolute, so that a
// printed configuration can be read from anywhere.
type pathname struct{ p *string }

func (v pathname) take(n node) {
	n = n.only()
	if s, ok := readWord(n, nil); ok {
		*v.p = n.r.resolve(n.path, s)
	}
}

func (v pathname) text() string { return quote(*v.p) }

// resolve makes a file name absolute.
func (r *reader) resolve(key, name string) string {
	if name == "" {
		return ""
	}
	if r.place(key).flag == "" {
		name = under(r.base, name)
	}
	if abs, err := filepath.Abs(name); err == nil {
		return abs
	}
	return name
}

func under(folder, name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(folder, name)
}

// open opens a file that a key names, or notes why it cannot.
func (n node) open(name, want string) (*os.File, bool) {
	f, err := os.Open(name)
	if err == nil {
		var info os.FileInfo
		if info, err = f.Stat(); err == nil && !info.IsDir() {
			return f, true
		}
		f.Close()
		if err == nil {
			n.refuse("%s is a folder, want %s", name, want)
			return nil, false
		}
	}
	n.refuse("%s cannot be read: %s, want %s", name, reason(err), want)
	return nil, false
}
