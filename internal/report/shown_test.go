package report

import (
	"os/exec"
	"strings"
	"testing"
	"unicode"

	"planner/internal/evidence/must"
)

const hostile = "a\x1b[2Jb\u009b31mc\u202ed\x07e\rf\x9bg<script>|`x`"

// hostileDocument holds a text that a terminal obeys, in every place that takes one.
func hostileDocument() Document {
	chart := &Chart{Title: hostile, Name: "chart", XLabel: hostile, YLabel: hostile,
		Series: []Line{{Name: hostile, Points: []ChartPoint{{X: 1, Y: 2, Low: 2, High: 2, Note: hostile}, {X: 2, Y: 3, Low: 3, High: 3}}}},
		Limits: []Reference{{2, hostile}}, Rates: []Reference{{1, hostile}}}
	d := Document{Title: hostile, Data: Data{Header: []string{hostile}, Rows: [][]string{{hostile}}}}
	d.add(
		Heading{Text: hostile}, Paragraph{Text: hostile}, Facts{{hostile, hostile, Plain}}, Bullets{Items: []string{hostile}}, Code{hostile},
		Table{Caption: hostile, Columns: []Column{{Name: hostile}}, Rows: [][]Cell{{{Text: hostile}}}}, chart)
	return d
}

// TestNothingIsObeyed: no format passes on what a terminal or a viewer would obey.
func TestNothingIsObeyed(t *testing.T) {
	d := hostileDocument()
	files, _, err := Files(d)
	must.OK(err)
	files["text"], files["csv"] = Text(d, 80, false), d.Data.CSV()
	for name, data := range files {
		if strings.HasSuffix(name, ".png") || strings.HasSuffix(name, ".pdf") {
			continue
		}
		for _, r := range string(data) {
			if unicode.Is(unicode.Cc, r) && r != '\n' && r != '\t' || unicode.Is(unicode.Bidi_Control, r) {
				t.Errorf("%s holds %U", name, r)
				break
			}
		}
		own := 0
		if strings.HasSuffix(name, "html") {
			own = 1
		}
		if strings.Count(string(data), "<script>") != own && (own == 1 || strings.HasSuffix(name, "svg")) {
			t.Errorf("%s holds an element of the text", name)
		}
	}
}

func TestFormulas(t *testing.T) {
	d := Document{Data: Data{Header: []string{"x"}, Rows: [][]string{{"=1+1"}, {"+cmd"}, {"-2+3"}, {"@sum"}, {" =1"}, {"-1.5e-3"}, {"+4"}, {"plain"}}}}
	want := "x\n'=1+1\n'+cmd\n'-2+3\n'@sum\n' =1\n-1.5e-3\n+4\nplain\n"
	if got := string(d.Data.CSV()); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestBrokenCommandIsTheSame: a shell reads a command line that was broken over several
// lines as it reads the whole.
func TestBrokenCommandIsTheSame(t *testing.T) {
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("no shell")
	}
	words := func(command string) string {
		out, err := exec.Command(shell, "-c", "show() { for w; do printf '[%s]' \"$w\"; done; }; show "+command).CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v: %s", command, err, out)
		}
		return string(out)
	}
	for _, command := range []string{
		"vllm serve 'my model' --override '{\"a\":  -1, \"b\": -2}' --name 'it'\\''s  -x y' --max-num-seqs 128",
		"vllm serve '$(touch x)' --served-model-name '`id`' -- ';' '-a -b'",
	} {
		if got, want := words(breakCommand(command, 30)), words(command); got != want {
			t.Errorf("%s: got %s, want %s", command, got, want)
		}
	}
}
