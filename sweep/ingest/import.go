package ingest

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"planner/internal/list"
	"planner/internal/note"
	"planner/sweep/measure"
)

// resultKinds are the extensions of result files, most informative first.
var resultKinds = []string{".json", ".yaml", ".yml", ".jsonl", ".txt", ".csv"}

// kindOf returns the index in resultKinds of a file's extension, less compression; -1 if none.
func kindOf(path string) int {
	bare := strings.TrimSuffix(strings.TrimSuffix(path, ".gz"), ".zst")
	return slices.Index(resultKinds, filepath.Ext(bare))
}

// readFolder reads every result in a folder and its subfolders, each once: tools write the same
// results into several files. Files that are not used are named.
func (all *Import) readFolder(folder string) error {
	files, err := all.resultsIn(folder)
	if err != nil {
		return err
	}
	// If the load is known in one file, a file without it is taken to be of the same run.
	known := func(r *Results) bool { return slices.ContainsFunc(r.Measurements, loaded) }
	some := slices.ContainsFunc(files, known)
	var kept []*Results
	for _, f := range files {
		twin := repeated(kept, f)
		switch {
		case twin != "":
			all.leave(f.File, "the same results as "+twin)
		case some && !known(f):
			all.leave(f.File, "it does not tell the load, and others in the folder do")
		default:
			kept = append(kept, f)
		}
	}
	if len(kept) == 0 {
		why := append([]string{"the folder holds no result that is read"}, all.Warnings.Texts...)
		return &fileError{File: folder, What: strings.Join(why, "; ")}
	}
	slices.SortFunc(kept, func(a, b *Results) int { return strings.Compare(a.File, b.File) })
	for _, r := range kept {
		all.add(r)
	}
	return nil
}

func (all *Import) leave(path, why string) {
	all.Warnings.Add(note.New(note.NotRead, path, why))
	all.Doubts = append(all.Doubts, note.New(note.NotRead, path, why))
}

// resultsIn reads the result files of a folder, most informative first.
func (all *Import) resultsIn(folder string) (files []*Results, err error) {
	others := 0
	err = filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		kind := kindOf(path)
		switch {
		case err != nil:
			return err
		case d.IsDir():
			return nil
		case kind < 0 || !d.Type().IsRegular():
			others++
			return nil
		case isWarmUp(folder, path):
			all.leave(path, "a warm-up, which is not measured")
			return nil
		}
		r, err := readFile(path)
		if err != nil {
			all.leave(path, shortReason(err))
			return nil
		}
		files = append(files, r)
		return nil
	})
	if others > 0 {
		all.leave(fmt.Sprintf("%d other files in %s", others, folder), "none ends in "+strings.Join(resultKinds, ", "))
	}
	slices.SortStableFunc(files, func(a, b *Results) int { return kindOf(a.File) - kindOf(b.File) })
	return files, err
}

// shortReason says why a file was not read, without its name and the list of formats.
func shortReason(err error) string {
	at, ok := errors.AsType[*fileError](err)
	switch {
	case !ok:
		return err.Error()
	case strings.HasPrefix(at.What, unknownResults):
		return unknownResults
	case at.Field != "":
		return at.Field + ": " + at.What
	}
	return at.What
}

// isWarmUp reports whether a file of a folder, or a folder around it, is named a warm-up.
func isWarmUp(folder, path string) bool {
	within, _ := filepath.Rel(folder, path)
	return slices.ContainsFunc(strings.FieldsFunc(within, func(r rune) bool { return strings.ContainsRune(`/\._`, r) }),
		func(name string) bool { return strings.EqualFold(name, "warmup") })
}

func loaded(m measure.Measurement) bool { return m.Trial.Rate > 0 || m.Trial.Concurrency > 0 }

// repeated names the file, the first of several, that already has the results of another from the
// same tool; empty if the latter has anything new.
func repeated(kept []*Results, r *Results) (twin string) {
	for _, m := range r.Measurements {
		i := slices.IndexFunc(kept, func(k *Results) bool {
			other := len(k.models) > 0 && len(r.models) > 0 && !slices.ContainsFunc(r.models, func(name string) bool { return slices.Contains(k.models, name) })
			return k.Format == r.Format && !other && slices.ContainsFunc(k.Measurements, func(k measure.Measurement) bool { return sameRun(&k, &m) })
		})
		if i < 0 {
			return ""
		}
		twin = cmp.Or(twin, kept[i].File)
	}
	return twin
}

