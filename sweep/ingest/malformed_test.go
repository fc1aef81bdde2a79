package ingest

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// fixture is a result file of testdata.
type fixture struct {
	name string
	data []byte
}

// fixtures are the files of testdata that are read as results.
func fixtures(t testing.TB) (all []fixture) {
	t.Helper()
	err := filepath.WalkDir("testdata", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if err == nil && !strings.HasSuffix(path, "README.md") {
			if _, failed := Read("f", data); failed == nil {
				all = append(all, fixture{path, data})
			}
		}
		return err
	})
	if err != nil || len(all) < 30 {
		t.Fatalf("%d fixtures, %v", len(all), err)
	}
	return all
}
