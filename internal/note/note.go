// Package note holds what is worth knowing of an answer, such as warnings and
// reasons, as values: a kind and its figures. One table turns them into
// sentences, so that nothing has to read a sentence to know what it says.
package note

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"planner/internal/list"
	"planner/internal/wire"
)

// Note is one thing that is worth knowing.
type Note struct {
	Kind Kind
	// Figures holds the values that the sentence of the kind names: numbers as
	// float64, all else as strings. The unit stands at the end of a name (_s, _ms,
	// _percent, _per_s).
	Figures map[string]any
}

// New makes a note of the figures, in the order in which the sentence of the kind
// names them. Durations become numbers of the unit that the name ends in.
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

// unitOf is the unit of durations that a name ends in.
func unitOf(name string) time.Duration {
	if strings.HasSuffix(name, "_ms") {
		return time.Millisecond
	}
	return time.Second
}

// If is the note of some figures where something holds, and none where it does not.
func If(holds bool, k Kind, figures ...any) Notes {
	if !holds {
		return nil
	}
	return Notes{New(k, figures...)}
}

// Text is a note of which only the sentence is known: another program's words, or
// what an earlier version wrote.
func Text(text string) Note { return New(Unknown, text) }

// String is the note's sentence.
func (n Note) String() string { return sentence(Notes{n}) }

// Error is the note's sentence: a note can be why something failed.
func (n Note) Error() string { return n.String() }

// Equal reports whether two notes say the same.
func (n Note) Equal(other Note) bool {
	return n.Kind == other.Kind && maps.Equal(n.Figures, other.Figures)
}

// Notes are several of them, in the order in which they are told.
type Notes []Note

// Has reports whether one of the notes is of the kind.
func (ns Notes) Has(k Kind) bool {
	return slices.ContainsFunc(ns, func(n Note) bool { return n.Kind == k })
}

// Of lists the notes of a kind.
func (ns Notes) Of(k Kind) Notes {
	return list.Filter(ns, func(n Note) bool { return n.Kind == k })
}

// Distinct lists the notes without those that say what an earlier one said.
func (ns Notes) Distinct() Notes {
	var out Notes
	for _, n := range ns {
		if !slices.ContainsFunc(out, n.Equal) {
			out = append(out, n)
		}
	}
	return out
}

// Texts lists the sentences, one a note.
func (ns Notes) Texts() []string { return list.Map(ns, Note.String) }

// String is the sentences, one a line.
func (ns Notes) String() string { return strings.Join(ns.Texts(), "\n") }

// alike reports whether two notes say the same but for what each of them measured.
func (n Note) alike(other Note) bool {
	if n.Kind != other.Kind {
		return false
	}
	for _, m := range placeholder.FindAllStringSubmatch(n.Kind.template(), -1) {
		v := n.Figures[m[1]]
		if _, isNumber := v.(float64); !isNumber && m[2] != "%s" && v != other.Figures[m[1]] {
			return false
		}
	}
	return true
}

// Groups gathers the notes that say the same but for numbers, in the order of the
// first of each.
func (ns Notes) Groups() []Notes { return GroupsOf[Notes](ns, func(n Note) Note { return n }) }

// GroupsOf gathers what has notes that say the same but for numbers, in the order of
// the first of each.
func GroupsOf[S ~[]T, T any](all S, of func(T) Note) []S {
	var out []S
	for _, x := range all {
		i := slices.IndexFunc(out, func(g S) bool { return of(g[0]).alike(of(x)) })
		if i < 0 {
			out = append(out, S{x})
			continue
		}
		out[i] = append(out[i], x)
	}
	return out
}

// Summary is one line a group: what its notes say, with the range of each number, and
// how many they are.
func (ns Notes) Summary() []string {
	var out []string
	for _, g := range ns.Groups() {
		text := sentence(g)
		if len(g) > 1 {
			text += fmt.Sprintf(" (%d times)", len(g))
		}
		out = append(out, text)
	}
	return out
}

// Short is the first two kinds of the notes in one line, see [Notes.Summary].
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

// Written is the note in a file: kind, sentence and figures.
func (n Note) Written() any { return noteFile{n.Kind.name(), n.String(), n.Figures} }

// UnmarshalJSON reads what was written. Of a kind that this version does not
// know, or that has other figures here, the sentence is kept, which may be all that
// there is.
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

// Warnings are notes in a file: their sentences, and beside them the notes.
type Warnings struct {
	Texts []string `json:"warnings"` // the notes in words
	Notes Notes    `json:"notes"`    // the same for programs
}

// Warnings are the notes as a file has them.
func (ns Notes) Warnings() Warnings { return Warnings{ns.Texts(), ns} }

// Add adds a note.
func (w *Warnings) Add(k Kind, figures ...any) {
	n := New(k, figures...)
	w.Texts, w.Notes = append(w.Texts, n.String()), append(w.Notes, n)
}

// AddIf adds a note where something holds.
func (w *Warnings) AddIf(holds bool, k Kind, figures ...any) {
	if holds {
		w.Add(k, figures...)
	}
}

// Read is what a file says: its notes or, where an earlier version wrote none, its
// sentences.
func (w Warnings) Read() Notes {
	if len(w.Notes) > 0 {
		return w.Notes
	}
	return FromTexts(w.Texts)
}

// FromTexts are the notes of sentences.
func FromTexts(texts []string) Notes { return list.Map(texts, Text) }

// Reason is a note that says why, as a file has it: its sentence, and beside it the
// note. The zero value says nothing.
type Reason struct {
	Text string `json:"reason"` // in words
	Note Note   `json:"note,omitzero"`
}

// Because is the reason of some figures.
func Because(k Kind, figures ...any) Reason { return New(k, figures...).Reason() }

// Reason is the note as a reason.
func (n Note) Reason() Reason { return Reason{n.String(), n} }

// ReasonOf is the reason that an error gives: a note, or its words.
func ReasonOf(err error) Reason {
	if n, ok := err.(Note); ok {
		return n.Reason()
	}
	return Text(err.Error()).Reason()
}

// Or is the reason, or another where it says nothing.
func (r Reason) Or(other Reason) Reason {
	if r.Text == "" {
		return other
	}
	return r
}

// Read is the note that a file gives or, where an earlier version wrote none, its
// sentence.
func (r Reason) Read() Note {
	if r.Note.Kind == "" {
		return Text(r.Text)
	}
	return r.Note
}

// Count is a number of things in words: "1 instance", "2 instances".
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
