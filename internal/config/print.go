package config

import (
	"bytes"
	"fmt"
	"strings"
)

// TOML prints the configuration as it holds: complete, with every default, each
// key with its comment. A key that is not given, where that means something, is
// commented out. Loaded for the same command, the text gives an equal Config; paths
// are absolute in it.
func (c *Config) TOML() []byte {
	var b bytes.Buffer
	before := ""
	for _, k := range keys() {
		section, name := splitKey(k.name)
		if section != before {
			if before != "" {
				b.WriteByte('\n')
			}
			fmt.Fprintf(&b, "[%s]\n", section)
			before = section
		}
		text, comment := k.bind(&c.draft).text(), k.comment
		if note := c.note(k.name); note != "" {
			comment += "; " + note
		}
		if text == "" {
			fmt.Fprintf(&b, "# %s =  # not given: %s\n", name, comment)
			continue
		}
		fmt.Fprintf(&b, "%s = %s  # %s\n", name, text, comment)
	}
	return b.Bytes()
}

// note adds what was found for a key that leaves something to be found.
func (c *Config) note(key string) string {
	switch key {
	case "knobs.max_model_len":
		if c.draft.space.MaxModelLen == 0 && c.Space.MaxModelLen > 0 {
			return fmt.Sprintf("here %d", c.Space.MaxModelLen)
		}
	case "hardware.price_per_gpu_hour":
		var listed []string
		for _, g := range c.GPUs {
			if g.Priced && g.PricedBy != byConfiguration {
				listed = append(listed, fmt.Sprintf("%s %s, %s", g.Hardware.Name, number(g.USDPerHour), oneLine(g.PricedBy)))
			}
		}
		if len(listed) > 0 {
			return "here " + strings.Join(listed, "; ")
		}
	case "search.budget":
		if !c.Search.BudgetGiven {
			return quote(duration(c.Search.Budget)) + " on a real engine"
		}
	case "knobs.max_num_seqs", "knobs.max_num_batched_tokens", "knobs.gpu_memory_utilization":
		if !c.Simulated() {
			return "the engine's own default where it is not given"
		}
	}
	return ""
}
