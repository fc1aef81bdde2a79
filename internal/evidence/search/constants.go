package main

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// numbersFile holds the numbers of the search that could have been others.
const numbersFile = "search/numbers.go"

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
		if !ok || !headed(group.Doc.Text(), headings) {
			continue
		}
		for _, s := range group.Specs {
			values, ok := s.(*ast.ValueSpec)
			if !ok {
				continue
			}
			for i, v := range values.Values {
				all = append(all, number{values.Names[i].Name, files.Position(v.Pos()).Offset, files.Position(v.End()).Offset})
			}
		}
	}
	return all, nil
}

func headed(text string, headings []string) bool {
	for _, h := range headings {
		if text != "" && strings.HasPrefix(text, h) {
			return true
		}
	}
	return false
}

// constants prints the error of the study with each number of the search at half and at twice
// its value, each in a build of this command in which the number is another. It is run in the
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
	s.printf("| number | value | half: RMSE | covers | safe | twice: RMSE | covers | safe |\n|---|--:|--:|--:|--:|--:|--:|--:|\n")
	usual, err := s.with(source, dir, truths)
	if err != nil {
		return err
	}
	s.printf("| none changed | | %s | %s |\n", usual, usual)
	for _, n := range all {
		value := string(source[n.from:n.to])
		var seen [2]string
		for i, change := range []string{"/ 2", "* 2"} {
			changed := fmt.Sprintf("%s(%s) %s%s", source[:n.from], value, change, source[n.to:])
			if seen[i], err = s.with([]byte(changed), dir, truths); err != nil {
				seen[i] = "- | - | -" // it has no such value
			}
		}
		s.printf("| %s | %s | %s | %s |\n", n.name, value, seen[0], seen[1])
	}
	return nil
}

// with is the mean row of the short study with other numbers.
func (s *study) with(source []byte, dir, truths string) (string, error) {
	root, err := filepath.Abs(numbersFile)
	if err != nil {
		return "", err
	}
	changed, overlay := filepath.Join(dir, "numbers.go"), filepath.Join(dir, "overlay.json")
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {root: changed}})
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(changed, source, 0o600); err != nil {
		return "", err
	}
	if err := os.WriteFile(overlay, replace, 0o600); err != nil {
		return "", err
	}
	out, err := exec.Command("go", "run", "-overlay", overlay, "./internal/evidence/search", "-only", "short",
		"-seeds", fmt.Sprint(s.seeds), "-truths", truths).Output()
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(out)) {
		if cells := strings.Split(line, " | "); len(cells) > 8 && cells[1] == "mean" {
			return cells[4] + " | " + cells[6] + " | " + cells[7], nil
		}
	}
	return "", fmt.Errorf("no mean in %q", out)
}
