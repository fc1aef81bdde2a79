package engine

import (
	"fmt"
	"slices"
	"strconv"

	"planner/sweep/measure"
)

// spread is a command that, for an instance on several nodes, runs on each of the Slurm
// job that this process runs in, as one step: the server on this node, the job's first. It
// ends when one of its processes does. Each finds its number in SLURM_NODEID and the
// address of the first node in MASTER_ADDR.
func (s *Settings) spread(c Command, k measure.Knobs) (Command, error) {
	if s.Spread == nil {
		return c, nil
	}
	nodes, _ := s.Spread(k.GPU, k.GPUs())
	if nodes == 1 {
		return c, nil
	}
	a, err := adapterOf(s.Kind)
	if err == nil && !Spreads(s.Kind) {
		err = fmt.Errorf("engine: an instance on %d nodes is not known of %s: want engine.kind vllm, sglang or command", nodes, s.Kind)
	}
	if err != nil {
		return c, err
	}
	// Without --export srun takes the word of the job's environment, which leaves most out.
	step := []string{"srun", "--export=ALL", "--kill-on-bad-exit=1", "--nodes=" + strconv.Itoa(nodes), "--ntasks-per-node=1",
		"bash", "-c", `export MASTER_ADDR=${MASTER_ADDR:-$SLURM_LAUNCH_NODE_IPADDR}; exec "$@" ` + a.node, "engine"}
	c.Args = slices.Concat(step, c.Args)
	return c, nil
}

// Spreads reports whether an engine of a kind can be started on several nodes.
func Spreads(kind string) bool {
	a, err := adapterOf(kind)
	return err == nil && (!a.known() || a.node != "")
}
