// Package configtest makes configurations of keys and values for tests.
package configtest

import (
	"planner/internal/config"
	"planner/internal/evidence/must"
)

// Load is what a command reads of pairs of keys and values, without a file.
func Load(command string, pairs ...string) *config.Config {
	var over []config.Override
	for i := 0; i < len(pairs); i += 2 {
		over = append(over, config.Override{Key: pairs[i], Value: pairs[i+1]})
	}
	return must.Get(config.Load("", over, config.For(command)))
}
