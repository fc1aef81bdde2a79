package config

import (
	"fmt"
	"slices"
	"strings"

	"planner/model"
)

// reader walks a source and collects what is wrong with it.
type reader struct {
	*source
	problems Problems
	warnings []string
	base     string // folder that paths in the file are relative to
	trace    TraceReader
	catalog  *model.Catalog // this reading's own
}

// take lets every key of the source take its value.
func (r *reader) take(d *draft) {
	all := keys()
	for _, section := range r.children("", r.tree) {
		n := node{r: r, path: join("", section), key: join("", section), value: r.tree[section]}
		table, ok := n.value.(map[string]any)
		known := all
		if section == "run" {
			known = runKeys()
		}
		switch {
		case section == "run" && ok:
		case !slices.Contains(sections(), section) && ok:
			n.refuse("is no section, the nearest is [%s]; want one of %s", nearest(section, sections()), strings.Join(sections(), ", "))
			continue
		case !slices.Contains(sections(), section):
			n.refuse("is no key, the nearest valid key is %s", nearestKey("", section, all))
			continue
		case !ok:
			n.wrong("a section [" + section + "] of keys")
			continue
		}
		for _, name := range r.children(n.path, table) {
			c, _ := n.child(name)
			i := slices.IndexFunc(known, func(k key) bool { return k.name == c.path })
			if i < 0 {
				c.refuse("is no key, the nearest valid key is %s", nearestKey(section, name, known))
				continue
			}
			known[i].bind(d).take(c)
		}
	}
}

// nearestKey finds what a misspelt or misplaced key may have meant. A key of
// another section has to be clearly nearer than those of its own.
func nearestKey(section, name string, all []key) string {
	best, least := "", 1<<30
	for _, k := range all {
		s, n, _ := strings.Cut(k.name, ".")
		d := 2 * likeness(strings.ToLower(name), n)
		if s != section {
			d += 3
		}
		if d < least {
			best, least = k.name, d
		}
	}
	return best
}

// clean reports whether no problem has been found in the given sections or keys.
func (r *reader) clean(keys ...string) bool {
	for _, p := range r.problems {
		for _, key := range keys {
			if p.Key == key || strings.HasPrefix(p.Key, key+".") {
				return false
			}
		}
	}
	return true
}

// warn notes something that a reader of the results should know.
func (r *reader) warn(format string, args ...any) {
	r.warnings = append(r.warnings, oneLine(fmt.Sprintf(format, args...)))
}

// absent notes a key that is not there, unless its section was not readable.
func (r *reader) absent(key, format string, args ...any) {
	section, _ := splitKey(key)
	if !slices.ContainsFunc(r.problems, func(p Problem) bool { return p.Key == section }) {
		r.at(key).refuse(format, args...)
	}
}

// missing notes a key that is not there, at the place of the one that asks for it
// unless it was given empty.
func (r *reader) missing(key, asker, format string, args ...any) {
	n := r.at(key)
	if !r.given(key) {
		n.path = asker
	}
	n.refuse(format, args...)
}
