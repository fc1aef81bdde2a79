package secret

import (
	"io"
	"strings"
)

// Writer passes on what is written to it without the secrets, even if they are split across writes. It holds
// back what may be the beginning of one until more is written, or Flush.
type Writer struct {
	secrets Set
	to      io.Writer
	rest    string
}

// Writer returns a writer that hides the secrets of s.
func (s Set) Writer(to io.Writer) *Writer { return &Writer{secrets: s, to: to} }

// Write writes all of p or fails.
func (w *Writer) Write(p []byte) (int, error) {
	text := w.rest + string(p)
	for _, v := range w.secrets.values {
		text = strings.ReplaceAll(text, v, Hidden)
	}
	whole := len(text) - w.secrets.begun(text)
	w.rest = text[whole:]
	if _, err := io.WriteString(w.to, text[:whole]); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Flush writes what was held back, with any part of a secret hidden.
func (w *Writer) Flush() error {
	rest := w.secrets.Hide(w.rest)
	w.rest = ""
	_, err := io.WriteString(w.to, rest)
	return err
}
