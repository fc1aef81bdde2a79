package ingest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"planner/internal/list"
	"planner/internal/note"
	"planner/sweep/measure"
)

// Import holds the load points of result files, and the run folder they went into.
type Import struct {
	Folder  string                `json:"folder"`
	Sources []ImportedFile        `json:"sources"`
	Points  []measure.Measurement `json:"points"`
	note.Warnings
	// Doubts are the warnings of the formats, without the names of the files, and of
	// what was not read.
	Doubts note.Notes `json:"-"`
}

// ImportedFile is a file that was read.
type ImportedFile struct {
	File   string `json:"file"`
	Format string `json:"format"`
	Points int    `json:"points"`
}

// ReadFiles reads result files, and folders of them whole. Every load point carries what its
// format means by its figures as warnings, so that they stay with it.
func ReadFiles(paths []string) (*Import, error) {
	all := &Import{Warnings: note.Notes{}.Warnings()}
	for _, path := range paths {
		info, err := os.Stat(path)
		if err == nil && info.IsDir() {
			err = all.readFolder(path)
		} else if err == nil {
			var r *Results
			if r, err = readFile(path); err == nil {
				all.add(path, r)
			}
		}
		if err != nil {
			return nil, err
		}
	}
	closed := list.Count(all.Points, func(m measure.Measurement) bool { return m.Trial.Closed() })
	open := len(all.Points) - closed
	all.Warnings.AddIf(open > 0 && closed > 0, note.OpenAndClosed, open, closed)
	return all, nil
}

func (all *Import) add(file string, r *Results) {
	all.Sources = append(all.Sources, ImportedFile{file, r.Format, len(r.Measurements)})
	all.Doubts = append(all.Doubts, r.Warnings...)
	for _, w := range r.Warnings {
		all.Warnings.Add(note.OfFile, file, r.Format, w)
	}
	for _, m := range r.Measurements {
		m.Trial.Number = len(all.Points) + 1
		m.Trial.Why = fmt.Sprintf("imported from %s (%s)", filepath.Base(file), r.Format)
		m.Warnings = append(slices.Clone(m.Warnings), r.Warnings...)
		all.Points = append(all.Points, m)
	}
}

// Note is the configuration of an imported run: nothing is known of it but where
// it came from.
func (all *Import) Note() []byte {
	var b strings.Builder
	b.WriteString("# Imported results. What served them is not known here.\n")
	for _, s := range all.Sources {
		fmt.Fprintf(&b, "# %q: %d load points, %s\n", s.File, s.Points, s.Format)
	}
	return []byte(b.String())
}
