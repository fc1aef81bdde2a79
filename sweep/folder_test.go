package sweep

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"planner/internal/evidence/must"
	"planner/sweep/measure"
)

// TestWritesStayInTheFolder: a file is written within the folder or not at all, and what a killed
// process left behind is removed.
func TestWritesStayInTheFolder(t *testing.T) {
	t.Parallel()
	outside, folder := t.TempDir(), Folder{t.TempDir()}
	precious := filepath.Join(outside, "file")
	must.OK(os.WriteFile(precious, []byte("precious"), 0o600))
	for link, to := range map[string]string{"dir": outside, "file": precious, "relative": filepath.Join("..", filepath.Base(outside), "file")} {
		must.OK(os.Symlink(to, folder.File(link)))
	}
	if err := folder.Write("dir/file", []byte("new")); err == nil {
		t.Error("written through a link to a folder")
	}
	for _, name := range []string{"file", "relative"} {
		if _, err := folder.Read(name); err == nil {
			t.Errorf("%s: read through a link", name)
		}
		if _, err := folder.open(name, os.O_RDWR|os.O_TRUNC); err == nil {
			t.Errorf("%s: opened through a link", name)
		}
		if err := folder.Write(name, []byte("new")); err != nil {
			t.Error(err)
		}
		if data, err := folder.Read(name); err != nil || string(data) != "new" {
			t.Errorf("%q, %v", data, err)
		}
	}
	if data, err := os.ReadFile(precious); err != nil || string(data) != "precious" {
		t.Errorf("what links point to was changed: %q, %v", data, err)
	}
	must.OK(folder.Write("in/deep/"+temporary+"left", []byte("half")))
	must.OK(folder.Tidy())
	if left, err := fs.Glob(os.DirFS(folder.Path), "in/deep/*"); err != nil || len(left) != 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}

// TestOnlyOwnLeftoversGo: making a run folder removes what a killed process left of another one
// there, and nothing that is not planner's, whatever characters the folder's name has.
func TestOnlyOwnLeftoversGo(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "runs [ab]*")
	long := time.Now().Add(-2 * time.Hour)
	for _, name := range []string{staged + "1", ".new-plans", ".new-1"} {
		must.OK(os.MkdirAll(filepath.Join(dir, name), 0o755))
		must.OK(os.WriteFile(filepath.Join(dir, name, "notes"), []byte("precious"), 0o600))
		must.OK(os.Chtimes(filepath.Join(dir, name), long, long))
	}
	must.OK(os.Mkdir(filepath.Join(dir, staged+"2"), 0o755))
	must.Get(CreateFolder(filepath.Join(dir, "run"), About{Command: "plan"}, nil))
	var left []string
	for _, e := range must.Get(os.ReadDir(dir)) {
		left = append(left, e.Name())
	}
	if want := []string{".new-1", ".new-plans", staged + "2", "run"}; !slices.Equal(left, want) {
		t.Errorf("%q is there, want %q", left, want)
	}
}

// TestGatheredFilesAreTheSame: the files of a trial of a part are copied as they are, the compressed
// ones too.
func TestGatheredFilesAreTheSame(t *testing.T) {
	t.Parallel()
	folder := Folder{t.TempDir()}
	part := Folder{folder.File(PartsDir + "/h100-tp1")}
	must.OK(os.MkdirAll(part.Path, 0o700))
	must.OK(part.WriteRecords(2, []measure.Record{{ID: 7}}))
	must.OK(part.WriteHistograms(2, []byte("log")))
	must.Get(folder.Gather("h100-tp1", 2, 5))
	for _, name := range []func(int) string{RecordsName, HistogramsName} {
		if was, is := must.Get(os.ReadFile(part.File(name(2)))), must.Get(os.ReadFile(folder.File(name(5)))); !bytes.Equal(was, is) {
			t.Errorf("%s: %q, want %q", name(5), is, was)
		}
	}
	if records, err := folder.Records(5); err != nil || len(records) != 1 || records[0].ID != 7 {
		t.Errorf("%v, %v", records, err)
	}
}
