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

// storedFile holds the answer of a finished run.
const storedFile = "report.json"

// searchedFile holds the results of a plan's searches, for [program.planAgain].
const searchedFile = "searches.json"

// stored is the answer of a finished run: as printed by --json, as a document for all printers, and its exit
// code.
type stored struct {
	ExitCode int `json:"exit_code"`
	// Journal is the size in bytes of the journal from which the answer was made; it does not apply to another
	// journal.
	Journal int64           `json:"journal_bytes"`
	Answer  json.RawMessage `json:"answer"`
	Report  report.Document `json:"report"`
	// Files are the other files written with it.
	Files []string `json:"files,omitempty"`
}

// conclude stores and prints an answer, including that of an interrupted run.
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

// keep writes the report of a run into its folder; the answer of an interrupted run is not stored, as it is not
// final. The file that marks the run as finished is written last: for a run that is cut off before, all files
// are made again.
func (p *program) keep(c *cli.Context, r *run, answer sweep.Answer, doc report.Document, interrupted bool) error {
	files, warnings, err := report.Files(doc)
	if err != nil {
		return err
	}
	p.warn(c, warnings)
	if err := writeAll(r.folder, files); err != nil {
		return err
	}
	// An earlier report of the interrupted run may have had other plots.
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
	for _, files := range []map[string]any{more, own} { // plan.json after the others
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

// writeAll writes files by name: byte slices as they are, everything else as JSON.
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

// journalSize returns the size of a run's journal in bytes, 0 without one.
func journalSize(f *sweep.Folder) int64 {
	info, err := os.Stat(f.File(sweep.JournalFile))
	if err != nil {
		return 0
	}
	return info.Size()
}

// document returns the report of an answer; its title says if the answer is not final. A plan gets the start
// command of its instances and, if it is final, the replay of its fleet over time. If that replay is
// interrupted, the report contains what is known so far.
func (r *run) document(ctx context.Context, answer sweep.Answer, display func() *progress.Display) (report.Document, error) {
	var stopped error
	for _, p := range plansOf(answer.Value) {
		if r.ground.Run != nil {
			engines.HandOver(r.cfg, p)
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

// facts are the parts of an answer that depend on time and machine.
func (r *run) facts() map[string]any {
	facts := map[string]any{"finished": time.Now().UTC().Format(time.RFC3339), "seconds": time.Since(r.started).Seconds(), "version": version}
	if r.folder != nil {
		facts["folder"] = r.folder.Path
	}
	return facts
}
