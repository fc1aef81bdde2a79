package schema

import (
	"cmp"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"regexp"
	"strings"

	"planner"
)

// readComments returns the doc comments of types, as "plan.Plan", and of their fields, as "plan.Plan.Fleet".
func readComments() (map[string]string, error) {
	said := map[string]string{}
	return said, fs.WalkDir(planner.Source, ".", func(name string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return err
		}
		text, _ := planner.Source.ReadFile(name) // it is embedded
		file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, d := range file.Decls {
			if types, ok := d.(*ast.GenDecl); ok && types.Tok == token.TYPE {
				addComments(said, path.Base(path.Dir(name)), types)
			}
		}
		return nil
	})
}

// addComments collects the comments of types. A field without one is described by the preceding comment that
// names it, as in "Low and High".
func addComments(said map[string]string, pkg string, types *ast.GenDecl) {
	for _, spec := range types.Specs {
		t := spec.(*ast.TypeSpec)
		name := pkg + "." + t.Name.Name
		if said[name] = plain(t.Doc); len(types.Specs) == 1 {
			said[name] = cmp.Or(said[name], plain(types.Doc))
		}
		form, ok := t.Type.(*ast.StructType)
		if !ok {
			continue
		}
		last := ""
		for _, f := range form.Fields.List {
			text := cmp.Or(plain(f.Doc), plain(f.Comment))
			last = cmp.Or(text, last)
			for _, n := range f.Names {
				if text != "" || regexp.MustCompile(`\b`+n.Name+`\b`).MatchString(last) {
					said[name+"."+n.Name] = last
				}
			}
		}
	}
}

// docLink matches a doc link in a comment.
var docLink = regexp.MustCompile(`\[([\w.*]+)\]`)

// plain returns the text of a comment on one line.
func plain(g *ast.CommentGroup) string {
	return docLink.ReplaceAllString(strings.Join(strings.Fields(g.Text()), " "), "$1")
}
