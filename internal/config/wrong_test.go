package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"planner/internal/evidence/must"

	"github.com/rogpeppe/go-internal/txtar"
)

// TestWrongConfigurations loads every configuration of testdata/wrong.txtar and
// compares the problems, line by line, with what stands behind it.
//
// A comment line "#! command NAME" names the command (default: plan), "#! set KEY=VALUE"
// and "#! flag --NAME KEY=VALUE" add overrides, "#! file NAME TEXT" a neighbouring file.
func TestWrongConfigurations(t *testing.T) {
	archive, whole := wrongConfigurations()
	wants := map[string]string{}
	for _, f := range archive.Files {
		wants[f.Name] = string(f.Data)
	}
	out := archive.Files[:1:1]
	cases := 0
	for _, f := range archive.Files[1:] {
		name, isWant := strings.CutSuffix(f.Name, ".want")
		if isWant {
			continue
		}
		cases++
		got := ""
		t.Run(name, func(t *testing.T) { got = wrong(t, whole(f)) })
		out = append(out, f, txtar.File{Name: name + ".want", Data: []byte(got)})
		if got == "" {
			t.Errorf("%s: loads, want problems", name)
		}
		if want := wants[name+".want"]; got != want && !*update {
			t.Errorf("%s:\n%sgot:\n%swant:\n%s", name, whole(f), got, want)
		}
	}
	if cases < 60 {
		t.Errorf("%d wrong configurations, want at least 60", cases)
	}
	if *update {
		archive.Files = out
		must.OK(os.WriteFile(wrongFile, txtar.Format(archive), 0o644))
	}
}

const wrongFile = "testdata/wrong.txtar"

// wrongConfigurations reads that file, and returns what gives the text of one of its files: a line "..." stands for
// the first file.
func wrongConfigurations() (archive *txtar.Archive, whole func(txtar.File) string) {
	archive = must.Get(txtar.ParseFile(wrongFile))
	return archive, func(f txtar.File) string {
		return strings.Replace(string(f.Data), "...\n", string(archive.Files[0].Data), 1)
	}
}

// wrong returns the problems of one configuration, its folder cut off.
func wrong(t *testing.T, text string) string {
	t.Helper()
	folder := t.TempDir()
	t.Chdir(folder)
	command := "plan"
	var overrides []Override
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) < 3 || words[0] != "#!" {
			continue
		}
		switch words[1] {
		case "command":
			command = words[2]
		case "set":
			key, value, _ := strings.Cut(strings.TrimSpace(strings.SplitN(line, " ", 3)[2]), "=")
			overrides = append(overrides, Override{Key: key, Value: value})
		case "flag":
			key, value, _ := strings.Cut(strings.TrimSpace(strings.SplitN(line, " ", 4)[3]), "=")
			overrides = append(overrides, Override{Key: key, Value: value, Flag: words[2]})
		case "file":
			content := strings.ReplaceAll(strings.TrimSpace(strings.SplitN(line, " ", 4)[3]), `\n`, "\n")
			must.OK(os.WriteFile(words[2], []byte(content), 0o600))
		}
	}
	must.OK(os.WriteFile("p.toml", []byte(text), 0o600))
	_, err := Load("p.toml", overrides, For(command))
	if err == nil {
		return ""
	}
	resolved, _ := filepath.EvalSymlinks(folder)
	got := strings.ReplaceAll(err.Error(), folder+"/", "")
	return strings.ReplaceAll(got, resolved+"/", "") + "\n"
}
