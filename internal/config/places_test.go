package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"

	"planner/internal/evidence/must"
)

func TestPlaces(t *testing.T) {
	text := `# comment with [brackets] and key = value
top = 1
"quoted key" = 2   # = 3
a.b . "c.d" = 4

[section] # [not.this]
text = "# no comment [x] \" y = 1"
raw = 'C:\'
long = """
not = "a key"
"""" # a quote before the end
last = '''
[nor.a.section]
''''
when = 1979-05-27 07:32:00Z
list = [ 1, # one
  2,
  [ "]", "a,b" ],
]
inline = { x = 1, y.z = "}", list = [ { q = 1 }, { q = 2 } ] }

[section.sub]
k = 1
  [ section . "sub 2" ]
  k = 1
[[array]]
k = 1
[array.inner]
k = 2
[[array]]
k = 3
[[array.deep]]
k = 4
[[array.deep]]
k = 5
[deep.er.est]
`
	want := map[string]int{
		"top": 2, `"quoted key"`: 3, "a": 4, "a.b": 4, `a.b."c.d"`: 4,
		"section": 6, "section.text": 7, "section.raw": 8, "section.long": 9, "section.last": 12, "section.when": 15,
		"section.list": 16, "section.list[0]": 16, "section.list[1]": 17, "section.list[2]": 18,
		"section.list[2][0]": 18, "section.list[2][1]": 18,
		"section.inline": 20, "section.inline.x": 20, "section.inline.y": 20, "section.inline.y.z": 20,
		"section.inline.list": 20, "section.inline.list[0]": 20, "section.inline.list[0].q": 20,
		"section.inline.list[1]": 20, "section.inline.list[1].q": 20,
		"section.sub": 22, "section.sub.k": 23, `section."sub 2"`: 24, `section."sub 2".k`: 25,
		"array": 26, "array[0]": 26, "array[0].k": 27, "array[0].inner": 28, "array[0].inner.k": 29,
		"array[1]": 30, "array[1].k": 31, "array[1].deep": 32, "array[1].deep[0]": 32, "array[1].deep[0].k": 33,
		"array[1].deep[1]": 34, "array[1].deep[1].k": 35,
		"deep": 36, "deep.er": 36, "deep.er.est": 36,
	}
	var tree map[string]any
	must.Get(toml.Decode(text, &tree))
	for _, text := range []string{text, strings.ReplaceAll(text, "\n", "\r\n")} {
		got := map[string]int{}
		for path, at := range placesOf(text, "f") {
			got[path] = at.line
		}
		for _, path := range slices.Sorted(maps.Keys(want)) {
			if got[path] != want[path] {
				t.Errorf("%s is on line %d, want %d", path, got[path], want[path])
			}
			delete(got, path)
		}
		if len(got) > 0 {
			t.Errorf("too many places: %v", got)
		}
	}
}

func TestPlacesColumns(t *testing.T) {
	places := placesOf("[a]\n  k = { x = 1,  y = [7,\n 8] }\n", "f")
	for path, want := range map[string]place{
		"a.k": {file: "f", line: 2, column: 3}, "a.k.x": {file: "f", line: 2, column: 9},
		"a.k.y": {file: "f", line: 2, column: 17}, "a.k.y[1]": {file: "f", line: 3, column: 2},
	} {
		if places[path] != want {
			t.Errorf("%s is at %+v, want %+v", path, places[path], want)
		}
	}
}

// paths lists every key and list element of a decoded tree.
func paths(prefix string, v any, out map[string]bool) {
	if table, ok := v.(map[string]any); ok {
		for key, inner := range table {
			out[join(prefix, key)] = true
			paths(join(prefix, key), inner, out)
		}
		return
	}
	if list, ok := elements(v); ok {
		for i, inner := range list {
			out[prefix+index(i)] = true
			paths(prefix+index(i), inner, out)
		}
	}
}

// samePlaces reports a path that only one of the finder and the decoder finds.
func samePlaces(text string) error {
	tree := map[string]any{}
	if _, err := toml.Decode(text, &tree); err != nil {
		return nil
	}
	decoded := map[string]bool{}
	paths("", tree, decoded)
	found := placesOf(withoutMark(text), "f")
	for _, path := range slices.Sorted(maps.Keys(decoded)) {
		at, ok := found[path]
		if !ok {
			return fmt.Errorf("no place for %s", path)
		}
		if lines := strings.Count(text, "\n") + 1; at.line < 1 || at.line > lines {
			return fmt.Errorf("%s on line %d of %d", path, at.line, lines)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(found)) {
		if !decoded[path] {
			return fmt.Errorf("%s is nowhere in the tree", path)
		}
	}
	return nil
}

// FuzzPlaces compares the finder with the decoder: both find the same keys.
func FuzzPlaces(f *testing.F) {
	for _, text := range []string{
		"a = 1", "[a]\nb.c = {d = [1, {e = 2}]}", "[[a]]\n[[a.b]]\n[a.b.c]\nd = 1\n[[a]]\nx = '''\n'''", "\"\\u0041\" = 'x'",
		"a = [\n# c\n1,\n]\n", "a = {\n b = 1,\n}\n", `a = """""" `, `a = """x""""" `, "a=[[],[[]]]", "''=1", "a.''.b=1", "a = 1 # [b]\n\n",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if err := samePlaces(text); err != nil {
			t.Errorf("%v in %q", err, text)
		}
	})
}
