// Command accuracy simulates every public benchmark of testdata/groundtruth with one
// set of constants and prints what was predicted beside what was measured.
package main

import (
	"flag"
	"fmt"
	"os"
	"time"

	"planner/model"
)

func main() {
	dir := flag.String("data", "testdata/groundtruth", "folder of the measurements")
	seed := flag.Uint64("seed", 1, "of schedules")
	alt := flag.Bool("bydate", false, "")
	flag.Parse()
	start := time.Now()
	catalog, err := model.NewCatalog()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	open, err := readOpen(*dir, catalog, *seed)
	check(err)
	a := byRecipe
	if *alt {
		a = byDate
	}
	closed, err := readClosed(*dir, catalog, *seed, a)
	check(err)
	trace, err := readTrace(*dir, catalog)
	check(err)
	servers := append(append(open, closed...), trace)
	got, err := all(servers, defaults)
	check(err)
	type acc struct{ n, t, p, e, q float64 }
	sums := map[string]*acc{}
	pct := func(a, b float64) float64 { return 100 * (a/b - 1) }
	abs := func(x float64) float64 {
		if x < 0 {
			return -x
		}
		return x
	}
	for i, s := range servers {
		for k, l := range s.loads {
			f := got[i][k]
			fmt.Printf("%-30s %-34s ttft %8.1f %8.1f %+6.1f  p99 %8.1f %8.1f %+6.1f tpot %6.2f %6.2f %+6.1f e2e %8.0f %8.0f %+6.1f comp %.3f %.3f %s\n", s.file, l.label, f.ttft, l.measured.ttft, pct(f.ttft, l.measured.ttft),
				f.ttftP99, l.measured.ttftP99, pct(f.ttftP99, l.measured.ttftP99), f.tpot, l.measured.tpot, pct(f.tpot, l.measured.tpot), f.e2e, l.measured.e2e, pct(f.e2e, l.measured.e2e), f.completed, l.measured.completed, l.omitted)
			if l.omitted != "" {
				continue
			}
			for _, g := range []string{s.group, s.model} {
				a := sums[g]
				if a == nil {
					a = &acc{}
					sums[g] = a
				}
				a.n++
				a.t += abs(pct(f.ttft, l.measured.ttft))
				a.p += abs(pct(f.tpot, l.measured.tpot))
				a.e += abs(pct(f.e2e, l.measured.e2e))
				a.q += abs(pct(f.ttftP99, l.measured.ttftP99))
			}
		}
	}
	for g, a := range sums {
		fmt.Printf("%-45s n %3.0f ttft %5.1f tpot %5.1f e2e %5.1f p99 %5.1f\n", g, a.n, a.t/a.n, a.p/a.n, a.e/a.n, a.q/a.n)
	}
	fmt.Fprintln(os.Stderr, time.Since(start))
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
