package config

import (
	"slices"
	"strings"
)

// key describes one key of the file: its full name, what it means, and the room in
// a draft that it reads into and is printed from.
type key struct {
	name, comment string
	bind          func(*draft) value
}

// keys lists all keys in the order of the file.
func keys() []key {
	return slices.Concat(demandKeys(), sloKeys(), modelKeys(), hardwareKeys(), engineKeys(),
		knobKeys(), workloadKeys(), searchKeys(), outputKeys())
}

// sections lists the sections in the order of the file.
func sections() []string {
	return []string{"demand", "slo", "model", "hardware", "engine", "knobs", "workload", "search", "output"}
}

// Key describes one key of the configuration, for help and completion.
type Key struct {
	// Name is the full key, "demand.rate".
	Name string
	// Default is the TOML literal of its default, "" when it has none.
	Default string
	// Comment says what it means.
	Comment string
}

// Keys lists every key of the configuration in the order of the file.
func Keys() []Key {
	d := defaults()
	d.space = searchedSpace()
	if err := d.load.fill(); err != nil {
		d.load = loadDefaults()
	}
	d.search.BudgetGiven = true // printed, though it counts only when it is given
	var out []Key
	for _, k := range keys() {
		out = append(out, Key{Name: k.name, Default: k.bind(&d).text(), Comment: k.comment})
	}
	return out
}

// splitKey cuts a full key into section and name.
func splitKey(name string) (section, rest string) {
	section, rest, _ = strings.Cut(name, ".")
	return section, rest
}
