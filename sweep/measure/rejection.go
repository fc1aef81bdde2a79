package measure

import "errors"

// Rejection is a set of knobs that cannot run, or that was not chosen, and why. As
// an error, of type *Rejection, it says that an engine cannot run with the knobs.
type Rejection struct {
	Knobs  Knobs  `json:"knobs"`
	Reason string `json:"reason"`
}

// Error gives the reason.
func (r *Rejection) Error() string { return r.Reason }

// IsRejection unwraps the error of knobs that cannot run.
func IsRejection(err error) (*Rejection, bool) {
	var r *Rejection
	ok := errors.As(err, &r)
	return r, ok
}
