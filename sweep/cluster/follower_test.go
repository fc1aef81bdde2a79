package cluster

import (
	"testing"

	"planner/internal/evidence/must"
	"planner/sweep"
)

// A job that an earlier process submitted may fail on a disk that has room again by the time
// it is followed: the part goes on. One that this process submitted stops it.
func TestAJobOfBeforeMayFail(t *testing.T) {
	const why = "write records/0002.jsonl.zst: no space left on device"
	for submitted, cut := range map[bool]string{false: "", true: why} {
		p := &partRun{folder: sweep.Folder{Path: t.TempDir()}}
		must.OK(p.folder.WriteJSON(sweep.EndingFile, sweep.Ending{Failure: why}))
		if submitted {
			p.tried = p.tried.AddDate(1, 0, 0)
		}
		p.submitted("7")
		f := &Follower{parts: []*partRun{p}}
		f.settle(t.Context(), p)
		if p.cut != cut || p.failed != "" || p.job != nil {
			t.Errorf("submitted by this process %v: cut %q, failed %q", submitted, p.cut, p.failed)
		}
	}
}
