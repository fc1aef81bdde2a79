package schema

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"reflect"
	"regexp"
	"strings"

	"planner"
)

// A comment is what the source says of a type and of its fields.
type comment struct {
	text   string
	fields map[string]string
	// as is the type in the same package that it is declared by; "" for none.
	as string
}

// comments are those of the types of a package, by their names.
type comments map[string]comment

// comments are those of the package of a type; none where its source is not held.
func (b *builder) comments(t reflect.Type) (comments, error) {
	dir := strings.TrimPrefix(t.PkgPath(), "planner/")
	if b.said[dir] != nil {
		return b.said[dir], nil
	}
	all := comments{}
	b.said[dir] = all
	names, err := fs.Glob(planner.Source, path.Join(dir, "*.go"))
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		var text []byte
		if text, err = planner.Source.ReadFile(name); err != nil {
			return nil, err
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		all.add(file)
	}
	return all, err
}

// add takes the comments of the types that a file declares.
func (all comments) add(file *ast.File) {
	for _, d := range file.Decls {
		types, ok := d.(*ast.GenDecl)
		if !ok || types.Tok != token.TYPE {
			continue
		}
		for _, spec := range types.Specs {
			t := spec.(*ast.TypeSpec)
			c := comment{text: plain(t.Doc), fields: map[string]string{}}
			if c.text == "" && len(types.Specs) == 1 {
				c.text = plain(types.Doc)
			}
			switch form := t.Type.(type) {
			case *ast.Ident:
				c.as = form.Name
			case *ast.StructType:
				c.addFields(form)
			}
			all[t.Name.Name] = c
		}
	}
}

// addFields takes the comments of fields. One without is told of by the comment before it
// that names it, as of "Low and High".
func (c comment) addFields(form *ast.StructType) {
	before := ""
	for _, f := range form.Fields.List {
		text := plain(f.Doc)
		if text == "" {
			text = plain(f.Comment)
		}
		if text != "" {
			before = text
		}
		for _, name := range f.Names {
			switch {
			case text != "":
				c.fields[name.Name] = text
			case regexp.MustCompile(`\b` + name.Name + `\b`).MatchString(before):
				c.fields[name.Name] = before
			}
		}
	}
}

// docLink is a name in a comment that documentation makes a link.
var docLink = regexp.MustCompile(`\[([\w.*]+)\]`)

// plain is the text of a comment in one line.
func plain(g *ast.CommentGroup) string {
	return docLink.ReplaceAllString(strings.Join(strings.Fields(g.Text()), " "), "$1")
}

// field describes a field by the first of the types that says something of it, "" where none
// does.
func (b *builder) field(name string, types ...reflect.Type) string {
	for _, t := range types {
		all, err := b.comments(t)
		if err != nil {
			b.err = err
			return ""
		}
		c := all[t.Name()]
		for c.as != "" {
			c = all[c.as]
		}
		if text := c.fields[name]; text != "" {
			return text
		}
	}
	return ""
}
