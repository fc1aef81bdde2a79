// Command search tries the searches of this repository on servers in virtual
// time whose answers are known, and prints one table.
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"time"
)

func main() {
	seeds := flag.Int("seeds", 200, "repetitions of each search")
	only := flag.String("only", "", "comma-separated parts: accuracy, priors, peers, abort, limits, race; empty for all")
	trace := flag.String("trace", "", "SERVER:PRIOR:SEED, as 0:none:3: print one search instead")
	server := flag.Int("server", -1, "only this server, from 0; -1 for all")
	flag.Parse()
	start := time.Now()
	s := study{out: os.Stdout, seeds: *seeds, cases: servers(1)}
	if *server >= 0 {
		s.cases = s.cases[*server : *server+1]
	}
	if *trace != "" {
		var server, seed int
		var prior string
		fmt.Sscanf(strings.ReplaceAll(*trace, ":", " "), "%d %s %d", &server, &prior, &seed)
		for _, k := range []knowledge{right, half, double, nothing, blind} {
			if k.name == prior {
				if server >= len(s.cases) {
					v := variants(s.cases)[server-len(s.cases)]
					s.trace(&v.testCase, k, uint64(seed), v.budget)
					continue
				}
				s.trace(&s.cases[server], k, uint64(seed), 1355*time.Second)
			}
		}
		return
	}
	s.truths()
	for _, p := range []struct {
		name string
		run  func()
	}{{"accuracy", s.accuracy}, {"priors", s.priors}, {"abort", s.abort}, {"limits", s.limits}, {"peers", s.peers}, {"race", s.races}} {
		if *only == "" || strings.Contains(","+*only+",", ","+p.name+",") {
			p.run()
		}
	}
	fmt.Fprintln(os.Stderr, time.Since(start).Round(time.Second))
}
