package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"testing"

	"planner/internal/evidence/must"
	"planner/internal/parallel"
)

var (
	redo = flag.Bool("redo", false, "find the truths of testdata again, as a change of the simulated engine needs it")
)

const knownFile = "testdata/known.json"

// TestKnownInstances searches the maximum rates of instances whose truths are stored.
func TestKnownInstances(t *testing.T) {
	if testing.Short() {
		t.Skip("searches 49 maximum rates")
	}
	all := must.Get(readKnown(knownFile))
	if *redo {
		findAgain(t, all)
	}
	answers := make([]*answer, len(all))
	dir := t.TempDir()
	t.Run("searches", func(t *testing.T) {
		for i := range all {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				in, err := all[i].instance(dir)
				if err != nil {
					t.Fatal(err)
				}
				if answers[i], err = in.answer(all[i].Truth, io.Discard); err != nil {
					t.Fatal(err)
				}
				t.Log(answers[i].row(i))
			})
		}
	})
	if slices.Contains(answers, nil) {
		return
	}
	var table bytes.Buffer
	summarize(&table, answers)
	t.Log(table.String())
	assess(t, tallyOf(answers))
}

// assess asks of answers what they owe, with room for the chance of 51.
func assess(t *testing.T, all tally) {
	atLeast := func(what string, got, want float64) {
		t.Helper()
		if !(got >= want) {
			t.Errorf("%s: %.3f, want at least %g", what, got, want)
		}
	}
	atMost := func(what string, got, want float64) {
		t.Helper()
		if !(got <= want) {
			t.Errorf("%s: %.3f, want at most %g", what, got, want)
		}
	}
	atLeast("share of intervals that hold the truth", all.covered, 0.85)
	atLeast("share of safe rates that are", all.safe, 0.9)
	atMost("largest safe rate over the truth", all.highest, 1.1)
	atMost("median error, in the logarithm", quantile(all.sizes, 0.5), 0.04)
	atMost("95 % quantile of the error", quantile(all.sizes, 0.95), 0.15)
	atMost("maximum rates without an answer", float64(all.silent), 0)
	atMost("answers where no rate meets the limits", float64(all.invented), 0)
}

// findAgain stores the truths of all anew.
func findAgain(t *testing.T, all []known) {
	dir := t.TempDir()
	err := parallel.Do(len(all), func(i int) error {
		in, err := all[i].instance(dir)
		if err == nil {
			all[i].Truth = in.truth()
			t.Logf("%d: %+v", i, all[i].Truth)
		}
		return err
	})
	must.OK(err)
	var lines [][]byte // one an instance
	for i := range all {
		lines = append(lines, must.Get(json.Marshal(&all[i])))
	}
	must.OK(os.WriteFile(knownFile, fmt.Appendf(nil, "[\n%s\n]\n", bytes.Join(lines, []byte(",\n"))), 0o600))
}
