// Command random tries the search for the maximum rate on random configurations of
// the simulated engine, each against its true maximum rate from long runs.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"time"

	"planner/internal/parallel"
	"planner/model"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	n := flag.Int("n", 60, "number of instances")
	seed := flag.Uint64("seed", 1, "seed of the instances")
	only := flag.Int("only", -1, "print the search of this instance trial by trial, and its configuration")
	stored := flag.String("known", "", "file with instances and their truths, such as testdata/known.json, instead of random ones")
	odd := flag.Int("servers", 0, "so many searches of each of several servers that have little of an engine instead")
	file := flag.String("truths", "", "file that keeps truths between runs")
	jobs := flag.Int("jobs", runtime.NumCPU(), "instances at a time")
	flag.Parse()
	runtime.GOMAXPROCS(max(*jobs, 1))
	debug.SetGCPercent(400) // as the command does
	if *odd > 0 {
		servers(os.Stdout, *odd)
		return nil
	}
	dir, err := os.MkdirTemp("", "planner-random-")
	if err != nil {
		return err
	}
	catalog, err := model.NewCatalog()
	if err != nil {
		return err
	}
	truths, err := readStore(*file)
	if err != nil {
		return err
	}
	s := study(func(i int) (*instance, truth, error) {
		return truths.get(fmt.Sprintf("%d: %d of seed %d", truthVersion, i, *seed), dir, func() draft { return drawn(catalog, *seed, i) })
	})
	if *stored != "" {
		all, err := readKnown(*stored)
		if err != nil {
			return err
		}
		*n = len(all)
		s = func(i int) (*instance, truth, error) {
			in, err := all[i].instance(dir)
			return in, all[i].Truth, err
		}
	}
	if *only >= 0 {
		_, err := s.answer(*only, os.Stdout)
		return err
	}
	defer os.RemoveAll(dir)
	return s.all(*n)
}

// truthVersion changes what truths are kept under when they are found in another way.
const truthVersion = 4

// study gives instances by their numbers, with their truths.
type study func(i int) (*instance, truth, error)

// answer searches an instance and compares with its truth. Where its trials are shown,
// its configuration is printed, and stays to be searched by hand.
func (s study) answer(i int, show io.Writer) (*answer, error) {
	in, t, err := s(i)
	if err != nil {
		return nil, fmt.Errorf("instance %d: %w", i, err)
	}
	fmt.Fprintf(show, "%s\n%v\n%+v\n", in.cfg.TOML(), in, t)
	a, err := in.answer(t, show)
	if err != nil {
		return nil, fmt.Errorf("instance %d: %w", i, err)
	}
	fmt.Println(a.row(i))
	return a, nil
}

// all prints a row an instance, as they come, and the summary.
func (s study) all(n int) error {
	start := time.Now()
	answers := make([]*answer, n)
	fmt.Println(rowHead)
	err := parallel.Do(n, func(i int) (err error) {
		answers[i], err = s.answer(i, io.Discard)
		return err
	})
	summarize(os.Stdout, slices.DeleteFunc(answers, func(a *answer) bool { return a == nil }))
	fmt.Fprintln(os.Stderr, time.Since(start).Round(time.Second))
	return err
}
