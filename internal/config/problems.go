package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"planner/internal/list"
)

// place is where a value was given: in a file, or on the command line.
type place struct {
	file         string
	line, column int    // from 1; 0 when the place is a file as a whole
	flag         string // "--rate", "--set demand.rate"; empty for a file
	order        int    // of the flag on the command line
}

// String is the front of a problem's line: "planner.toml:12" or "--rate".
func (p place) String() string {
	switch {
	case p.flag != "":
		return p.flag
	case p.line > 0:
		return fmt.Sprintf("%s:%d", p.file, p.line)
	case p.file != "":
		return p.file
	}
	return "command line"
}

// Problem is one thing that is wrong with a configuration.
type Problem struct {
	// Key is the full key, "demand.rate"; empty when none is concerned.
	Key string
	// Text says what is wrong and what is allowed.
	Text string

	at place // FILE:LINE, or the flag that gave the value
}

// String is the problem as one line: "FILE:LINE: section.key: what is wrong".
func (p Problem) String() string {
	text := p.at.String() + ": "
	if p.Key != "" {
		text += p.Key + ": "
	}
	return text + p.Text
}

// Problems lists all that is wrong with a configuration, in the order of the file,
// then of the command line. It is the only kind of error that [Load] returns.
type Problems []Problem

// Error joins the problems, one a line.
func (ps Problems) Error() string {
	return strings.Join(list.Map(ps, Problem.String), "\n")
}

// sorted orders problems by place: the file from top to bottom, then the flags.
func (ps Problems) sorted() Problems {
	slices.SortStableFunc(ps, func(a, b Problem) int {
		return cmp.Or(comparePlaces(a.at, b.at), strings.Compare(a.Key, b.Key))
	})
	return slices.CompactFunc(ps, func(a, b Problem) bool { return a.String() == b.String() })
}

func comparePlaces(a, b place) int {
	return cmp.Or(
		cmp.Compare(a.order, b.order),
		cmp.Compare(a.line, b.line),
		cmp.Compare(a.column, b.column))
}

// oneLine keeps a problem on its line whatever text it quotes.
func oneLine(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == '\n' || r == '\r' }), " ")
}
