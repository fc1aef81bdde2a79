package cluster

import (
	"errors"
	"io/fs"

	"planner/sweep"
)

// stateFile holds the name of the run at the scheduler.
const stateFile = "cluster.json"

// submission is what must outlive the process that submits.
type submission struct {
	Launcher string `json:"launcher"`
	Run      string `json:"run"`
}

// RunName is the name of a run at its scheduler, and of that; empty where nothing was
// submitted.
func RunName(f sweep.Folder) (launcher, run string, err error) {
	var s submission
	if err := f.ReadJSON(stateFile, &s); !errors.Is(err, fs.ErrNotExist) {
		return s.Launcher, s.Run, err
	}
	return "", "", nil
}
