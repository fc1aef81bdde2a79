package sweep

import (
	"errors"
	"strings"
	"testing"

	"planner/internal/evidence/must"
	"planner/sweep/measure"
)

// A journal with counts that no trial can have is refused with its file and line, even in the last
// line: it is not torn.
func TestJournalOfImpossibleCounts(t *testing.T) {
	const good = `{"trial":1,"knobs":{},"rate_per_s":4,"requests":100,"failed":0,"counts":[{"bound":"ttft.p99","n":100,"k":3,"cluster":1}]}`
	for _, bad := range []string{
		strings.Replace(good, `"k":3`, `"k":103`, 1),
		strings.Replace(good, `"k":3`, `"k":-3`, 1),
		strings.Replace(good, `"failed":0`, `"failed":101`, 1),
	} {
		path := must.File(t, JournalFile, good+"\n"+bad+"\n")
		_, err := ReadJournal(path)
		if !errors.Is(err, measure.ErrImpossible) || !strings.Contains(err.Error(), path+": line 2: ") {
			t.Errorf("%s: %v", bad, err)
		}
		if j, err := openJournal(path); err == nil {
			t.Errorf("%s: opened", bad)
			j.Close()
		}
	}
}
