package cluster

import (
	"errors"
	"fmt"
	"io/fs"

	"planner/internal/wire"
	"planner/sweep"
)

// stateFile holds the name of the run at the scheduler.
const stateFile = "cluster.json"

// state is what must outlive the process that submits.
type state struct {
	Launcher string `json:"launcher"`
	Run      string `json:"run"`
}

// RunName is the name of a run at its scheduler, and of that; empty where nothing was
// submitted.
func RunName(f sweep.Folder) (launcher, run string, err error) {
	data, err := f.Read(stateFile)
	if errors.Is(err, fs.ErrNotExist) {
		return "", "", nil
	} else if err != nil {
		return "", "", err
	}
	var s state
	if err := wire.Unmarshal(data, &s); err != nil {
		return "", "", fmt.Errorf("%s: %w", f.File(stateFile), err)
	}
	return s.Launcher, s.Run, nil
}
