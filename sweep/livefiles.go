package sweep

import (
	"fmt"
	"os"
	"path/filepath"

	"planner/sweep/engine"
)

// engineDir is the folder of a run that holds what engines said.
const engineDir = "engine"

// fileName begins the names of a trial's files.
func fileName(trial int) string { return fmt.Sprintf("%04d", trial) }

// link gives a trial the log of an engine that an earlier one started, under its
// own name too. A file system without links does without; its telemetry names
// the log as well.
func (l *Live) link(e *engine.Engine, trial int) {
	own := fileName(trial) + ".log"
	if trial == 0 || e.Log == "" || filepath.Base(e.Log) == own {
		return
	}
	path := filepath.Join(l.Settings.Dir, own)
	if _, err := os.Lstat(path); err == nil && l.reported != e {
		return // the log of an engine that broke down in this trial
	}
	l.unlink(fileName(trial))
	_ = os.Symlink(filepath.Base(e.Log), path)
}

// unlink removes a log's second name, lest an engine that is started under that
// name writes over the first: a run that is resumed starts one in the middle.
func (l *Live) unlink(name string) {
	path := filepath.Join(l.Settings.Dir, name+".log")
	if info, err := os.Lstat(path); err == nil && info.Mode()&os.ModeSymlink != 0 {
		_ = os.Remove(path)
	}
}
