package main

import (
	"bytes"
	"strings"
	"testing"

	"planner/internal/list"
)

// TestHelp looks at the help of every command: no line is wider than it may be, and nothing
// is lost where lines are broken.
func TestHelp(t *testing.T) {
	app := newApp(&bytes.Buffer{}, &bytes.Buffer{}, &interrupts{})
	for _, c := range app.Commands {
		code, out, told := inProcess(t.Context(), c.Name, "--help")
		if code != 0 || told != "" {
			t.Errorf("%s: exit code %d: %s", c.Name, code, told)
		}
		if code, behind, told := inProcess(t.Context(), c.Name, "some.toml", "--help"); code != 0 || len(c.Subcommands) == 0 && behind+told != out {
			t.Errorf("%s some.toml --help: exit code %d: %s%s", c.Name, code, behind, told)
		}
		for line := range strings.Lines(out) {
			if len(strings.TrimRight(line, "\n")) > helpWidth {
				t.Errorf("%s: %d columns: %s", c.Name, len(line), line)
			}
		}
		if flat := strings.Join(strings.Fields(out), " "); !strings.Contains(flat, strings.Join(strings.Fields(c.Usage), " ")) {
			t.Errorf("%s: its usage is not in its help:\n%s", c.Name, flat)
		}
	}
}

// TestCompletion asks what may stand at the end of command lines, as shells do: some split
// words at equals signs.
func TestCompletion(t *testing.T) {
	app := newApp(&bytes.Buffer{}, &bytes.Buffer{}, &interrupts{})
	for _, test := range []struct{ words, want string }{
		{"es", "estimate"},
		{"estimate --gp", "--gpu"},
		{"estimate --gpu h200", "H200 SXM"},
		{`estimate --gpu "H200`, "H200 SXM"},
		{"estimate --gpu=h200", "--gpu=H200 SXM"},
		{"estimate --gpu = h200", "H200 SXM"},
		{"estimate --model llama-3.3", "Llama-3.3-70B"},
		{"estimate --weights fp", "fp16 fp8"},
		{"estimate --workload ", "chat code long-context-qa summarization"},
		{"estimate --set demand.ra", "demand.rate= demand.rate_of="},
		{"estimate --set model.kv_cache = ", "auto fp8"},
		{"estimate --set engine.stream=t", "engine.stream=true"},
		{"search --slo ttft.p9", "ttft.p90= ttft.p95= ttft.p99= ttft.p99.9="},
		{"bench --api c", "completions chat"},
		{"bench --model x", ""},
		{"catalog g", "gpus"},
		{"catalog models qwen2.5-72", "Qwen2.5-72B"},
		{"report --format m", "markdown"},
		{"schema p", "plan"},
		{"plan plan", ""},
	} {
		got := strings.Join(completions(app, list.Map(strings.Split(test.words, " "), unquoted)), " ")
		if want := test.want; got != want {
			t.Errorf("planner %s: %q, want %q", test.words, got, want)
		}
	}
}
