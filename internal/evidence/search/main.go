// Command search tries the searches of this repository on servers in virtual
// time whose answers are known, and prints its tables as Markdown.
package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

func main() {
	os.Exit(run())
}

func run() int {
	seeds := flag.Int("seeds", 200, "repetitions of each search")
	only := flag.String("only", "", "comma-separated parts: accuracy (short for its first half), priors, race, small, sets, mixed; empty for all but the last")
	truths := flag.String("truths", "", "file that keeps truths between runs")
	vary := flag.String("constants", "", "comma-separated beginnings of the headings of search/numbers.go: print what searches of many kinds come to with each number there at half and at twice its value")
	flag.Parse()
	start := time.Now()
	s := study{out: os.Stdout, seeds: *seeds}
	if *only != "race" && *only != "small" && *only != "sets" {
		var err error
		if s.cases, s.tiny, err = storedServers(*truths); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	if *vary != "" {
		if err := s.constants(*truths, *vary); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return 0
	}
	s.truths()
	for _, p := range []struct {
		name string
		run  func()
	}{{"short", func() { s.accuracy(shortBudget) }}, {"accuracy", func() { s.accuracy(shortBudget, longBudget) }}, {"priors", s.priors}, {"race", s.races}, {"small", s.small}, {"sets", s.sets}, {"mixed", s.mixed}} {
		if *only == "" && p.name != "short" && p.name != "mixed" || slices.Contains(strings.Split(*only, ","), p.name) {
			p.run()
		}
	}
	fmt.Fprintln(os.Stderr, time.Since(start).Round(time.Second))
	return 0
}
