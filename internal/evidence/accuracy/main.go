// Command accuracy simulates the public serving benchmarks of testdata/groundtruth with
// one set of constants and prints what is predicted beside what was measured: mean TTFT,
// E2E and TPOT, p99 TTFT, completed requests per second. It also prints what the errors
// would be had the constants never seen the model on its GPU. With -public it does the servers of
// public.toml instead, none of which the constants were calibrated on.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"os"

	"gonum.org/v1/gonum/floats"

	"planner/model"
)

func main() {
	dir := flag.String("data", "testdata/groundtruth", "folder of the measurements")
	seed := flag.Uint64("seed", 1, "of the schedules")
	schedules := flag.Int("schedules", 4, "over which predictions are averaged, as the real ones are not recorded")
	quick := flag.Bool("quick", false, "without fits that leave something out")
	coverage := flag.Bool("coverage", false, "also how often measurements lie within the stated intervals, some minutes")
	public := flag.Bool("public", false, "instead how far servers that others measured lie from what is simulated, and how often within the stated intervals")
	flag.Parse()
	out := bufio.NewWriter(os.Stdout)
	s := study{dir: *dir, seed: *seed, schedules: max(*schedules, 1)}
	var err error
	if *public {
		err = s.printPublic(out)
	} else {
		err = s.report(out, *quick, *coverage && !*quick)
	}
	out.Flush()
	if err != nil {
		fmt.Fprintln(os.Stderr, "accuracy:", err)
		os.Exit(1)
	}
}

// study says what is simulated.
type study struct {
	dir       string
	seed      uint64
	schedules int
}

// read reads every file of the collection, with one of the schedules.
func (s *study) read(schedule int) ([]server, error) {
	catalog, err := model.NewCatalog()
	if err != nil {
		return nil, err
	}
	seed := s.seed + 1000*uint64(schedule)
	servers, err := readOpen(s.dir, catalog, seed)
	if err != nil {
		return nil, err
	}
	closed, err := readClosed(s.dir, catalog)
	if err != nil {
		return nil, err
	}
	trace, err := readTrace(s.dir, catalog)
	if err != nil {
		return nil, err
	}
	return append(append(servers, closed...), trace), nil
}

// predict simulates every server and averages over the schedules.
func (s *study) predict(constants func(*server) model.Constants) ([][]figures, error) {
	var sum [][]figures
	for k := range s.schedules {
		servers, err := s.read(k)
		if err != nil {
			return nil, err
		}
		got, err := all(servers, constants)
		if err != nil {
			return nil, err
		}
		if k == 0 {
			sum = got
			continue
		}
		addFigures(sum, got)
	}
	scaleFigures(sum, 1/float64(s.schedules))
	return sum, nil
}

// addFigures adds figures, by server and load.
func addFigures(sum, got [][]figures) {
	for i := range got {
		for l := range got[i] {
			floats.Add(sum[i][l][:], got[i][l][:])
		}
	}
}

// scaleFigures multiplies figures, by server and load.
func scaleFigures(sum [][]figures, by float64) {
	for i := range sum {
		for l := range sum[i] {
			floats.Scale(by, sum[i][l][:])
		}
	}
}

// report prints everything that is asked for.
func (s *study) report(w io.Writer, quick, coverage bool) error {
	servers, err := s.read(0)
	if err != nil {
		return err
	}
	got, err := s.predict(defaults)
	if err != nil {
		return err
	}
	var fits map[string][]float64
	var unseenModel, unseenGPU [][]figures // predictions with constants that never saw the model, or the GPU
	if !quick {
		if fits, err = refits(servers); err != nil {
			return err
		}
		unseenModel, err = s.predict(func(v *server) model.Constants { return turned(v, fits[v.model()]) })
		if err != nil {
			return err
		}
		unseenGPU, err = s.predict(func(v *server) model.Constants { return turned(v, fits[v.gpu()]) })
		if err != nil {
			return err
		}
	}
	fmt.Fprintf(w, `Open loop: exponential gaps rescaled to fill each stage, 100 prompts in a fixed shuffled order, stages one after another on one
server with its cache carried over, clients that give up after 300 s, flags as recorded. Closed loop: the benchmark's own
lengths, all slots starting at once, flags as its recipe had them on the date, the client's own delay added. Trace: times
from when the engine queued a request. Predictions are means over %d schedules.

`, s.schedules)
	printTable(w, servers, got, unseenModel)
	printGroups(w, servers, got, unseenModel, unseenGPU)
	printGoals(w, servers, got)
	half, err := calibrateHalf(s.dir, &servers[len(servers)-1])
	if err != nil {
		return err
	}
	half.print(w)
	printOmitted(w, servers)
	if err := printPools(w, servers); err != nil {
		return err
	}
	if fits != nil {
		printMethod(w)
		printKnobs(w, servers, fits)
	}
	if coverage {
		return printCoverage(w, servers, fits)
	}
	return nil
}
