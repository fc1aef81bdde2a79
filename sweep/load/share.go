package load

import (
	"fmt"
	"strconv"
	"strings"

	"planner/sweep/measure"
	"planner/sweep/workload"
)

// Share is what one of several generators sends of a schedule that all of them
// draw. The zero value is all of it.
type Share struct {
	// Number counts the generators from 1 to Of.
	Number, Of int
}

// ParseShare reads a share such as "2/4", the second of four.
func ParseShare(s string) (Share, error) {
	number, of, ok := strings.Cut(s, "/")
	k, err := strconv.Atoi(number)
	n, err2 := strconv.Atoi(of)
	if !ok || err != nil || err2 != nil || k < 1 || k > n {
		return Share{}, fmt.Errorf("%q is no share: want K/N with K from 1 to N, such as 2/4", s)
	}
	return Share{k, n}, nil
}

// Whole reports whether the share is all there is.
func (s Share) Whole() bool { return s.Of <= 1 }

// String is the share as [ParseShare] reads it.
func (s Share) String() string {
	if s.Whole() {
		return "1/1"
	}
	return fmt.Sprintf("%d/%d", s.Number, s.Of)
}

// MarshalText writes the share as [ParseShare] reads it.
func (s Share) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads a share as [ParseShare] does.
func (s *Share) UnmarshalText(b []byte) (err error) {
	*s, err = ParseShare(string(b))
	return err
}

// streamShare keys the draw of who sends a request.
const streamShare = 0x5a5e

// Pick returns the requests of the share, which keep their numbers, and the trial
// that they are. In an open loop chance decides who sends a request, conversations
// whole: a Poisson process that chance thins is Poisson again, and so is the sum
// of such parts whether or not the clocks of the generators agree to the
// millisecond. In a closed loop requests and slots go round; fewer slots than
// generators are an error.
func (s Share) Pick(trial measure.Trial, schedule []workload.Request) (measure.Trial, []workload.Request, error) {
	if s.Whole() {
		return trial, schedule, nil
	}
	if trial.Closed() && min(trial.Concurrency, len(schedule)) < s.Of {
		return trial, nil, fmt.Errorf("%d slots and %d requests are too few for %d generators", trial.Concurrency, len(schedule), s.Of)
	}
	sender := make([]int, len(schedule))
	var mine []workload.Request
	for i := range schedule {
		switch parent := schedule[i].Parent; {
		case parent > 0:
			sender[i] = sender[parent-1]
		case trial.Closed():
			sender[i] = i % s.Of
		default:
			sender[i] = int(mix(mix(trial.Seed^streamShare)+uint64(i)) % uint64(s.Of))
		}
		if sender[i] == s.Number-1 {
			mine = append(mine, schedule[i])
		}
	}
	trial.Rate /= float64(s.Of)
	if trial.Closed() {
		// The first ones take the slots that are left over.
		trial.Concurrency = (trial.Concurrency + s.Of - s.Number) / s.Of
		trial.Requests = len(mine)
	}
	return trial, mine, nil
}
