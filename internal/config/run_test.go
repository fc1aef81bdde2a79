package config

import (
	"reflect"
	"strings"
	"testing"

	"planner/internal/evidence/must"
)

// own is a configuration of GPUs and a model of the user's own, one GPU of which is
// only priced.
const own = `
[demand]
rate = 1
[slo]
ttft = { p99 = "500ms" }
[model]
name = "tiny"
[hardware]
gpu = ["example x1", "H200 SXM"]
price_per_gpu_hour = { "h100 sxm" = 2.5 }
[workload]
prompt = { dist = "fixed", value = 100 }
output = { dist = "fixed", value = 10 }
`

func TestRunLoadsBackWithoutTheUsersCatalog(t *testing.T) {
	catalog := must.Get(ReadCatalog(write(t, userCatalog+"[[gpu]]\nname = \"Other\"\n")))
	first := must.Get(LoadWith(catalog, write(t, own), nil, For("plan")))
	if text := string(first.TOML()); strings.Contains(text, "[run]") {
		t.Errorf("no run was made, but the configuration says\n%s", text)
	}
	first.Run = Invocation{Command: "sweep", Args: []string{"p.toml"}, Flags: map[string]string{"rates": "1,2,5", "a b": `"q"`}}
	printed := string(first.TOML())
	second := mustLoad(t, printed, For("plan"))
	if !reflect.DeepEqual(first, second) {
		t.Errorf("printed\n%sloads as\n%+v, want\n%+v", printed, second, first)
	}
	if again := string(second.TOML()); again != printed {
		t.Errorf("printed twice it differs:\n%s\n%s", printed, again)
	}
	if strings.Contains(printed, "Other") {
		t.Errorf("holds a row that nothing names:\n%s", printed)
	}
}

func TestCatalogOfTheCommandLineHasTheLastWord(t *testing.T) {
	catalog := must.Get(ReadCatalog(write(t, userCatalog)))
	text := own + "[[run.catalog.gpu]]\nname = \"EXAMPLE X1\"\nmemory_gb = 1\n[[run.catalog.gpu]]\nname = \"H200 SXM\"\nlist_price_usd_per_gpu_hour = 1\n"
	c := must.Get(LoadWith(catalog, write(t, text), nil, For("plan")))
	if got := c.GPUs[0].Hardware.Memory; got != 64<<30 {
		t.Errorf("memory %v, want that of --catalog", got)
	}
	if got := c.GPUs[1].PricePerGPUHour; got != 1 {
		t.Errorf("price %v, want that of the file", got)
	}
	if _, err := catalog.GPU("H200 SXM"); err != nil || len(catalog.Given(0, "H200 SXM")) > 0 {
		t.Error("reading a configuration changed the caller's catalog")
	}
}

func TestWrongRun(t *testing.T) {
	for text, want := range map[string]string{
		"[run]\ncomand = \"plan\"\n":                              "p.toml:2: run.comand: is no key, the nearest valid key is run.command",
		"[run]\nflags = { a = 1 }\n":                              "p.toml:2: run.flags.a: is 1, want a string in quotes",
		"[[run.catalog.gpu]]\nname = \"X\"\nmemory_gb = \"80\"\n": "p.toml:3: run.catalog.gpu.memory_gb: is \"80\", want a number",
		"[run]\ncatalog = 3\n":                                    "p.toml:2: run.catalog: is 3, want tables written [[run.catalog.gpu]]",
	} {
		if got := wrong(t, text); !strings.Contains(got, want) {
			t.Errorf("%q: %s, want %q", text, got, want)
		}
	}
}
