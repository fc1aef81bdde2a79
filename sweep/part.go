package sweep

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"

	"planner/internal/input"
	"planner/sweep/measure"
)

// PartsDir is the folder of a run that holds the run folders of its parts.
const PartsDir = "parts"

// Part is the part of a study that needs GPUs of its own: the trials of one kind of instance.
type Part struct {
	// Name is fit for a folder: "h100-sxm-tp4".
	Name string
	// GPU is a name of the catalog, "" if none is known, GPUs how many the largest instance takes.
	GPU  string
	GPUs int
	// Has reports whether a trial is one of the part's.
	Has func(measure.Trial) bool
}

// A Divided study can run in parts, side by side on several machines: except in its last stages,
// what it proposes for a part depends on the measurements of that part alone.
type Divided interface {
	Study
	// Parts lists the parts in which anything can run.
	Parts() []Part
	// Narrow leaves only one part in a study that has not begun. Unless whole is set it ends before
	// the stages that ask what the other parts have found.
	Narrow(part string, whole bool)
}

// KindOf returns the part of one kind of instance, by its GPU, degrees of parallelism and number
// formats.
func KindOf(k measure.Knobs) Part {
	name := fmt.Sprintf("tp%d", max(k.TensorParallel, 1))
	for _, n := range measure.KnobTable {
		if text := n.Text(k); n.Placement && n.Name != "gpu" && n.Name != "tensor_parallel" && text != "" && text != "1" {
			name += "-" + slug(n.Short+text)
		}
	}
	if gpu := slug(k.GPU); gpu != "" {
		name = gpu + "-" + name
	}
	return Part{Name: name, GPU: k.GPU, GPUs: k.GPUs(), Has: func(t measure.Trial) bool { return KindOf(t.Knobs).Name == name }}
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
	return was.Knobs == t.Knobs && (!m.Ran() || was.Rate == t.Rate && was.Seed == t.Seed && was.Concurrency == t.Concurrency)
}

// EndingFile says in the run folder of a part how its last process ended.
const EndingFile = "ended.json"

// Ending says how the process of a part ended. There is none while one runs, or if it was killed.
type Ending struct {
	// Done says that the part has nothing more to propose; Whole, that this includes the
	// last stages.
	Done  bool `json:"done"`
	Whole bool `json:"whole"`
	// Lines is the length of its journal: network file systems may show one file later than
	// another.
	Lines int `json:"lines"`
	// Failure is what kept it from measuring, "" if it was interrupted.
	Failure string `json:"failure,omitempty"`
}

// Begin removes the Ending of an earlier process of a part.
func (f Folder) Begin() error {
	return f.Clear(EndingFile, func(string) bool { return true })
}

// Ending reads how the process of a part ended; nil if it did not say.
func (f Folder) Ending() (*Ending, error) {
	return optional[Ending](f, EndingFile)
}

// optional reads a JSON document of a run; nil if there is none.
func optional[T any](f Folder, name string) (*T, error) {
	v := new(T)
	switch err := f.ReadJSON(name, v); {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return v, nil
}

// Gather copies the files of a trial of a part to where those of the run's own trials are, under
// the number that it has there. It returns what was seen of its engine, nil if nothing was.
func (f Folder) Gather(part string, was, number int) (*EngineTelemetry, error) {
	from := Folder{f.File(filepath.Join(PartsDir, part))}
	for _, name := range []func(int) string{RecordsName, HistogramsName, SamplesName} {
		file, err := from.Open(name(was))
		if err == nil {
			err = f.WriteFrom(name(number), func(w io.Writer) error {
				_, err := io.Copy(w, input.Limit(file, input.Journal)) // as it is, compressed or not
				return err
			})
			file.Close()
		}
		if err = IgnoreMissing(err); err != nil {
			return nil, err
		}
	}
	seen, err := optional[EngineTelemetry](from, EngineTelemetryName(was))
	if seen == nil {
		return nil, err
	}
	seen.Trial = number
	below := func(log *string) {
		if *log != "" {
			*log = filepath.Join(PartsDir, part, *log)
		}
	}
	below(&seen.Engine.Log)
	if seen.Failure != nil {
		seen.Failure.Knobs = seen.Knobs
		below(&seen.Failure.Log)
	}
	return seen, f.WriteJSON(EngineTelemetryName(number), seen)
}

// Jobs is the state of the jobs of a run whose parts run elsewhere.
type Jobs struct {
	Queued, Starting, Running, Ended int
	// GPUHours are those of all jobs so far.
	GPUHours float64
	// Lines say of each running job where it runs and what it said last.
	Lines []string
}

// Any reports whether there are any.
func (j *Jobs) Any() bool { return j.Queued+j.Starting+j.Running+j.Ended > 0 }

// String is the jobs in words.
func (j *Jobs) String() string {
	return fmt.Sprintf("jobs: %d queued, %d starting, %d running, %d ended; %.3f GPU hours", j.Queued, j.Starting, j.Running, j.Ended, j.GPUHours)
}