// sameRun reports whether two measurements are of the same run, allowing for rounding by tools.
func sameRun(a, b *measure.Measurement) bool {
	counted := a.Requests > 0 && b.Requests > 0
	if counted && (a.Requests != b.Requests || a.Failed != b.Failed) {
		return false
	}
	if loaded(*a) && loaded(*b) && (math.Abs(a.Trial.Rate-b.Trial.Rate) > 0.01*a.Trial.Rate || a.Trial.Concurrency != b.Trial.Concurrency) {
		return false
	}
	return near(a.TTFT.Mean, b.TTFT.Mean) && near(a.TTFT.P99, b.TTFT.P99) && near(a.E2E.Mean, b.E2E.Mean) && near(a.E2E.P99, b.E2E.P99)
}

// near reports whether two times are equal but for rounding by tools; an unknown time is near every
// other.
func near(a, b time.Duration) bool {
	return a < 0 || b < 0 || math.Abs(float64(a-b)) <= 1e-3*float64(max(a, b))
}

// Import holds the load points of result files, and the run folder they went into.
type Import struct {
	Folder  string                `json:"folder"`
	Sources []*Results            `json:"sources"`
	Points  []measure.Measurement `json:"points"`
	note.Warnings
	// Doubts are the warnings of the formats, without the file names, and those about what was not
	// read.
	Doubts note.Notes `json:"-"`
}

// ReadFiles reads result files, and folders of them. Every load point carries, as warnings, what
// its format means by its figures, so that these stay with it.
func ReadFiles(paths []string) (*Import, error) {
	all := &Import{}
	for _, path := range paths {
		info, err := os.Stat(path)
		if err == nil && info.IsDir() {
			err = all.readFolder(path)
		} else if err == nil {
			var r *Results
			if r, err = readFile(path); err == nil {
				if twin := repeated(all.Sources, r); twin != "" {
					all.leave(path, "the same results as "+twin)
				} else {
					all.add(r)
				}
			}
		}
		if err != nil {
			return nil, err
		}
	}
	all.warn()
	models := slices.Concat(list.Map(all.Sources, func(r *Results) []string { return r.models })...)
	slices.Sort(models)
	if models = slices.Compact(models); len(models) > 1 {
		names := strings.Join(models, ", ")
		all.Warnings.Add(note.New(note.ModelsDiffer, names))
		all.Doubts = append(all.Doubts, note.New(note.ModelsDiffer, names))
		for i := range all.Points {
			all.Points[i].Warnings = append(all.Points[i].Warnings, note.New(note.ModelsDiffer, names))
		}
	}
	closed := list.Count(all.Points, func(m measure.Measurement) bool { return m.Trial.Closed() })
	open := len(all.Points) - closed
	all.Warnings.Add(note.If(open > 0 && closed > 0, note.OpenAndClosed, open, closed)...)
	return all, nil
}

func (all *Import) add(r *Results) {
	all.Sources = append(all.Sources, r)
	all.Doubts = append(all.Doubts, r.Warnings...)
	for _, m := range r.Measurements {
		m.Trial.Number = len(all.Points) + 1
		m.Trial.Why = fmt.Sprintf("imported from %s (%s)", filepath.Base(r.File), r.Format)
		m.Warnings = append(slices.Clone(m.Warnings), r.Warnings...)
		all.Points = append(all.Points, m)
	}
}

// warn adds a warning that several files of a format share only once.
func (all *Import) warn() {
	for i, r := range all.Sources {
		for _, w := range r.Warnings {
			same := func(other *Results) bool {
				return other.Format == r.Format && slices.Contains(other.Warnings.Texts(), w.String())
			}
			if slices.ContainsFunc(all.Sources[:i], same) {
				continue
			}
			files := r.File
			if n := list.Count(all.Sources, same); n > 1 {
				files = fmt.Sprintf("%s and %d more", files, n-1)
			}
			all.Warnings.Add(note.New(note.OfFile, files, r.Format, w))
		}
	}
}

// Note returns the configuration of an imported run: nothing is known about it except where it came
// from.
func (all *Import) Note() []byte {
	var b strings.Builder
	b.WriteString("# Imported results. What served them is not known here.\n")
	for _, s := range all.Sources {
		fmt.Fprintf(&b, "# %q: %d load points, %s\n", s.File, s.Points, s.Format)
	}
	return []byte(b.String())
}
