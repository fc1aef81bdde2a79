package config

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// list is a value that pins a setting, or several to choose from. What is listed
// twice counts once.
type list[T comparable] struct {
	p     *[]T
	read  func(node) (T, bool)
	print func(T) string
}

func (v list[T]) take(n node) {
	nodes := n.list()
	if len(nodes) == 0 {
		n.wrong("one value or a list of at least one")
		return
	}
	var out []T
	for _, item := range nodes {
		if x, ok := v.read(item); ok && !slices.Contains(out, x) {
			out = append(out, x)
		}
	}
	*v.p = out
}

func (v list[T]) text() string { return choice(*v.p, v.print) }

// choice prints a list of one as the value alone, an empty one as nothing.
func choice[T any](items []T, print func(T) string) string {
	switch len(items) {
	case 0:
		return ""
	case 1:
		return print(items[0])
	}
	return brackets(items, print)
}

func brackets[T any](items []T, print func(T) string) string {
	texts := make([]string, len(items))
	for i, x := range items {
		texts[i] = print(x)
	}
	return "[" + strings.Join(texts, ", ") + "]"
}

// wholes is a whole number above 0, or a list of them.
func wholes(p *[]int) value {
	return list[int]{p, func(n node) (int, bool) { return readWhole(n, 1) }, strconv.Itoa}
}

// floats is a number in a range, or a list of them.
func floats(p *[]float64, in span) value {
	return list[float64]{p, func(n node) (float64, bool) { return readFloat(n, in) }, number}
}

// truths is true or false, or both.
func truths(p *[]bool) value { return list[bool]{p, readTruth, strconv.FormatBool} }

// names is a string, or a list of them.
func names(p *[]string) value {
	return list[string]{p, func(n node) (string, bool) { return readWord(n, nil) }, quote}
}

// words is a list of strings as it stands; it may be empty.
type words struct{ p *[]string }

func (v words) take(n node) {
	nodes := n.list()
	_, isList := elements(n.value)
	if _, typed := n.r.texts[n.path]; !isList && !typed {
		n.wrong(`a list of strings, such as ["--port", "8000"]`)
		return
	}
	out := []string{}
	for _, item := range nodes {
		if s, ok := readWord(item, nil); ok {
			out = append(out, s)
		}
	}
	*v.p = out
}

func (v words) text() string { return brackets(*v.p, quote) }

// table is a table of strings, checked one by one.
type table struct {
	p     *map[string]string
	check func(n node, name string) bool
}

func (v table) take(n node) {
	given, ok := n.value.(map[string]any)
	if !ok {
		n.wrong(`a table of strings, such as { NAME = "value" }`)
		return
	}
	out := map[string]string{}
	for _, name := range n.r.children(n.path, given) {
		c, _ := n.child(name)
		s, ok := readWord(c, nil)
		if ok && (v.check == nil || v.check(c, name)) {
			out[name] = s
		}
	}
	*v.p = out
}

func (v table) text() string {
	return braces(slices.Sorted(maps.Keys(*v.p)), func(name string) string { return quote((*v.p)[name]) })
}

// braces prints an inline table.
func braces(keys []string, value func(string) string) string {
	if len(keys) == 0 {
		return "{}"
	}
	parts := make([]string, len(keys))
	for i, key := range keys {
		parts[i] = fmt.Sprintf("%s = %s", join("", key), value(key))
	}
	return "{ " + strings.Join(parts, ", ") + " }"
}
