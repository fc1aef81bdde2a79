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
	if err := Spreads(s.Kind, k); err != nil {
		return c, err
	}
	a, err := adapterOf(s.Kind)
	if err != nil {
		return c, err
	}
	// Without --export srun takes the word of the job's environment, which leaves most out.
	step := []string{"srun", "--export=ALL", "--kill-on-bad-exit=1", "--nodes=" + strconv.Itoa(nodes), "--ntasks-per-node=1",
		"bash", "-c", `export MASTER_ADDR=${MASTER_ADDR:-$SLURM_LAUNCH_NODE_IPADDR}; exec "$@" ` + a.node, "engine"}
	c.Args = slices.Concat(step, c.Args)
	return c, nil
}

// Spreads is an error where an engine of a kind cannot be started on several nodes.
func Spreads(kind string, k measure.Knobs) error {
	switch a, err := adapterOf(kind); {
	case err != nil:
		return err
	case a.known() && a.node == "":
		return fmt.Errorf("engine.kind: %s is not known to run on several nodes, want vllm, sglang or command", kind)
	case kind == sglang.kind && k.DataParallel > 1:
		return fmt.Errorf("engine.data_parallel: SGLang refuses replicas on several nodes, want 1")
	}
	return nil
}
