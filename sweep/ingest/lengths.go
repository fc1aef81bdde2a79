package ingest

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"planner/internal/input"
	"planner/internal/list"
	"planner/internal/note"
	"planner/internal/printable"
	"planner/sweep/workload"
)

// mostLength is the most tokens that a request may have, so that sums and products of a few lengths
// stay exact.
const mostLength = 1 << 31

// ReadLengths reads lengths, one per line, and sorts them. Empty lines and those that begin with #
// are skipped; the first other line is a header if it is not a number.
func ReadLengths(r io.Reader) (lengths []int, err error) {
	if r, err = input.Unpack(r); err != nil {
		return nil, err
	}
	lines, begun := bufio.NewScanner(r), false
	for number := 1; lines.Scan(); number++ {
		text, others, _ := strings.Cut(strings.TrimPrefix(lines.Text(), "\ufeff"), ",")
		text = strings.Trim(strings.TrimSpace(text), `"`)
		if strings.HasPrefix(text, "#") || text+others == "" {
			continue
		}
		if strings.Trim(others, ", ") != "" {
			return nil, fmt.Errorf("line %d: several columns, want one, of lengths", number)
		}
		x, err := strconv.ParseFloat(text, 64)
		header := err != nil && !begun
		if begun = true; header {
			continue
		}
		if err != nil || !(x >= 0.5) || x > mostLength {
			return nil, fmt.Errorf("line %d: %q is no length above 0", number, printable.Short(text, 60))
		}
		lengths = append(lengths, int(math.Round(x))) // exports of other tools write 447.0
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

// charsPerToken converts text to tokens where there is no tokenizer: English prose has about four
// characters per token under the vocabularies of 2023 and later. Code and other languages have
// fewer.
const charsPerToken = 4.0

func estimateTokens(chars int) int {
	if chars == 0 {
		return 0
	}
	return max(1, int(float64(chars)/charsPerToken+0.5))
}

// ShareGPT holds the lengths of a ShareGPT file: those of the first question and its answer in
// every conversation. There are no arrivals in such files.
type ShareGPT struct {
	Format string `json:"format"`
	// Prompts and Outputs are sorted, each separately.
	Prompts []int `json:"-"`
	Outputs []int `json:"-"`
	// Conversations counts all those read, Skipped those among them without a question and an
	// answer.
	Conversations int `json:"-"`
	Skipped       int `json:"skipped"`
	note.Warnings
	Description workload.Description `json:"lengths"`
}

// ReadShareGPT reads the lengths of a ShareGPT file: a JSON array of
// {"conversations":[{"from":..,"value":..},..]}. Lengths are estimates, by charsPerToken; no text
// is kept.
func ReadShareGPT(name string, r io.Reader) (*ShareGPT, error) {
	wrong := func(format string, a ...any) error { return &fileError{File: name, What: fmt.Sprintf(format, a...)} }
	piece := input.Limit(r, longestLine)
	d := json.NewDecoder(piece)
	if first, err := d.Token(); err != nil || first != json.Delim('[') {
		return nil, wrong("not a JSON array of conversations")
	}
	s := &ShareGPT{Format: "sharegpt"}
	for d.More() {
		piece.Again()
		var c struct {
			Conversations []struct {
				Value string `json:"value"`
			} `json:"conversations"`
		}
		if err := d.Decode(&c); err != nil {
			return nil, wrong("conversation %d (byte %d): %v", s.Conversations+1, d.InputOffset(), err)
		}
		s.Conversations++
		if len(c.Conversations) < 2 || c.Conversations[0].Value == "" || c.Conversations[1].Value == "" {
			s.Skipped++
			continue
		}
		if len(s.Prompts) == mostRows {
			return nil, wrong("longer than the %d conversations that are read of one", mostRows)
		}
		s.Prompts = append(s.Prompts, estimateTokens(utf8.RuneCountInString(c.Conversations[0].Value)))
		s.Outputs = append(s.Outputs, estimateTokens(utf8.RuneCountInString(c.Conversations[1].Value)))
	}
	if _, err := d.Token(); err != nil {
		return nil, wrong("byte %d: %v", d.InputOffset(), err)
	}
	if len(s.Prompts) == 0 {
		return nil, wrong("none of %d conversations holds a question and an answer", s.Conversations)
	}
	slices.Sort(s.Prompts)
	slices.Sort(s.Outputs)
	s.Description = workload.DescribeLengths(s.Prompts, s.Outputs)
	s.Warnings.Add(note.New(note.LengthsEstimated, float64(charsPerToken)), note.New(note.DrawnApart))
	return s, nil
}

// WriteLengths writes the lengths, one per line, to files whose names begin like to, and returns
// these names. It overwrites nothing.
func (s *ShareGPT) WriteLengths(to string) (prompts, outputs string, err error) {
	stem := strings.TrimSuffix(to, filepath.Ext(to))
	prompts, outputs = stem+".prompt.csv", stem+".output.csv"
	if err = writeLengths(prompts, s.Prompts); err == nil {
		err = writeLengths(outputs, s.Outputs)
	}
	if err != nil {
		err = fmt.Errorf("write lengths: %w", err)
	}
	return prompts, outputs, err
}

func writeLengths(path string, lengths []int) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteString(strings.Join(list.Map(lengths, strconv.Itoa), "\n") + "\n")
	return errors.Join(err, f.Close())
}

// ReadProfile reads a CSV of times and rates, each of which holds until the next: equal steps,
// without a gap.
func ReadProfile(name string, in io.Reader) (workload.Profile, error) {
	rows := csv.NewReader(in)
	rows.TrimLeadingSpace = true
	line := 0
	wrong := func(format string, a ...any) (workload.Profile, error) {
		return nil, &fileError{File: name, Line: line, What: fmt.Sprintf(format, a...)}
	}
	head, err := rows.Read()
	if err != nil {
		return wrong("holds no rows, want time_s,rate_per_s")
	}
	head[0] = strings.TrimPrefix(head[0], "\ufeff")
	at, rate := slices.Index(head, "time_s"), slices.Index(head, "rate_per_s")
	if at < 0 || rate < 0 {
		line = 1
		return wrong("the columns are %s, want time_s,rate_per_s", strings.Join(head, ","))
	}
	var p workload.Profile
	var step, last float64
	for row, err := rows.Read(); err != io.EOF; row, err = rows.Read() {
		if e, ok := errors.AsType[*csv.ParseError](err); ok {
			line = e.Line
		}
		if err != nil {
			return wrong("%v", err)
		}
		line, _ = rows.FieldPos(0)
		t, errT := strconv.ParseFloat(row[at], 64)
		v, errV := strconv.ParseFloat(row[rate], 64)
		switch {
		case errT != nil || !(t >= 0 && t <= 366*86400):
			return wrong("time_s is %q, want seconds from 0 on, of a year at most", row[at])
		case errV != nil || !(v >= 0 && v <= 1e6):
			return wrong("rate_per_s is %q, want requests/s of at least 0", row[rate])
		case len(p) > 0 && t <= last:
			return wrong("time_s is %v behind %v, want times that grow", t, last)
		case len(p) == 1:
			step = t - last
		case len(p) > 1 && math.Abs(t-last-step) > 1e-6*t:
			return wrong("time_s is %v, and %v s behind the row before; want %v s between all rows, without a gap", t, t-last, step)
		}
		p, last = append(p, workload.RateStep{Rate: v}), t
	}
	line = 0
	if len(p) < 2 {
		return wrong("holds %d rows, want at least 2", len(p))
	}
	for i := range p {
		p[i].Length = time.Duration(step * float64(time.Second))
	}
	if p.Peak() == 0 {
		return wrong("has no rate above 0")
	}
	return p, nil
}
