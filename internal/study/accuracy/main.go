// Command accuracy simulates the public serving benchmarks of testdata/groundtruth with
// one set of constants and prints what is predicted beside what was measured: mean TTFT,
// E2E and TPOT, p99 TTFT, completed requests per second. It also prints what the errors
// would be had the constants never seen the model on its GPU.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"os"

	"planner/model"
)

func main() {
	dir := flag.String("data", "testdata/groundtruth", "folder of the measurements")
	seed := flag.Uint64("seed", 1, "of the schedules")
	quick := flag.Bool("quick", false, "without fits that leave something out")
	flag.Parse()
	out := bufio.NewWriter(os.Stdout)
	err := report(out, *dir, *seed, *quick)
	out.Flush()
	if err != nil {
		fmt.Fprintln(os.Stderr, "accuracy:", err)
		os.Exit(1)
	}
}

// readAll reads every file of the collection.
func readAll(dir string, seed uint64, assume assumption) ([]server, error) {
	catalog, err := model.NewCatalog()
	if err != nil {
		return nil, err
	}
	servers, err := readOpen(dir, catalog, seed)
	if err != nil {
		return nil, err
	}
	closed, err := readClosed(dir, catalog, seed, assume)
	if err != nil {
		return nil, err
	}
	trace, err := readTrace(dir, catalog)
	if err != nil {
		return nil, err
	}
	return append(append(servers, closed...), trace), nil
}

// report prints everything.
func report(w io.Writer, dir string, seed uint64, quick bool) error {
	servers, err := readAll(dir, seed, byRecipe)
	if err != nil {
		return err
	}
	got, err := all(servers, defaults)
	if err != nil {
		return err
	}
	var unseen [][]figures
	var fits map[string][]float64
	if !quick {
		r, err := newRefit(servers, got)
		if err != nil {
			return err
		}
		if unseen, fits, err = r.leaveOut(); err != nil {
			return err
		}
	}
	printTable(w, servers, got, unseen)
	printGroups(w, servers, got, unseen)
	printGoals(w, servers, got)
	if err := printAssumptions(w, dir, seed); err != nil {
		return err
	}
	printOmitted(w, servers)
	if err := printPools(w, servers); err != nil {
		return err
	}
	if fits != nil {
		printKnobs(w, servers, fits)
	}
	return nil
}

// printAssumptions shows what hangs on flags of the B200 servers that the collection
// does not record.
func printAssumptions(w io.Writer, dir string, seed uint64) error {
	fmt.Fprintln(w, "\nB200 rows under two assumptions about flags that are not recorded, mean absolute error, percent:")
	for _, a := range []struct {
		assume assumption
		what   string
	}{
		{byRecipe, "fp8 KV cache, asynchronous scheduling: the benchmark's published recipes (counted above)"},
		{byDate, "two-byte KV cache, synchronous before 0.14: the release's defaults"},
	} {
		servers, err := readAll(dir, seed, a.assume)
		if err != nil {
			return err
		}
		var b200 []server
		for _, s := range servers {
			if isBlackwell(&s) {
				b200 = append(b200, s)
			}
		}
		got, err := all(b200, defaults)
		if err != nil {
			return err
		}
		for _, m := range names(b200, func(s *server) string { return s.model }) {
			is := func(s *server) bool { return s.model == m }
			fmt.Fprintf(w, "  %-24s TPOT %5s  TTFT %5s   %s\n", m, average(errorsOf(b200, got, metricTPOT, is)), average(errorsOf(b200, got, metricTTFT, is)), a.what)
		}
	}
	return nil
}
