package config

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// readSamples reads lengths, one a line; of several columns the first counts. A
// first line that is no number is a header; empty lines and those that begin with
// # are left out.
func readSamples(r io.Reader) ([]int, error) {
	var samples []int
	lines := bufio.NewScanner(r)
	for number := 1; lines.Scan(); number++ {
		text, _, _ := strings.Cut(strings.TrimPrefix(lines.Text(), "\ufeff"), ",")
		text = strings.Trim(strings.TrimSpace(text), `"`)
		if text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		if _, err := strconv.ParseFloat(text, 64); err != nil && number == 1 {
			continue
		}
		n, err := parseSample(text)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		samples = append(samples, n)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("line after %d lengths: %w", len(samples), err)
	}
	return sortedSamples(samples)
}
