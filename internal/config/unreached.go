package config

import (
	"fmt"
	"maps"
	"strings"

	"planner/internal/list"
	"planner/sweep/measure"
)

// DropUnreached leaves one value of each list that does not reach the server: the servers
// of knob sets that differ in nothing else are the same, as server tells. Of a list that
// was given this is the first value; a knob that nobody gave is left to the engine. It
// says in a line each what was dropped, and why.
func (c *Config) DropUnreached(server func(measure.Knobs) string) (told []string) {
	runnable, _ := c.Candidates()
	for _, n := range measure.KnobTable {
		values := c.Space[n.Name]
		if n.Name == "gpu" || len(values) < 2 || reaches(n, runnable, server) {
			continue
		}
		c.Space = maps.Clone(c.Space) // what was given is printed as it was
		why := fmt.Sprintf("%s: its values %s do not reach the server, whose command line is the same for all of them: ", KeyOf(n), strings.Join(list.Map(values, func(v any) string { return fmt.Sprint(v) }), ", "))
		if c.Open(n) {
			delete(c.Space, n.Name)
			told = append(told, why+"it is left to the engine")
		} else {
			c.Space[n.Name] = values[:1]
			told = append(told, why+fmt.Sprintf("only the first, %v, is tried", values[0]))
		}
		runnable, _ = c.Candidates()
	}
	return told
}

// reaches reports whether two sets of knobs that differ in this one alone have servers
// that differ.
func reaches(n measure.Knob, sets []measure.Knobs, server func(measure.Knobs) string) bool {
	seen := map[measure.Knobs]string{}
	for _, k := range sets {
		rest := k
		n.Set(&rest, nil)
		line := server(k)
		if other, ok := seen[rest]; ok && other != line {
			return true
		}
		seen[rest] = line
	}
	return false
}
