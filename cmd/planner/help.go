package main

import (
	"bytes"
	"io"
	"strings"
)

// helpWidth is how many columns help takes.
const helpWidth = 100

// A helpWriter breaks the lines of help, which the library writes as long as they come. What
// goes on stands below the text that it belongs to.
type helpWriter struct {
	to   io.Writer
	rest []byte
}

// Write passes on the lines that are complete.
func (h *helpWriter) Write(b []byte) (int, error) {
	h.rest = append(h.rest, b...)
	for {
		end := bytes.IndexByte(h.rest, '\n')
		if end < 0 {
			return len(b), nil
		}
		if _, err := io.WriteString(h.to, brokenHelp(string(h.rest[:end]))+"\n"); err != nil {
			return 0, err
		}
		h.rest = h.rest[end+1:]
	}
}

// brokenHelp breaks a line at spaces. Columns stand at least two spaces apart.
func brokenHelp(line string) string {
	column := strings.LastIndex(line, "  ") + len("  ")
	if column < len("  ") {
		column = 0
	}
	var out strings.Builder
	for len(line) > helpWidth {
		end := strings.LastIndexByte(line[:helpWidth+1], ' ')
		if end <= column {
			break
		}
		out.WriteString(line[:end] + "\n")
		line = strings.Repeat(" ", column) + line[end+1:]
	}
	return out.String() + line
}
