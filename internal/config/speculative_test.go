package config

import (
	"math"
	"strings"
	"testing"
)

func TestSpeculative(t *testing.T) {
	with := func(table string) string { return minimal + "[engine]\nspeculative = " + table + "\n" }
	for _, c := range []struct {
		table string
		want  []float64
	}{
		{`{ method = "eagle", tokens = 2 }`, []float64{0.7296, 0.5208}}, // published of llama-3.1-8b
		{`{ method = "ngram", tokens = 2, acceptance = 0.5 }`, []float64{0.5, 0.25}},
		{`{ method = "draft", tokens = 3, acceptance = [0.8, 0.4], model = "llama-3.2-1b" }`, []float64{0.8, 0.4, 0.2}},
		{`{ method = "ngram", tokens = 1, accepted = 1.85 }`, []float64{0.85}},
	} {
		cfg := mustLoad(t, with(c.table), For("estimate"))
		got := cfg.Engine.Speculation
		if len(got.Accepted) != len(c.want) || got.Tokens != len(c.want) {
			t.Errorf("%s: %+v", c.table, got)
			continue
		}
		for i := range c.want {
			if math.Abs(got.Accepted[i]-c.want[i]) > 1e-9 {
				t.Errorf("%s: %v, want %v", c.table, got.Accepted, c.want)
			}
		}
		again := mustLoad(t, string(cfg.TOML()), For("estimate"))
		if again.Engine.Speculation.PerStep() != got.PerStep() || again.Engine.DraftModel != cfg.Engine.DraftModel {
			t.Errorf("%s: printed and read again it is %+v", c.table, again.Engine.Speculation)
		}
	}
	for version, want := range map[string]int{"0.12.0": 1, "0.20.0": 0, "": 0} {
		cfg := mustLoad(t, with(`{ method = "draft", tokens = 3, acceptance = 0.8, model = "llama-3.2-1b" }`)+"version = \""+version+"\"\n", For("estimate"))
		if got := strings.Count(strings.Join(cfg.Warnings, "\n"), "draft models"); got != want {
			t.Errorf("release %q: %q", version, cfg.Warnings)
		}
	}
	for table, want := range map[string]string{
		`{ method = "eagel", tokens = 2 }`:                                              "nearest: eagle",
		`{ method = "mtp" }`:                                                            "lacks the key tokens",
		`{ method = "ngram", tokens = 2 }`:                                              "none is published for ngram of Llama-3.1-8B",
		`{ method = "mtp", tokens = 2, acceptance = 0.5 }`:                              "Llama-3.1-8B has no layers that predict several tokens; want eagle, ngram or draft",
		`{ method = "ngram", tokens = 2, acceptance = [0.5, 0.6] }`:                     "no more than the position before it",
		`{ method = "ngram", tokens = 2, accepted = 3.5 }`:                              "at most 1 + tokens = 3",
		`{ method = "ngram", tokens = 2, accepted = 2, acceptance = 0.5 }`:              "want one of them",
		`{ method = "draft", tokens = 2, acceptance = 0.5 }`:                            "lacks model",
		`{ method = "draft", model = "qwen3-0.6b", tokens = 2, acceptance = 0.5 }`:      "a vocabulary of 151936 tokens, and Llama-3.1-8B has 128256",
		"{ method = \"ngram\", tokens = 2, acceptance = 0.5 }\nasync_scheduling = true": "engine.async_scheduling: is true, want false or auto",
		`{ method = "ngram", tokens = 2, acceptence = 0.5 }`:                            "nearest valid key is engine.speculative.acceptance",
	} {
		_, err := Load(write(t, with(table)), nil, For("estimate"))
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), ":") {
			t.Errorf("%s: %v, want %s", table, err, want)
		}
	}
}
