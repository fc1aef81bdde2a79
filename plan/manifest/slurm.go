package manifest

import (
	_ "embed"
	"slices"
	"strconv"
	"strings"

	"planner/plan"
)

//go:embed slurm.sh.tmpl
var slurmTemplate string

// Slurm writes a plan as a batch script: an array of jobs, one per instance.
func Slurm(p *plan.Plan, o Options) ([]byte, error) {
	d, err := newDeployment(p, o)
	if err == nil {
		err = d.spreads()
	}
	if err != nil {
		return nil, err
	}
	return fillIn(slurmTemplate, d)
}

// Last is the index of the last instance.
func (d *templateData) Last() int { return d.Engine.Replicas - 1 }

// Lines are the lines of the shell command, with an option and its value on one line. PORT is the instance's
// port.
func (d *templateData) Lines() []string {
	argv := slices.Clone(d.Engine.Argv)
	for i, word := range argv {
		if word == strconv.Itoa(d.Engine.Port) && i > 0 && strings.HasSuffix(argv[i-1], "port") {
			argv[i] = "{env:PORT}"
		}
	}
	var lines []string
	for i, word := range argv {
		if i > 0 && !strings.HasPrefix(word, "-") && (strings.HasPrefix(lines[len(lines)-1], "-") || i < 3) {
			lines[len(lines)-1] += " " + shellWord(word)
			continue
		}
		lines = append(lines, shellWord(word))
	}
	if d.Nodes > 1 {
		lines = append(lines, `--nnodes "$SLURM_NNODES"`, `--node-rank "$SLURM_NODEID"`, `--master-addr "$LEADER"`,
			`$([ "$SLURM_NODEID" = 0 ] || echo --headless)`)
	}
	return lines
}
