package main

import (
	"fmt"
	"slices"
	"strings"

	"planner/internal/report"
)

// beside prints what belongs to the commands of servers: the files that they read,
// and what they lack.
func (p *program) beside(servers ...report.StartCommand) error {
	var texts []string
	for _, s := range servers {
		if s.File != "" {
			lines := strings.ReplaceAll(strings.TrimSpace(s.Content), "\n", "\n    ")
			texts = append(texts, s.File+":\n    "+lines)
		}
		texts = append(texts, s.Notes...)
	}
	for i, text := range texts {
		if slices.Contains(texts[:i], text) {
			continue
		}
		if _, err := fmt.Fprintf(p.plain, "  %s\n", text); err != nil {
			return err
		}
	}
	return nil
}
