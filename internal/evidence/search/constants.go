package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"planner/internal/list"
)

const (
	// numbersFile holds the numbers of the search that could have been others.
	numbersFile = "search/numbers.go"
	knownFile   = "internal/evidence/random/testdata/known.json"
)

// quickKnown are those of the known instances that are searched soon, of all kinds.
var quickKnown = []int{2, 5, 6, 16, 20, 24, 27, 28, 36}

// number is one of them, with the place of its value in the file.
type number struct {
	name     string
	from, to int
}

// numbers lists those of a source in the groups whose comment begins with one of the headings.
func numbers(source []byte, headings []string) ([]number, error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, numbersFile, source, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	var all []number
	for _, d := range file.Decls {
		group, ok := d.(*ast.GenDecl)
		if !ok || !slices.ContainsFunc(headings, func(h string) bool { return strings.HasPrefix(group.Doc.Text(), h) }) {
			continue
		}
		for _, s := range group.Specs {
			values, ok := s.(*ast.ValueSpec)
			if !ok {
				continue
			}
			for i, v := range values.Values {
				if follows(v) {
					continue
				}
				all = append(all, number{values.Names[i].Name, files.Position(v.Pos()).Offset, files.Position(v.End()).Offset})
			}
		}
	}
	return all, nil
}

// follows reports whether a value is one of other numbers.
func follows(value ast.Expr) (found bool) {
	ast.Inspect(value, func(n ast.Node) bool {
		if _, ok := n.(*ast.SelectorExpr); ok {
			return false
		}
		_, name := n.(*ast.Ident)
		found = found || name
		return true
	})
	return found
}

// variation is what the searches of the mixed set and of the quick known instances come to with
// other numbers.
type variation struct {
	// rows are the answers in words, but for how long the computer took.
	rows          string
	n             int
	covered, safe int
	// squares are of the logarithms of the errors; seconds sums up those of engine time, of the searches
	// that take some, and trials those of the number of trials of the others.
	squares, seconds, trials float64
	timed, free              float64
}

// row is the variation beside the usual one.
func (v *variation) row(usual *variation) string {
	if v == nil {
		return "- | - | - | - | -" // it has no such value
	}
	if v != usual && v.rows == usual.rows {
		return "= | = | = | = | ="
	}
	return fmt.Sprintf("%.4f | %d | %d | %.2f | %.2f", math.Sqrt(v.squares/float64(v.n)), v.covered, v.safe,
		math.Exp((v.seconds-usual.seconds)/v.timed), math.Exp((v.trials-usual.trials)/v.free))
}

// constants prints the error of the study with each number of the search at half and at twice
// its value, each in a build of the commands in which the number is another. It is run in the
// root of the repository.
func (s *study) constants(truths, headings string) error {
	source, err := os.ReadFile(numbersFile)
	if err != nil {
		return err
	}
	all, err := numbers(source, strings.Split(headings, ","))
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "planner-constants-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := writeQuick(filepath.Join(dir, "known.json")); err != nil {
		return err
	}
	usual, err := vary(source, dir, truths)
	if err != nil {
		return err
	}
	s.printf("%d searches and races\n\n| number | value | half: RMSE | covers | safe | engine time | trials | twice: RMSE | covers | safe | engine time | trials |\n"+
		"|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n| none changed | | %s | %s |\n", usual.n, usual.row(usual), usual.row(usual))
	for _, n := range all {
		value := string(source[n.from:n.to])
		var seen [2]*variation
		for i, change := range []string{"/ 2", "* 2"} {
			seen[i], _ = vary(fmt.Appendf(nil, "%s(%s) %s%s", source[:n.from], value, change, source[n.to:]), dir, truths)
		}
		s.printf("| %s | %s | %s | %s |\n", n.name, value, seen[0].row(usual), seen[1].row(usual))
	}
	return nil
}

// writeQuick writes the known instances that are searched soon.
func writeQuick(file string) error {
	data, err := os.ReadFile(knownFile)
	if err != nil {
		return err
	}
	var all []json.RawMessage
	if err := json.Unmarshal(data, &all); err != nil {
		return err
	}
	data, err = json.Marshal(list.Map(quickKnown, func(i int) json.RawMessage { return all[i] }))
	return cmp.Or(err, os.WriteFile(file, data, 0o600))
}

// vary builds the commands with other numbers and runs them.
func vary(source []byte, dir, truths string) (*variation, error) {
	root, err := filepath.Abs(numbersFile)
	if err != nil {
		return nil, err
	}
	changed, overlay := filepath.Join(dir, "numbers.go"), filepath.Join(dir, "overlay.json")
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {root: changed}})
	if err != nil {
		return nil, err
	}
	if err := cmp.Or(os.WriteFile(changed, source, 0o600), os.WriteFile(overlay, replace, 0o600)); err != nil {
		return nil, err
	}
	if err := exec.Command("go", "build", "-overlay", overlay, "-o", dir, "./internal/evidence/search", "./internal/evidence/random").Run(); err != nil {
		return nil, err
	}
	mixed, err := exec.Command(filepath.Join(dir, "search"), "-only", "mixed", "-truths", truths).Output()
	if err != nil {
		return nil, err
	}
	known, err := exec.Command(filepath.Join(dir, "random"), "-jobs", "1", "-known", filepath.Join(dir, "known.json")).Output()
	if err != nil {
		return nil, err
	}
	return summary(append(mixed, known...)), nil
}

var (
	scored  = regexp.MustCompile(`\)\s+(\S+)\s+(yes|NO)\s+(yes|NO) +(.*)`)
	costs   = regexp.MustCompile(`^(\d+) s,`)
	counted = regexp.MustCompile(`^\w+ +(\d+) +\S+s `)
)

// summary sums up the rows of both commands.
func summary(out []byte) *variation {
	v := &variation{}
	for line := range bytes.Lines(out) {
		cells := scored.FindStringSubmatch(string(line))
		if cells == nil {
			continue
		}
		v.n++
		x, err := strconv.ParseFloat(cells[1], 64)
		if err != nil || math.IsInf(x, 0) || math.IsNaN(x) {
			x = 1 // it has no answer
		}
		v.squares += x * x
		if cells[2] == "yes" {
			v.covered++
		}
		if cells[3] == "yes" {
			v.safe++
		}
		if c := costs.FindStringSubmatch(cells[4]); c != nil {
			seconds, _ := strconv.ParseFloat(c[1], 64)
			v.seconds, v.timed = v.seconds+math.Log(max(seconds, 1)), v.timed+1
		}
		if c := counted.FindStringSubmatch(cells[4]); c != nil {
			trials, _ := strconv.ParseFloat(c[1], 64)
			v.trials, v.free = v.trials+math.Log(max(trials, 1)), v.free+1
		}
		v.rows += wall.ReplaceAllString(string(line), "")
	}
	return v
}

var wall = regexp.MustCompile(`\d+\.\d\ds `)
