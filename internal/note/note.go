// Package note holds remarks on an answer, such as warnings and reasons, as values: a kind and its figures. One
// table turns them into sentences, so that no code has to parse a sentence.
package note

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"planner/internal/list"
	"planner/internal/wire"
)

// Note is one remark.
type Note struct {
	Kind Kind
	// Figures holds the values that the kind's sentence names: numbers as float64, others as strings. A name
	// ends in its unit (_s, _ms, _percent, _per_s).
	Figures map[string]any
}

// New returns a note with the figures in the order in which the kind's sentence names them. Durations become
// numbers in the unit of the name.
func New(k Kind, figures ...any) Note {
	names := k.names()
	if len(names) != len(figures) {
		panic(fmt.Sprintf("note: %s has %d figures, not %d", k.name(), len(names), len(figures)))
	}
	n := Note{Kind: k, Figures: make(map[string]any, len(names))}
	for i, name := range names {
		n.Figures[name] = figure(name, figures[i])
	}
	return n
}

func figure(name string, value any) any {
	switch v := value.(type) {
	case time.Duration:
		return float64(v) / float64(unitOf(name))
	case float64:
		return v
	case int:
		return float64(v)
	case error:
		return v.Error()
	}
	return fmt.Sprint(value)
}

// unitOf returns the unit for durations in which a name ends, seconds by default.
func unitOf(name string) time.Duration {
	if strings.HasSuffix(name, "_ms") {
		return time.Millisecond
	}
	return time.Second
}

// If returns a note if a condition holds, and none otherwise.
func If(holds bool, k Kind, figures ...any) Notes {
	if !holds {
		return nil
	}
	return Notes{New(k, figures...)}
}

// Text returns a note of which only the sentence is known: another program's words, or those of an earlier
// version.
func Text(text string) Note { return New(Unknown, text) }

// String returns the note's sentence.
func (n Note) String() string { return sentence(Notes{n}) }

// Error returns the note's sentence: a note can be the reason of a failure.
func (n Note) Error() string { return n.String() }

// Equal reports whether two notes say the same.
func (n Note) Equal(other Note) bool {
	return n.Kind == other.Kind && maps.Equal(n.Figures, other.Figures)
}

// Notes are several notes, in the order to be shown.
type Notes []Note

// Has reports whether one of the notes is of the kind.
func (ns Notes) Has(k Kind) bool {
	return slices.ContainsFunc(ns, func(n Note) bool { return n.Kind == k })
}

// Of lists the notes of a kind.
func (ns Notes) Of(k Kind) Notes {
	return list.Filter(ns, func(n Note) bool { return n.Kind == k })
}

// Distinct lists the notes without repetitions.
func (ns Notes) Distinct() Notes {
	var out Notes
	for _, n := range ns {
		if !slices.ContainsFunc(out, n.Equal) {
			out = append(out, n)
		}
	}
	return out
}

// Texts lists the sentences of the notes.
func (ns Notes) Texts() []string { return list.Map(ns, Note.String) }

// String returns the sentences, one per line.
func (ns Notes) String() string { return strings.Join(ns.Texts(), "\n") }

// Likeness is equal for notes that are the same except for numbers and for texts with the format %s.
func (n Note) Likeness() string {
	parts := []string{string(n.Kind)}
	for _, m := range placeholder.FindAllStringSubmatch(n.Kind.template(), -1) {
		if text, ok := n.Figures[m[1]].(string); ok && m[2] != "%s" {
			parts = append(parts, strconv.Quote(text))
		}
	}
	return strings.Join(parts, " ")
}

// Summary returns one line per group of like notes: its sentence, with the range of each number, and the count.
func (ns Notes) Summary() []string {
	var out []string
	for _, g := range list.Groups(ns, Note.Likeness) {
		text := sentence(g)
		if len(g) > 1 {
			text += fmt.Sprintf(" (%d times)", len(g))
		}
		out = append(out, text)
	}
	return out
}

// Short returns the first two lines of [Notes.Summary] as one.
func (ns Notes) Short() string {
	kinds := ns.Summary()
	return strings.Join(kinds[:min(len(kinds), 2)], "; ")
}

// noteFile is a note in a file.
type noteFile struct {
	Kind    string         `json:"kind"`    // its name for programs
	Text    string         `json:"text"`    // the sentence
	Figures map[string]any `json:"figures"` // what the sentence names, with units at the end of the keys
}

// Written returns the note as in a file: kind, sentence and figures.
func (n Note) Written() any { return noteFile{n.Kind.name(), n.String(), n.Figures} }

// UnmarshalJSON reads what was written. If this version does not know the kind, or gives it other figures, the
// sentence is kept; there may be nothing but a sentence.
func (n *Note) UnmarshalJSON(b []byte) error {
	var text string
	if wire.Unmarshal(b, &text) == nil {
		*n = Text(text)
		return nil
	}
	var w noteFile
	if err := wire.Unmarshal(b, &w); err != nil {
		return fmt.Errorf("read a note: %w", err)
	}
	for name, v := range w.Figures {
		if v == nil {
			w.Figures[name] = math.NaN()
		}
	}
	*n = Text(w.Text)
	for _, k := range kinds {
		if k.name() == w.Kind && slices.Equal(slices.Sorted(slices.Values(k.names())), slices.Sorted(maps.Keys(w.Figures))) {
			*n = Note{k, w.Figures}
		}
	}
	return nil
}

// Warnings are notes as in a file: their sentences and the notes themselves.
type Warnings struct {
	Texts []string `json:"warnings"` // the notes in words
	Notes Notes    `json:"notes"`    // the same for programs
}

// Warnings returns the notes as in a file.
func (ns Notes) Warnings() Warnings { return Warnings{ns.Texts(), ns} }

// Add adds notes.
func (w *Warnings) Add(notes ...Note) {
	w.Texts, w.Notes = append(w.Texts, Notes(notes).Texts()...), append(w.Notes, notes...)
}

// Read returns the notes of a file or, if an earlier version wrote none, its sentences as notes.
func (w Warnings) Read() Notes {
	if len(w.Notes) > 0 {
		return w.Notes
	}
	return FromTexts(w.Texts)
}

// FromTexts returns sentences as notes.
func FromTexts(texts []string) Notes { return list.Map(texts, Text) }

// Reason is a note that gives a reason, as in a file: its sentence and the note. The zero value is no reason.
type Reason struct {
	Text string `json:"reason"` // in words
	Note Note   `json:"note,omitzero"`
}

// Because returns the reason of a kind with figures.
func Because(k Kind, figures ...any) Reason { return New(k, figures...).Reason() }

// Reason returns the note as a reason.
func (n Note) Reason() Reason { return Reason{n.String(), n} }

// ReasonOf returns the reason given by an error: a note, or its text.
func ReasonOf(err error) Reason {
	if n, ok := err.(Note); ok {
		return n.Reason()
	}
	return Text(err.Error()).Reason()
}

// Or returns the reason, or another one if it is empty.
func (r Reason) Or(other Reason) Reason {
	if r.Text == "" {
		return other
	}
	return r
}

// Read returns the note of a file or, if an earlier version wrote none, its sentence as a note.
func (r Reason) Read() Note {
	if r.Note.Kind == "" {
		return Text(r.Text)
	}
	return r.Note
}

// Count prints a number of things: "1 instance", "2 instances".
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
