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

// fallbacks gives the TOML literal of each key's default by its full name, "" where
// it has none.
func fallbacks() map[string]string {
	d := defaults()
	d.space = searchedSpace()
	if err := d.load.fill(); err != nil {
		d.load = loadDefaults()
	}
	d.search.BudgetGiven = true // printed, though it counts only when it is given
	texts := map[string]string{}
	for _, k := range keys() {
		texts[k.name] = k.bind(&d).text()
	}
	return texts
}

// splitKey cuts a full key into section and name.
func splitKey(name string) (section, rest string) {
	section, rest, _ = strings.Cut(name, ".")
	return section, rest
}
