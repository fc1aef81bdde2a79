package main

import (
	"fmt"
	"io"
	"time"

	"planner/internal/parallel"
)

// study writes its tables as it computes them.
type study struct {
	out   io.Writer
	seeds int
	cases []testCase
	// tiny are small servers, some of another speed in each trial.
	tiny []testCase
}

func (s *study) printf(format string, args ...any) { fmt.Fprintf(s.out, format, args...) }

// never is a precision that no search reaches, so that it spends its budget.
const never = 1e-9

func (s *study) truths() {
	if len(s.cases) == 0 {
		return
	}
	s.printf("| server | true maximum rate | dispersion there | steepness |\n|---|--:|--:|--:|\n")
	for _, c := range s.cases {
		s.printf("| %s | %.3f/s | %.0f | %.0f |\n", c.name, c.truth, c.phi, c.kappa)
	}
	s.printf("\n")
}

// repeat runs a method on every case and prints a row a case and their mean.
func (s *study) repeat(name string, method func(c *testCase, seed uint64) answer) {
	all := make([]score, len(s.cases))
	for i := range s.cases {
		c := &s.cases[i]
		all[i] = scoreOf(parallel.Map(s.seeds, func(k int) answer { return method(c, uint64(k+1)) }))
		s.row(name, c.name, all[i])
	}
	s.row(name, "mean", pool(all))
}

// shortBudget and longBudget are the engine times of the searches.
const shortBudget, longBudget = 1355 * time.Second, 2355 * time.Second

// accuracy is the error of the reported rate at fixed budgets.
func (s *study) accuracy(budgets ...time.Duration) {
	s.printf("## Error at a fixed budget\n\n" + scoreHead)
	for _, budget := range budgets {
		s.repeat(fmt.Sprintf("ours, %.0f s", budget.Seconds()), func(c *testCase, seed uint64) answer {
			return ours(c, right, seed, budget, never)
		})
	}
	s.printf("\n")
}

// priors is the coverage with priors of different quality.
func (s *study) priors() {
	s.printf("## Coverage with right, wrong and no priors, 1355 s\n\n" + scoreHead)
	for _, k := range []knowledge{half, double, nothing, blind} {
		s.repeat("ours, "+k.name, func(c *testCase, seed uint64) answer {
			return ours(c, k, seed, shortBudget, never)
		})
	}
	s.printf("\n")
}
