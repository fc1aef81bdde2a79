package ingest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// mostLength is the most tokens that a request may have, so that sums and products of a
// few lengths stay exact.
const mostLength = 1 << 31

// ReadLengths reads lengths, one a line; of several columns the first counts. A
// first line that is no number is a header; empty lines and those that begin with
// # are left out.
func ReadLengths(r io.Reader) ([]int, error) {
	var lengths []int
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
		n, err := parseLength(text)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		lengths = append(lengths, n)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("line after %d lengths: %w", len(lengths), err)
	}
	if len(lengths) == 0 {
		return nil, errors.New("holds no length")
	}
	slices.Sort(lengths)
	return lengths, nil
}

// parseLength reads one length; a real number is rounded, as exports of other
// tools write 447.0.
func parseLength(text string) (int, error) {
	x, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil || !(x >= 0.5) || x > mostLength {
		return 0, fmt.Errorf("%q is no length above 0", shorten(text, 60))
	}
	return int(math.Round(x)), nil
}
