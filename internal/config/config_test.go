package config

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

// write puts a configuration into a file of its own.
func write(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "planner.toml")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// mustLoad loads a text that must be right.
func mustLoad(t *testing.T, text string, need Need, overrides ...Override) *Config {
	t.Helper()
	c, err := Load(write(t, text), overrides, need)
	if err != nil {
		t.Fatalf("load:\n%s\n%v", text, err)
	}
	return c
}

func TestTemplateLoads(t *testing.T) {
	for _, model := range []string{"", "llama-3.1-8b", "gpt-oss-120b", "Qwen2.5-7B", "deepseek-v3"} {
		for _, gpu := range []string{"", "L40S", "h200 sxm"} {
			for _, engine := range append(engineKinds(), "") {
				c := mustLoad(t, string(Template(model, gpu, engine)), For("plan"))
				if runnable, _ := c.Candidates(); len(runnable) == 0 {
					t.Errorf("%q %q %q: nothing to run", model, gpu, engine)
				}
			}
		}
	}
}

func TestPrintedConfigurationLoadsBack(t *testing.T) {
	text, err := os.ReadFile("testdata/interface.toml")
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"plan", "estimate", "sweep", "fit"} {
		first := mustLoad(t, string(text), For(command))
		second := mustLoad(t, string(first.TOML()), For(command))
		if !reflect.DeepEqual(first, second) {
			t.Errorf("%s: got\n%+v, want\n%+v", command, second, first)
		}
	}
}
