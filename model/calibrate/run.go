package calibrate

import (
	"planner/model"
	"planner/sweep/measure"
)

// Run is one measured load point.
type Run struct {
	// Trial are the conditions: knobs, workload, load, window, seed. The workload must be
	// there, so that the same requests can be simulated.
	Trial measure.Trial
	// Measurement is what was seen.
	Measurement measure.Measurement
	// Records, where there are any, are what was seen of each request, in the order of the
	// trial's schedule; they say more than the measurement, which may then be empty.
	Records []measure.Record
	// EngineTimes says that times count from when the engine queued a request, as an
	// engine's own log does: the front end is not in them.
	EngineTimes bool
}

// Options say what is fitted.
type Options struct {
	Deployment model.Deployment
	// Version is the release of the engine that was measured.
	Version string
	// Constants to begin with; the zero value stands for the defaults of the GPU and the
	// release.
	Constants model.Constants
	// Terms to fit; nil means all.
	Terms []model.Term
	// Date says when this is, for the file: a pure function knows no clock.
	Date string
}
