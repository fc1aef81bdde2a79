// Package must ends a test whose preparation fails.
package must

import (
	"os"
	"path/filepath"
	"testing"
)

// Get is a value that comes without an error; with one it panics.
func Get[T any](v T, err error) T {
	OK(err)
	return v
}

// OK panics with an error.
func OK(err error) {
	if err != nil {
		panic(err)
	}
}

// File writes a file into a folder of its own and returns its path.
func File(t testing.TB, name, text string) (path string) {
	path = filepath.Join(t.TempDir(), name)
	OK(os.WriteFile(path, []byte(text), 0o600))
	return path
}
