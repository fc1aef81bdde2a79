package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"planner/internal/evidence/must"
	"planner/sweep"
)

// outputs holds what is written to its schemas, in which further keys are errors.
type outputs struct {
	schemas map[string]*jsonschema.Schema
	mu      sync.Mutex
	// checked counts what was held to each schema, wrong is what did not keep to it.
	// Both are guarded by mu.
	checked map[string]int
	wrong   error
}

func newOutputs() *outputs {
	o := &outputs{schemas: map[string]*jsonschema.Schema{}, checked: map[string]int{}}
	for name, d := range schemas() {
		s := must.Get(d.Schema())
		for _, of := range s["$defs"].(map[string]any) {
			if form := of.(map[string]any); form["properties"] != nil {
				form["additionalProperties"] = false
			}
		}
		text := must.Get(json.Marshal(s))
		value := must.Get(jsonschema.UnmarshalJSON(bytes.NewReader(text)))
		c := jsonschema.NewCompiler()
		c.DefaultDraft(jsonschema.Draft2020)
		must.OK(c.AddResource(name, value))
		o.schemas[name] = must.Get(c.Compile(name))
	}
	return o
}

// check holds a document to a schema.
func (o *outputs) check(name, where string, doc []byte) {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(doc))
	if err == nil {
		err = o.schemas[name].Validate(value)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.checked[name]++
	if err != nil {
		o.wrong = errors.Join(o.wrong, fmt.Errorf("%s is no %s: %w", where, name, err))
	}
}

// answers are the commands whose answers have a schema.
var answers = map[string]string{"plan": "plan", "estimate": "plan", "search": "search", "simulate": "measurement", "bench": "measurement", "fleet": "fleet"}

// checkFolders holds the files of all run folders below a folder to their schemas. A
// script may have damaged a journal, which is told by what reads it.
func (o *outputs) checkFolders(dir string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() != sweep.JournalFile && d.Name() != "plan.json" && d.Name() != storedFile {
			return err
		}
		data, err := os.ReadFile(path)
		folder, about, notRun := sweep.OpenFolder(filepath.Dir(path))
		if err != nil || notRun != nil {
			return err
		}
		switch d.Name() {
		case "plan.json":
			o.check("plan", path, data)
		case storedFile:
			var s stored
			if name := answers[about.Command]; name != "" && json.Unmarshal(data, &s) == nil {
				o.check(name, path, s.Answer)
			}
		default:
			if _, err := sweep.ReadJournal(folder.File(sweep.JournalFile)); err != nil {
				return nil
			}
			for line := range bytes.Lines(data) {
				if bytes.HasSuffix(line, []byte("\n")) {
					o.check("journal", path, line)
				}
			}
		}
		return nil
	})
}

// setUp holds what scripts leave behind to the schemas.
func (o *outputs) setUp(e *testscript.Env) {
	e.Defer(func() {
		if err := o.checkFolders(e.WorkDir); err != nil {
			o.mu.Lock()
			o.wrong = errors.Join(o.wrong, err)
			o.mu.Unlock()
		}
	})
}

// report tells what was wrong, and that there was something to look at.
func (o *outputs) report(t *testing.T) {
	if o.wrong != nil {
		t.Error(o.wrong)
	}
	t.Logf("held to their schemas: %v", o.checked)
}

// A schema is of what is written: a key of another kind, one that lacks and, where it is
// closed, one too many are errors of the key's name.
func TestSchemasRefuse(t *testing.T) {
	t.Parallel()
	doc := read(filepath.Join(finished().folder, "plan.json"))
	for _, c := range []struct{ old, new, want string }{
		{"", "", ""},
		{`"gpus_per_node": 8`, `"gpus_per_node": "8"`, "/engine/gpus_per_node"},
		{`"gpus_per_node": 8,`, ``, "gpus_per_node"},
		{`"gpus_per_node": 8`, `"gpus_per_node": 8, "spoons": 3`, "spoons"},
		{`"port": 8000`, `"port": null`, "/engine/port"},
	} {
		if !strings.Contains(doc, c.old) {
			t.Fatalf("no %s in the plan", c.old)
		}
		o := newOutputs()
		o.check("plan", "p", []byte(strings.Replace(doc, c.old, c.new, 1)))
		if (o.wrong == nil) != (c.want == "") || o.wrong != nil && !strings.Contains(o.wrong.Error(), c.want) {
			t.Errorf("%q for %q: %v, want %q", c.new, c.old, o.wrong, c.want)
		}
	}
}

// TestSchemasDescribe wants words for each key of a schema, its own or those of its type.
func TestSchemasDescribe(t *testing.T) {
	for name, d := range schemas() {
		s := must.Get(d.Schema())
		for of, def := range s["$defs"].(map[string]any) {
			properties, _ := def.(map[string]any)["properties"].(map[string]any)
			for key, p := range properties {
				refers := strings.Contains(fmt.Sprint(p), "$ref")
				if said, _ := p.(map[string]any)["description"].(string); said == "" && !refers && !strings.HasPrefix(of, "fleet.") {
					t.Errorf("%s: nothing is said of %s in %s", name, key, of)
				}
			}
		}
	}
}
