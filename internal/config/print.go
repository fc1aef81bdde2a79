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
			fmt.Fprintf(&b, "%s  # not given: %s\n", strings.TrimSpace("# "+name+" = "+c.implied(k.name)), comment)
			continue
		}
		fmt.Fprintf(&b, "%s = %s  # %s\n", name, text, comment)
	}
	c.printRun(&b)
	return b.Bytes()
}

// implied is what holds for a key that is not given, where one value does. It is
// printed commented out: given, it would mean more than it does as a default.
func (c *Config) implied(key string) string {
	switch key {
	case "search.budget":
		return quote(duration(c.Search.Budget))
	case "hardware.price_per_gpu_hour":
		var listed []string
		prices := map[string]string{}
		for _, g := range c.GPUs {
			if g.Priced {
				listed = append(listed, g.Hardware.Name)
				prices[g.Hardware.Name] = number(g.USDPerHour)
			}
		}
		return braces(listed, func(name string) string { return prices[name] })
	}
	return ""
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
				listed = append(listed, fmt.Sprintf("%s %s by %s", g.Hardware.Name, number(g.USDPerHour), oneLine(g.PricedBy)))
			}
		}
		return strings.Join(listed, "; ")
	case "knobs.max_num_seqs", "knobs.max_num_batched_tokens", "knobs.gpu_memory_utilization":
		if !c.Simulated() {
			return "the engine's own default where it is not given"
		}
	}
	return ""
}
