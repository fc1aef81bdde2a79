//go:build realengines

package realengines

import (
	"testing"

	"planner/sweep/engine"
)

// An option that this build does not have is rejected. (A context beyond all
// memory is not tried: llama-server takes the memory and the host kills whom it
// likes.)
func TestLlamaUnknownOption(t *testing.T) {
	s := subjects()["llama-server"]
	need(t, s)
	s.settings.ExtraArgs = []string{"--frobnicate"}
	rejected(t, s, s.sets[0], "args.parse")
}

// A file that holds no model is rejected.
func TestLlamaNoModel(t *testing.T) {
	s := subjects()["llama-server"]
	need(t, s)
	s.settings.Model = "/etc/passwd"
	rejected(t, s, s.sets[0], engine.Class("model.load"))
}
