package config

import "time"

// Search says how far to go in finding a maximum rate.
type Search struct {
	// Precision is the half-width of the interval on the maximum rate, relative.
	Precision float64
	// Confidence of that interval.
	Confidence float64
	// Warmup is the load before the window of every trial.
	Warmup Auto
	// Trial is the window of a trial.
	Trial Auto
	// MinRequests of a trial; 0 means what the quantiles of the objective need.
	MinRequests int
	// Budget is the engine time of all trials together; BudgetGiven says that the
	// user asked for it, without which it does not bound a simulated engine.
	Budget      time.Duration
	BudgetGiven bool
	// Strategy is "race", "one-at-a-time" or "grid".
	Strategy string
	// Certify asks for a test of a rate that needs no curve, behind the search.
	Certify bool
}

// Auto is a duration, or left to the search.
type Auto struct {
	Given    bool
	Duration time.Duration
}

func searchDefaults() Search {
	return Search{Precision: 0.10, Confidence: 0.90, Budget: time.Hour, Strategy: "race"}
}

// searchKeys are the keys of [search], and outputKeys those of [output].
func searchKeys() []key {
	return []key{
		{"search.precision", "half-width of the interval on the maximum rate, relative", func(d *draft) value {
			return float{&d.search.Precision, share}
		}},
		{"search.confidence", "of that interval", func(d *draft) value { return float{&d.search.Confidence, share} }},
		{"search.warm_up", "auto, or a duration, for every trial", func(d *draft) value { return auto{&d.search.Warmup, true} }},
		{"search.trial", "window of a trial: auto = chosen by the search, or a duration", func(d *draft) value {
			return auto{&d.search.Trial, false}
		}},
		{"search.min_requests", "of a trial; 0 = what the quantiles of the SLO need", func(d *draft) value {
			return whole{&d.search.MinRequests, 0}
		}},
		{"search.budget", "engine time, all trials; bounds a simulated engine only where it is given", func(d *draft) value {
			return optional{period{&d.search.Budget, false}, &d.search.BudgetGiven}
		}},
		{"search.strategy", "race one-at-a-time grid", func(d *draft) value {
			return word{&d.search.Strategy, []string{"race", "one-at-a-time", "grid"}}
		}},
		{"search.certify", "test one rate below the maximum on requests of its own, without any curve", func(d *draft) value {
			return truth{&d.search.Certify}
		}},
	}
}

func outputKeys() []key {
	return []key{
		{"output.dir", "folder for run folders, relative to the current folder", func(d *draft) value { return filled{&d.output} }},
	}
}

// filled is a string that must not be empty.
type filled struct{ p *string }

func (v filled) take(n node) {
	n = n.only()
	s, ok := readWord(n, nil)
	switch {
	case ok && s == "":
		n.wrong("a name")
	case ok:
		*v.p = s
	}
}

func (v filled) text() string { return quote(*v.p) }
