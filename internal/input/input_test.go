package input

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"planner/internal/evidence/must"
)

func TestLimit(t *testing.T) {
	text := strings.Repeat("x", 1000)
	for _, most := range []int64{0, 1, 999, 1000, 1001} {
		for name, r := range map[string]io.Reader{"whole": strings.NewReader(text), "byte by byte": iotest.OneByteReader(strings.NewReader(text))} {
			got, err := io.ReadAll(Limit(r, most))
			_, over := errors.AsType[*LimitError](err)
			if over != (most < 1000) || int64(len(got)) != min(most, 1000) {
				t.Errorf("%s: of 1000 bytes %d were read within %d: %v", name, len(got), most, err)
			}
		}
	}
}

func TestReadFile(t *testing.T) {
	path := must.File(t, "file", strings.Repeat("x", 2048))
	if data, err := ReadFile(path, 2048); err != nil || len(data) != 2048 {
		t.Errorf("%d bytes, %v", len(data), err)
	}
	_, err := ReadFile(path, 1024)
	if err == nil || err.Error() != "read "+path+": larger than 1 KiB, which is the most that is read of such a file" {
		t.Error(err)
	}
	if _, err := ReadFile("/dev/zero", Settings); err == nil || !strings.Contains(err.Error(), "larger than 1 MiB") {
		t.Error(err)
	}
}
