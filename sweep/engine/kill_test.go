package engine

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"planner/internal/evidence/enginetest"
	"planner/internal/evidence/must"
)

// kill -9 of planner at random instants, from before its engine runs to long
// after, leaves no process: neither the engine, nor the guard, nor what left the
// group.
func TestPlannerIsKilled(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts processes for seconds")
	}
	self := must.Get(os.Executable())
	const kills = 20
	misbehaviours := []string{"", "strays", "ignores-term", "slow-stop"}
	rng := rand.New(rand.NewPCG(6, 1))
	var all sync.WaitGroup
	slots := make(chan struct{}, 8)
	for i := range kills {
		misbehave, after := misbehaviours[i%len(misbehaviours)], time.Duration(rng.Float64()*float64(1200*time.Millisecond))
		all.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			dir := t.TempDir()
			mark := "FAKE_MARK=" + strings.ReplaceAll(dir, "/", "-")
			cmd := exec.Command(self, "planner", misbehave, dir)
			cmd.Env = append(os.Environ(), mark)
			if err := cmd.Start(); err != nil {
				t.Error(err)
				return
			}
			time.Sleep(after)
			if err := cmd.Process.Kill(); err != nil {
				t.Error(err)
			}
			_ = cmd.Wait()
			began := time.Now()
			enginetest.NothingLeft(t, mark, 10*time.Second)
			if took := time.Since(began); took > 5*time.Second {
				t.Errorf("%q killed after %v: its engine was gone %v later", misbehave, after, took)
			}
		})
	}
	all.Wait()
}
