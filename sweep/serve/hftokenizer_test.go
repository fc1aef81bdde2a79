package serve

import (
	"cmp"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"planner/internal/evidence/must"
)

// TestTokenizerFolder: the pieces of the tokenizer that is written are the tokens of
// the server, words have the server's ids, and no id is left out, as clients draw from
// them all.
func TestTokenizerFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "tok")
	must.OK((&Simulator{}).WriteTokenizer(dir))
	text := must.Get(os.ReadFile(filepath.Join(dir, "tokenizer.json")))
	var got struct {
		Pre   struct{ Pattern struct{ Regex string } } `json:"pre_tokenizer"`
		Model struct{ Vocab map[string]int32 }
	}
	must.OK(json.Unmarshal(text, &got))
	piece := regexp.MustCompile(got.Pre.Pattern.Regex)
	for _, s := range []string{"Hello world", "  two  spaces ", " abc abd", "ünïcödé ✓ 漢字漢字漢字", "line\nbreak\r\n tab\t", "x"} {
		if n, want := len(piece.FindAllString(s, -1)), len(tokenize(nil, s)); n != want {
			t.Errorf("%q has %d pieces, want %d", s, n, want)
		}
	}
	seen := make([]bool, len(got.Model.Vocab))
	for word, id := range got.Model.Vocab {
		seen[id] = true
		if after := len(tokenize(nil, "x"+word+" abc")); after != 3 && (id < words || id == unknownToken) {
			t.Errorf("%d decodes to %q, which is no token by itself", id, word)
		}
		if id < words && tokenOf(word) != id {
			t.Errorf("%q has the id %d, want %d", word, id, tokenOf(word))
		}
	}
	for id, ok := range seen {
		if !ok {
			t.Errorf("no word has the id %d", id)
		}
	}
}

// TestHuggingFaceTokenizer counts with the library of Hugging Face beside the server.
// It is installed with "pip install transformers"; PLANNER_PYTHON names another
// python3.
func TestHuggingFaceTokenizer(t *testing.T) {
	python := cmp.Or(os.Getenv("PLANNER_PYTHON"), "python3")
	if err := exec.Command(python, "-c", "import importlib.util, sys; sys.exit(importlib.util.find_spec('transformers') is None)").Run(); err != nil {
		t.Skipf("NOT CHECKED: %s has no transformers: %v", python, err)
	}
	dir := t.TempDir()
	must.OK((&Simulator{}).WriteTokenizer(dir))
	r := run(t, quick())
	cmd := exec.Command(python, "testdata/tokenizer.py", r.url, dir)
	cmd.Env = append(os.Environ(), "HF_HUB_OFFLINE=1")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.HasSuffix(strings.TrimSpace(string(out)), "alike") {
		t.Errorf("%v:\n%s", err, out)
	}
}
