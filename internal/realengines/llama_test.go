//go:build realengines

package realengines

import (
	"testing"

	"planner/sweep/engine"
)

// A context that no memory holds is rejected.
func TestLlamaTooMuchMemory(t *testing.T) {
	s := subjects()["llama-server"]
	need(t, s)
	k := s.sets[0]
	k.KVBlocks = 1 << 30
	rejected(t, s, k, "mem.oom")
}

// A file that holds no model is rejected.
func TestLlamaNoModel(t *testing.T) {
	s := subjects()["llama-server"]
	need(t, s)
	s.settings.Model = "/etc/passwd"
	rejected(t, s, s.sets[0], engine.Class("model.load"))
}
