package input

import (
	"strings"
	"testing"
)

func TestCheckTOML(t *testing.T) {
	deep := strings.Repeat("[", 1000)
	for text, fits := range map[string]bool{
		"x = 1\n[a.b.c]\ny = [[1], [2]]\n":                                 true,
		"x = " + deep:                                                      false,
		"x" + strings.Repeat(".a", 1000) + " = 1":                          false,
		"[x" + strings.Repeat(".a", 1000) + "]":                            false,
		"x = " + strings.Repeat("{a=", 1000):                               false,
		"x = \"" + deep + "\"":                                             true,
		"x = '" + deep + "'":                                               true,
		"x = \"\"\"\n" + deep + "\"\"\"\ny = '''" + deep + "\n'''":         true,
		"x = \"\\\"" + deep + "\"":                                         true,
		"# " + deep + "\nx = 1":                                            true,
		"x = \"open\n" + deep:                                              false,
		"x = [\n" + strings.Repeat("  0.5, # [\n", 1000) + "]\n":           true,
		strings.Repeat("[[a.b]]\nx.y = 0.5\nz = {c = [1.5, 2.5]}\n", 1000): true,
	} {
		if _, err := CheckTOML(text); (err == nil) != fits {
			t.Errorf("%.60q: %v", text, err)
		}
	}
}

func FuzzCheckTOML(f *testing.F) {
	f.Add("x = '''[''' # [\n\"\"\"\\\"\"\"\"")
	f.Fuzz(func(t *testing.T, s string) { CheckTOML(s) })
}

func TestCheckJSON(t *testing.T) {
	if err := CheckJSON(`{"a": [0, 0], "b": {}}`, AnyValue, 5); err != nil {
		t.Error(err)
	}
	if err := CheckJSON([]byte(`{"a": [0, 0], "b": {}}`), AnyValue, 4); err == nil {
		t.Error("accepted")
	}
	if err := CheckJSON(`{"a": [0, 0, 0, 0, 0, 0, 0], "b": {}}`, Composite, 3); err != nil {
		t.Error(err)
	}
}
