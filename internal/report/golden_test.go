package report

import (
	"flag"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"planner/internal/evidence/must"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

var update = flag.Bool("update", false, "write the golden files anew")

// ownParts are the style sheet and the script inside an HTML output, with what names the
// script in the security policy; goldens leave them out.
var ownParts = regexp.MustCompile(`(?s)(<style>).*?(</style>)|(<script>).*?(</script>)|(sha256-)[^']*`)

// printed is a document in every format, side by side.
func printed(d Document) *txtar.Archive {
	archive := &txtar.Archive{Files: []txtar.File{
		{Name: "text-80", Data: Text(d, 80, false)},
		{Name: "text-132", Data: Text(d, 132, false)},
		{Name: "markdown", Data: Markdown(d)},
		{Name: "csv", Data: d.Data.CSV()},
		{Name: "html", Data: ownParts.ReplaceAll(HTML(d), []byte("$1$3$5...$2$4"))},
	}}
	for _, s := range d.Sheets {
		archive.Files = append(archive.Files, txtar.File{Name: s.Name + ".csv", Data: s.Data.CSV()})
	}
	return archive
}

func TestGolden(t *testing.T) {
	docs := documents()
	for _, name := range slices.Sorted(maps.Keys(docs)) {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join("testdata", name+".txtar")
			got := txtar.Format(printed(docs[name]))
			if *update {
				must.OK(os.WriteFile(path, got, 0o644))
				return
			}
			want := must.Get(os.ReadFile(path))
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("run go test -update after reading the difference (-want +got):\n%s", diff)
			}
		})
	}
}
