package main

import (
	"bytes"
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"planner/internal/evidence/must"

	"github.com/google/go-cmp/cmp"
	"github.com/urfave/cli/v2"
)

var (
	rewrite = flag.Bool("update", false, "rewrite the output that the pages for users show")
	slow    = flag.Bool("slow", false, "also run the commands of the pages that take half a minute")
)

// TestPages runs the commands that the pages for users show with their output, in ```console
// blocks, and wants that output from them; a line "..." stands for what is left out. Pages of
// one reader share a folder, and a ```toml block that begins with "# NAME" is a file there.
func TestPages(t *testing.T) {
	for _, c := range []struct {
		slow  bool
		pages []string
	}{{false, []string{"for-sre.md"}}, {false, []string{"for-platform.md", "for-research.md"}}, {true, []string{"for-finance.md"}}, {true, []string{"fleet.md"}}} {
		t.Run(c.pages[0], func(t *testing.T) {
			if c.slow && !*slow {
				t.Skip("takes half a minute: -slow runs it")
			}
			t.Parallel()
			shell := pageShell{folder: t.TempDir(), ran: map[string][]string{}}
			for _, page := range c.pages {
				shell.page(t, filepath.Join("..", "..", "docs", page))
			}
		})
	}
}

// pageShell runs the commands of pages in a folder, each once.
type pageShell struct {
	folder string
	ran    map[string][]string
}

// page runs the commands of a page.
func (s *pageShell) page(t *testing.T, path string) {
	text := must.Get(os.ReadFile(path))
	var fresh []string
	kind, lines := "", strings.Split(string(text), "\n")
	for i := 0; i < len(lines); i++ {
		fresh = append(fresh, lines[i])
		word, fence := strings.CutPrefix(lines[i], "```")
		switch {
		case fence:
			kind = word
			if name, named := strings.CutPrefix(lines[min(i+1, len(lines)-1)], "# "); kind == "toml" && named {
				end := slices.Index(lines[i+1:], "```")
				put(t, filepath.Join(s.folder, name), strings.Join(lines[i+1:i+1+end], "\n")+"\n")
			}
		case kind == "console" && strings.HasPrefix(lines[i], "$ "):
			command := lines[i][2:]
			for strings.HasSuffix(command, `\`) || strings.HasSuffix(command, "|") {
				i++
				command += "\n" + lines[i]
				fresh = append(fresh, lines[i])
			}
			begin := i + 1
			for !strings.HasPrefix(lines[i+1], "$ ") && lines[i+1] != "```" {
				i++
			}
			shown := lines[begin : i+1]
			blank := len(shown) > 0 && shown[len(shown)-1] == ""
			if blank {
				shown = shown[:len(shown)-1]
			}
			now := again(t, command, shown, s.output(t, command, shown))
			same := func(lines []string) string { return lastDigits.ReplaceAllString(strings.Join(lines, "\n"), "$1") }
			if diff := cmp.Diff(same(shown), same(now)); diff != "" && !*rewrite {
				t.Errorf("%s: %s prints something else now; go test -update rewrites the page (-shown +printed):\n%s", path, command, diff)
			}
			fresh = append(fresh, now...)
			if blank {
				fresh = append(fresh, "")
			}
		}
	}
	if *rewrite {
		put(t, path, strings.Join(fresh, "\n"))
	}
}

// output is what a command prints, in the lines of a terminal of 80 columns.
func (s *pageShell) output(t *testing.T, command string, shown []string) []string {
	if out, ran := s.ran[command]; ran {
		return out
	}
	if _, err := exec.LookPath("jq"); err != nil && strings.Contains(command, "jq ") {
		return shown
	}
	var stderr bytes.Buffer
	c := exec.CommandContext(t.Context(), "sh", "-c", command)
	c.Dir, c.Stderr, c.Env = s.folder, &stderr, append(os.Environ(), "COLUMNS=80", "LC_ALL=C")
	out, err := c.Output()
	if err != nil {
		t.Errorf("%s: %v: %s", command, err, stderr.Bytes())
	}
	lines := strings.Split(strings.TrimRight(string(out), "\n"), "\n")
	if len(out) == 0 {
		lines = nil
	}
	s.ran[command] = lines
	return lines
}

// figures are what may have changed in a line that is shown elsewhere now; p99 is a name.
var figures = regexp.MustCompile(`[-+]?\b[0-9][0-9.,]*|\s+`)

// lastDigits of a figure in full may be others where sums are made in another order.
var lastDigits = regexp.MustCompile(`(\.[0-9]{9})[0-9]+`)

// again shows of an output what was shown of it: the same number of lines from the place where
// each stretch between two "..." stands now.
func again(t *testing.T, command string, shown, output []string) []string {
	const gap = "..."
	var now []string
	at := 0 // the next line of the output
	for begin := 0; begin < len(shown); {
		if shown[begin] == gap {
			begin++
			continue
		}
		end := begin + 1
		for end < len(shown) && shown[end] != gap {
			end++
		}
		stretch, place := shown[begin:end], -1
		for len(stretch) > 1 && stretch[len(stretch)-1] == "" { // a blank line beside "..." is of the page
			stretch = stretch[:len(stretch)-1]
		}
		for i := at; i < len(output) && (place < 0 || !slices.Equal(output[place:min(place+len(stretch), len(output))], stretch)); i++ {
			if slices.Equal(output[i:min(i+len(stretch), len(output))], stretch) || place < 0 && alike(output[i], stretch[0]) {
				place = i
			}
		}
		if begin == 0 {
			place = 0
		}
		if place < 0 {
			t.Errorf("%s prints nothing like %q any more", command, stretch[0])
			return shown
		}
		if place > at {
			now = append(now, gap)
		}
		at = min(place+len(stretch), len(output))
		now = append(append(now, output[place:at]...), shown[begin+len(stretch):end]...)
		begin = end
	}
	if at < len(output) {
		now = append(now, gap)
	}
	return now
}

// alike reports whether two lines differ in figures only.
func alike(a, b string) bool {
	return figures.ReplaceAllString(a, "") == figures.ReplaceAllString(b, "")
}

// TestCommandsOfPages wants every option of the commands that pages name to be known.
func TestCommandsOfPages(t *testing.T) {
	pages := must.Get(filepath.Glob("../../docs/*.md"))
	command := regexp.MustCompile(`(?m)^(?:\$ )?planner ([a-z](?:'[^']*'|"[^"]*"|[^\n'"|>&#;\\]|\\\n)*)`)
	word := regexp.MustCompile(`(?:'[^']*'|"[^"]*"|[^\s'"])+`)
	for _, page := range append(pages, "../../README.md") {
		text := must.Get(os.ReadFile(page))
		for _, m := range command.FindAllStringSubmatch(string(text), -1) {
			args := []string{"planner"}
			for _, w := range word.FindAllString(strings.ReplaceAll(m[1], "\\\n", " "), -1) {
				args = append(args, strings.NewReplacer("'", "", `"`, "").Replace(w))
			}
			app := newApp(io.Discard, io.Discard, &interrupts{})
			for _, c := range app.Commands {
				c.Action = func(*cli.Context) error { return nil }
			}
			if err := app.Run(permute(app, args)); err != nil {
				t.Errorf("%s: %s: %v", page, m[0], err)
			}
		}
	}
}
