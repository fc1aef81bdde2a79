package config

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"planner/internal/evidence/must"
	"planner/model"
)

// FuzzLoad gives a configuration or problems, each on one line with a place, and
// what loads can be printed and loaded again. bench asks for the configuration of that
// command, and not for a plan's.
func FuzzLoad(f *testing.F) {
	archive, whole := wrongConfigurations()
	for _, bench := range []bool{false, true} {
		for _, file := range archive.Files {
			if !strings.HasSuffix(file.Name, ".want") {
				f.Add(whole(file), "demand.rate", "7", bench)
			}
		}
		for _, text := range variants {
			f.Add(text, "slo.ttft.p99.9", "1s", bench)
		}
	}
	catalog := must.Get(model.NewCatalog())
	folder := f.TempDir()
	f.Fuzz(func(t *testing.T, text, key, value string, bench bool) {
		name, need := filepath.Join(folder, "p.toml"), For("plan")
		if bench {
			need = For("bench")
		}
		must.OK(os.WriteFile(name, []byte(text), 0o600))
		first, err := LoadWith(catalog, name, []Override{{Key: key, Value: value}}, need)
		if err != nil {
			wellFormed(t, err)
			return
		}
		must.OK(os.WriteFile(name, first.TOML(), 0o600))
		second, err := LoadWith(catalog, name, nil, need)
		if err != nil {
			t.Fatalf("printed\n%sdoes not load: %v", first.TOML(), err)
		}
		first.Warnings, second.Warnings = nil, nil // which also say what was mended
		if !reflect.DeepEqual(first, second) {
			t.Fatalf("printed\n%sloads as\n%+v, want\n%+v", first.TOML(), second, first)
		}
	})
}

// wellFormed checks that an error is a list of problems, one a line.
func wellFormed(t *testing.T, err error) {
	t.Helper()
	var problems Problems
	if !errors.As(err, &problems) || len(problems) == 0 {
		t.Fatalf("error without problems: %v", err)
	}
	for i, p := range problems {
		if strings.ContainsAny(p.String(), "\n\r") || p.at.String() == "" || p.Text == "" {
			t.Fatalf("problem %q", p)
		}
		if i > 0 && comparePlaces(problems[i-1].at, p.at) > 0 {
			t.Fatalf("problems out of order: %v", err)
		}
	}
}
