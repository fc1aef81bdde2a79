package sweep

import (
	"fmt"
	"slices"

	"planner/sweep/measure"
)

// PartsDir is the folder of a run that holds the run folders of its parts.
const PartsDir = "parts"

// Part is what of a study needs GPUs of its own: the trials of one kind of instance.
type Part struct {
	// Name is fit for a folder: "h100-sxm-tp4".
	Name string
	// GPU is a name of the catalog, "" where none is known, GPUs how many the largest
	// instance takes.
	GPU  string
	GPUs int
}

// A Divided study can run in parts, side by side on several machines: what it proposes
// of a part depends on the measurements of that part alone, but for its last stages.
type Divided interface {
	Study
	// Parts lists the parts of which anything can run.
	Parts() []Part
	// PartOf names the part of a trial.
	PartOf(t measure.Trial) string
	// Narrow leaves nothing but one part in a study that has not begun. Unless whole is
	// set it ends before the stages that ask what the other parts have found.
	Narrow(part string, whole bool)
}

// KindOf is the part of the instances of one GPU and degree of tensor parallelism.
func KindOf(k measure.Knobs) Part {
	name := fmt.Sprintf("tp%d", max(k.TensorParallel, 1))
	if gpu := slug(k.GPU); gpu != "" {
		name = gpu + "-" + name
	}
	return Part{Name: name, GPU: k.GPU, GPUs: k.GPUs()}
}

// KindsOf lists the parts of knobs in their order.
func KindsOf(knobs []measure.Knobs) []Part {
	var parts []Part
	for _, k := range knobs {
		kind := KindOf(k)
		i := slices.IndexFunc(parts, func(p Part) bool { return p.Name == kind.Name })
		if i < 0 {
			parts = append(parts, kind)
		} else {
			parts[i].GPUs = max(parts[i].GPUs, kind.GPUs)
		}
	}
	return parts
}

// Measures reports whether a measurement is the one of a trial.
func Measures(m *measure.Measurement, t *measure.Trial) bool {
	was := &m.Trial
	return was.Knobs == t.Knobs && (m.Rejected.Text != "" || was.Rate == t.Rate && was.Seed == t.Seed && was.Concurrency == t.Concurrency)
}
