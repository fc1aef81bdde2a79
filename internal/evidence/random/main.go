// Command random tries the search for the maximum rate on random configurations of
// the simulated engine, each against its true maximum rate from long runs.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"sync"
	"time"

	"planner/model"
)

// study holds what is drawn and where truths are kept.
type study struct {
	catalog *model.Catalog
	seed    uint64
	truths  truths
}

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
	list := flag.Bool("listed", false, "the instances that searches once answered wrongly instead of random ones")
	odd := flag.Int("servers", 0, "so many searches of each of several servers that have little of an engine instead")
	file := flag.String("truths", "", "file that keeps truths between runs")
	jobs := flag.Int("jobs", runtime.NumCPU(), "instances at a time")
	flag.Parse()
	if *odd > 0 {
		servers(os.Stdout, *odd, *jobs)
		return nil
	}
	dir, err := os.MkdirTemp("", "planner-random-")
	if err != nil {
		return err
	}
	s := study{seed: *seed, truths: truths{file: *file, of: map[string]truth{}}}
	if err := s.truths.read(); err != nil {
		return err
	}
	if s.catalog, err = model.NewCatalog(); err != nil {
		return err
	}
	draw := func(i int) (*instance, error) { return drawn(s.catalog, s.seed, i).instance(dir) }
	if *list {
		all, err := listed()
		if err != nil {
			return err
		}
		*n, draw = len(all), func(i int) (*instance, error) { return all[i].instance(dir) }
	}
	if *only >= 0 {
		return s.trace(*only, draw)
	}
	defer os.RemoveAll(dir)
	return s.all(*n, *jobs, draw)
}

// trace prints one instance, which stays to be searched by hand.
func (s *study) trace(i int, draw func(int) (*instance, error)) error {
	in, err := draw(i)
	if err != nil {
		return err
	}
	os.Stdout.Write(in.cfg.TOML())
	t, err := s.truths.get(in)
	if err != nil {
		return err
	}
	fmt.Printf("\n%v\n", in)
	r, err := in.search(os.Stdout)
	a := compared(r, t, 0)
	fmt.Printf("%s\n%+v\n", a.row(i, in), t)
	return err
}

// all prints a row an instance, as they come, and the summary.
func (s *study) all(n, jobs int, draw func(int) (*instance, error)) error {
	start := time.Now()
	answers := make([]*answer, n)
	kinds := make([]*instanceKinds, n)
	errs := make([]error, n)
	var print sync.Mutex
	fmt.Println(rowHead)
	atOnce(n, jobs, func(i int) {
		in, err := draw(i)
		if err != nil {
			errs[i] = fmt.Errorf("instance %d: %w", i, err)
			return
		}
		t, err := s.truths.get(in)
		if err != nil {
			errs[i] = err
			return
		}
		a, err := in.answer(t)
		answers[i], errs[i] = &a, err
		kinds[i] = &instanceKinds{in.arrivals, in.shape}
		print.Lock()
		defer print.Unlock()
		fmt.Println(a.row(i, in))
	})
	summarize(os.Stdout, answers, kinds)
	fmt.Fprintln(os.Stderr, time.Since(start).Round(time.Second))
	return errors.Join(errs...)
}

// atOnce calls f for 0 to n-1, so many at a time.
func atOnce(n, jobs int, f func(int)) {
	var wait sync.WaitGroup
	slots := make(chan struct{}, max(jobs, 1))
	for i := range n {
		slots <- struct{}{}
		wait.Go(func() {
			defer func() { <-slots }()
			f(i)
		})
	}
	wait.Wait()
}

// truths keeps truths between runs, in a file if it has a name.
type truths struct {
	sync.Mutex

	file string
	of   map[string]truth
}

func (t *truths) read() error {
	data, err := os.ReadFile(t.file)
	if t.file == "" || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(data, &t.of)
}

// get is the truth of an instance, computed where it is not known yet.
func (t *truths) get(in *instance) (truth, error) {
	t.Lock()
	known, ok := t.of[in.draft.key()]
	t.Unlock()
	if ok {
		return known, nil
	}
	found := in.truth()
	t.Lock()
	defer t.Unlock()
	t.of[in.draft.key()] = found
	if t.file == "" {
		return found, nil
	}
	data, err := json.MarshalIndent(t.of, "", "\t")
	if err != nil {
		return found, err
	}
	return found, os.WriteFile(t.file, data, 0o600)
}
