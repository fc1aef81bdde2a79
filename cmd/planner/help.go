package main

import (
	"bytes"
	"io"
	"strings"
)

// helpWidth is the width of help in columns.
const helpWidth = 100

// A helpWriter wraps the lines of help, which the library writes unwrapped. Continuation lines are aligned with
// the text that they continue; running text flows into its next line.
type helpWriter struct {
	to io.Writer
	// rest is an incomplete line, carry the remainder of a wrapped one.
	rest  []byte
	carry string
}

// Write passes on complete lines.
func (h *helpWriter) Write(b []byte) (int, error) {
	h.rest = append(h.rest, b...)
	for {
		end := bytes.IndexByte(h.rest, '\n')
		if end < 0 {
			return len(b), nil
		}
		if _, err := io.WriteString(h.to, h.broken(string(h.rest[:end]))); err != nil {
			return 0, err
		}
		h.rest = h.rest[end+1:]
	}
}

// broken wraps a line at spaces, after what was carried over to it.
func (h *helpWriter) broken(line string) string {
	var out strings.Builder
	column := textColumn(line)
	running := strings.TrimSpace(line) != "" && strings.Trim(line[:column], " ") == ""
	switch {
	case h.carry != "" && running && column == textColumn(h.carry):
		line = h.carry + " " + line[column:]
	case h.carry != "":
		out.WriteString(h.carry + "\n")
	}
	h.carry = ""
	broke := false
	for len(line) > helpWidth {
		end := strings.LastIndexByte(line[:helpWidth+1], ' ')
		if end <= column {
			break
		}
		out.WriteString(line[:end] + "\n")
		line, broke = strings.Repeat(" ", column)+line[end+1:], true
	}
	if broke && running {
		h.carry = line
		return out.String()
	}
	return out.String() + line + "\n"
}

// textColumn returns where the last column of a line begins: columns are at least two spaces apart.
func textColumn(line string) int { return strings.LastIndex(" "+line, "  ") + 1 }
