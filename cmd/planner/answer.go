package main

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"planner/internal/engines"
	"planner/internal/progress"
	"planner/internal/report"
	"planner/internal/wire"
	"planner/plan/decide"
	"planner/sweep"
)

// storedFile holds the answer of a run that has ended.
const storedFile = "report.json"

// searchedFile holds what the searches of a plan found, for [program.planAgain].
const searchedFile = "searches.json"

// stored is the answer of a run that has ended, as --json prints it, as a document for
// all printers, and with its exit code.
type stored struct {
	ExitCode int `json:"exit_code"`
	// Journal is the size of the journal that it is the answer of, in bytes: to another
	// journal it says nothing.
	Journal int64           `json:"journal_bytes"`
	Answer  json.RawMessage `json:"answer"`
	Report  report.Document `json:"report"`
	// Files are the others that were written with it.
	Files []string `json:"files,omitempty"`
}

// conclude keeps and prints an answer, also that of a run which was interrupted.
func (p *program) conclude(c *cli.Context, r *run, answer sweep.Answer, err error) (why error) {
	defer func() { why = r.goesOn(why) }()
	interrupted := errors.Is(err, sweep.ErrInterrupted)
	if err != nil && !interrupted || answer.Value == nil {
		return err
	}
	if v, ok := answer.Value.(interface{ SetRun(map[string]any) }); ok && !r.started.IsZero() {
		v.SetRun(r.facts())
	}
	doc, problem := r.document(c.Context, answer, func() *progress.Display { return p.display(c, r) })
	if errors.Is(problem, sweep.ErrInterrupted) {
		interrupted, err, problem = true, errors.Join(err, problem), nil
	}
	if problem != nil {
		return problem
	}
	if r.folder != nil {
		if problem := p.keep(c, r, answer, doc, interrupted); problem != nil {
			return problem
		}
	}
	if problem = p.answer(c, answer.Value, doc); problem != nil || interrupted {
		return errors.Join(err, problem)
	}
	return ended(answer.State)
}

// keep writes the report of a run into its folder. The answer of one that was
// interrupted is not its last. What says that the run has ended is written last: a run
// that is cut before has all of its files made again.
func (p *program) keep(c *cli.Context, r *run, answer sweep.Answer, doc report.Document, interrupted bool) error {
	files, warnings, err := report.Files(doc)
	if err != nil {
		return err
	}
	p.warn(c, warnings)
	if err := writeAll(r.folder, files); err != nil {
		return err
	}
	// The report of an interrupted run may have had other plots.
	if err := r.folder.Clear("plots", func(name string) bool { return files[name] == nil }); err != nil || interrupted {
		return err
	}
	more, own := map[string]any{}, map[string]any{}
	if v, ok := answer.Value.(interface{ Files() map[string]any }); ok {
		own = v.Files()
	}
	if e, _ := experimentOf(r.cfg.Run.Command); e.csv != "" {
		more[e.csv] = doc.Data.CSV()
	}
	if s, ok := r.study.(decide.PlanStudy); ok {
		more[searchedFile] = s.Searched()
	}
	for _, files := range []map[string]any{more, own} { // plan.json behind the others
		if err := writeAll(r.folder, files); err != nil {
			return err
		}
	}
	data, err := wire.Print(answer.Value)
	if err != nil {
		return err
	}
	names := slices.AppendSeq(slices.AppendSeq(slices.Collect(maps.Keys(files)), maps.Keys(more)), maps.Keys(own))
	slices.Sort(names)
	return r.folder.WriteJSON(storedFile, stored{answer.State.ExitCode(), journalSize(r.folder), data, doc, names})
}

// writeAll writes files by their names: bytes as they are, all else as JSON.
func writeAll[T any](f *sweep.Folder, files map[string]T) error {
	for _, name := range slices.Sorted(maps.Keys(files)) {
		var err error
		switch content := any(files[name]).(type) {
		case []byte:
			err = f.Write(name, content)
		default:
			err = f.WriteJSON(name, content)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// journalSize is the size of the journal of a run in bytes, 0 where there is none.
func journalSize(f *sweep.Folder) int64 {
	info, err := os.Stat(f.File(sweep.JournalFile))
	if err != nil {
		return 0
	}
	return info.Size()
}

// document is the report of an answer, of one that is not the last the first word says so. A
// plan learns how its instances are started, and how they do in time unless it may still
// change. Where that replay is interrupted, the report is that of what is known so far.
func (r *run) document(ctx context.Context, answer sweep.Answer, display func() *progress.Display) (report.Document, error) {
	var stopped error
	for _, p := range plansOf(answer.Value) {
		if r.ground.Run != nil {
			cfg := r.cfg
			if p.Class != "" {
				cfg = cfg.Pool(p.Class)
			}
			engines.HandOver(cfg, p)
			if p.Class == "" && answer.State != sweep.Unfinished {
				p.InTime, stopped = inTime(ctx, r.cfg, p.Plan, display)
			}
		}
	}
	told, err := r.engines()
	if err != nil {
		return report.Document{}, err
	}
	doc, err := report.Build(answer.Value, told)
	if answer.State == sweep.Unfinished || stopped != nil {
		doc.Title = "Interrupted, so far: " + doc.Title
	}
	return doc, errors.Join(err, stopped)
}

func plansOf(answer any) []*decide.Planned {
	switch a := answer.(type) {
	case *decide.Planned:
		return append([]*decide.Planned{a}, a.Each...)
	case *decide.PoolsPlanned:
		return a.Each
	}
	return nil
}

// facts are what of an answer depends on clock and place.
func (r *run) facts() map[string]any {
	facts := map[string]any{"finished": time.Now().UTC().Format(time.RFC3339), "seconds": time.Since(r.started).Seconds(), "version": version}
	if r.folder != nil {
		facts["folder"] = r.folder.Path
	}
	return facts
}
