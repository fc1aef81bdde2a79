package engine

import (
	"strconv"

	"planner/sweep/measure"
)

// loopback is where launched engines listen: nobody but planner is to load
// them.
const loopback = "127.0.0.1"

// draft is a command line in the making.
type draft struct {
	settings *Settings
	knobs    measure.Knobs
	port     int
	args     []string
	env      []string
	file     File
	without  []string
	err      error
}

func (d *draft) add(args ...string) { d.args = append(d.args, args...) }

// text adds an option whose value is given.
func (d *draft) text(option, value string) {
	if value != "" {
		d.add(option, value)
	}
}

// number adds an option unless its value is left to the engine.
func (d *draft) number(option string, n int) {
	if n > 0 {
		d.add(option, strconv.Itoa(n))
	}
}

// degree adds a degree of parallelism; one GPU is every engine's default.
func (d *draft) degree(option string, n int) {
	if n > 1 {
		d.add(option, strconv.Itoa(n))
	}
}

// share adds a fraction unless it is left to the engine.
func (d *draft) share(option string, x float64) {
	if x > 0 {
		d.add(option, formatShare(x))
	}
}

// flag adds one of two options, "" for none.
func (d *draft) flag(on bool, yes, no string) {
	option := no
	if on {
		option = yes
	}
	if option != "" {
		d.add(option)
	}
}

// when adds arguments under a condition.
func (d *draft) when(condition bool, args ...string) {
	if condition {
		d.add(args...)
	}
}

// lacks notes a knob that the engine has no option for.
func (d *draft) lacks(knob string, given bool) {
	if given {
		d.without = append(d.without, knob)
	}
}

func (d *draft) setenv(name, value string) { d.env = append(d.env, name+"="+value) }

func formatShare(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }

// flags lists the knobs that were given, by their names, as text.
func flags(k measure.Knobs) []Flag {
	var out []Flag
	for _, n := range measure.KnobTable {
		if text := n.Text(k); text != "" {
			out = append(out, Flag{n.Name, text})
		}
	}
	return out
}
