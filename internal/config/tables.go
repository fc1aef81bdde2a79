package config

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"planner/internal/list"
	"planner/internal/spelling"
)

// takeRows reads the keys of a table in the rows' order. Missing keys in needed are refused with the key's
// comment at the end of the message. It returns the values that belong to no row.
func (n input) takeRows(rows []tomlKey, needed ...string) (unknown []input) {
	for _, k := range rows {
		if c, ok := n.child(k.name); ok {
			k.take(c)
		} else if slices.Contains(needed, k.name) {
			n.refuse("lacks the key %s, which it needs%s", k.name, k.comment)
		}
	}
	return slices.DeleteFunc(n.children(), func(c input) bool { return slices.Contains(names(rows), c.name) })
}

// takeTable reads an inline table with only the rows' keys, and reports whether the value is a table.
func (n input) takeTable(rows []tomlKey, needed ...string) bool {
	if _, ok := n.value.(map[string]any); !ok {
		n.wrong("a table of " + keyList(names(rows)))
		return false
	}
	n.inner = false
	for _, c := range n.takeRows(rows, needed...) {
		c.unknown(n.key, names(rows))
	}
	return true
}

func (n input) unknown(table string, names []string) {
	n.refuse("is no key here, the nearest valid key is %s; want %s", join(table, spelling.Nearest(n.name, names)), keyList(names))
}

func names(rows []tomlKey) []string {
	return list.Map(rows, func(k tomlKey) string { return k.name })
}

func keyList(names []string) string {
	return strings.Join(list.Map(names, func(name string) string { return join("", name) }), ", ")
}

// printTable prints the rows with a value, except empty lists, as an inline table.
func printTable(rows []tomlKey) string {
	parts := list.FilterMap(rows, func(k tomlKey) (string, bool) {
		text := k.text()
		return join("", k.name) + " = " + text, text != "" && text != "[]"
	})
	if len(parts) == 0 {
		return "{}"
	}
	return "{ " + strings.Join(parts, ", ") + " }"
}

// tableAt binds a key to a table, empty or with all needed keys; keys that are not given keep their values. It
// prints an empty table if a needed key has no value.
func tableAt(rows func() []tomlKey, needed ...string) binding {
	take := func(n input) {
		if table, ok := n.value.(map[string]any); !ok || len(table) > 0 {
			n.takeTable(rows(), needed...)
		}
	}
	text := func() string {
		all := rows()
		if slices.ContainsFunc(all, func(k tomlKey) bool { return slices.Contains(needed, k.name) && k.text() == "" }) {
			return "{}"
		}
		return printTable(all)
	}
	return binding{take, text, nil}
}

// tableWith is such a table, read into a T.
func tableWith[T any](rows func(*T) []tomlKey, needed ...string) codec[T] {
	at := func(x *T) binding { return tableAt(func() []tomlKey { return rows(x) }, needed...) }
	read := func(n input) (x T) {
		at(&x).take(n)
		return x
	}
	return codec[T]{read, func(x T) string { return at(&x).text() }, true, nil}
}

// tablesOf is a list of tables, each read into a T. rows may set the initial values of a T.
func tablesOf[T any](rows func(*T) []tomlKey, want string, needed ...string) codec[[]T] {
	read := func(n input) (all []T) {
		if _, ok := elements(n.value); !ok {
			n.wrong(want)
			return nil
		}
		for _, item := range n.list() {
			var x T
			item.takeTable(rows(&x), needed...)
			all = append(all, x)
		}
		return all
	}
	return codec[[]T]{read, func(all []T) string {
		return brackets(all, func(x T) string { return printTable(rows(&x)) })
	}, true, nil}
}

// tableOf is a table of values of one type by name; only the allowed names, if any are given.
func tableOf[T any](k codec[T], allowed ...string) codec[map[string]T] {
	read := func(n input) (out map[string]T) {
		if _, ok := n.value.(map[string]any); !ok {
			n.wrong("a table of " + cmp.Or(keyList(allowed), `strings, such as { NAME = "value" }`))
			return nil
		}
		for _, c := range n.children() {
			if out == nil {
				out = map[string]T{}
			}
			if len(allowed) > 0 && !slices.Contains(allowed, c.name) {
				c.unknown(n.key, allowed)
			} else {
				out[c.name] = k.read(c.only())
			}
		}
		return out
	}
	return codec[map[string]T]{read, func(values map[string]T) string {
		return printTable(list.Map(slices.Sorted(maps.Keys(values)), func(name string) tomlKey {
			return tomlKey{name: name, binding: k.in(new(values[name]))}
		}))
	}, true, nil}
}
