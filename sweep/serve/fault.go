package serve

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"planner/sweep/workload"
)

// What can go wrong: one kind for each way in which a client sees a request fail. N counts tokens;
// if it is not given, it is half of the output, or 1 for short.
const (
	faultCut       = "cut"       // closes the connection after N tokens
	faultEmpty     = "empty"     // answers 200 without any event
	faultError     = "error"     // answers with an error status; 429 and 503 tell the client to retry after a second
	faultEvent     = "event"     // ends the stream of a 200 with an error event after N tokens
	faultHang      = "hang"      // never answers
	faultMalformed = "malformed" // sends an event of broken JSON after N tokens and goes on
	faultRefuse    = "refuse"    // closes the port to new connections for a while; the request itself is served
	faultReset     = "reset"     // resets the connection after N tokens
	faultShort     = "short"     // generates N tokens fewer than asked for
)

// faultValues says what follows the "=" of each kind.
var faultValues = map[string]string{
	faultCut: "TOKENS", faultEmpty: "", faultError: "STATUS", faultEvent: "TOKENS", faultHang: "", faultMalformed: "TOKENS", faultRefuse: "DURATION",
	faultReset: "TOKENS", faultShort: "TOKENS",
}

// Fault is something that goes wrong with a share of the requests. The zero value is no fault.
type Fault struct {
	kind string
	// text is the fault as it was asked for, without its share.
	text string
	// share is the probability that a request is hit.
	share float64
	// status is the HTTP status of an error, delay how long a port is closed, tokens the N of the
	// kind, 0 for its default.
	status int
	delay  time.Duration
	tokens int
}

// ParseFault parses KIND[=VALUE][@SHARE], as in "error=503@0.01"; without a share every request is
// hit. A request's header X-Planner-Fault takes the same form, but its share does not count.
func ParseFault(s string) (Fault, error) {
	text, share, shared := strings.Cut(s, "@")
	name, value, valued := strings.Cut(text, "=")
	f := Fault{kind: strings.TrimSpace(name), text: strings.TrimSpace(text), share: 1, status: 500, delay: time.Second}
	if _, known := faultValues[f.kind]; !known {
		return Fault{}, fmt.Errorf("read fault %q: unknown kind %q; allowed: %s", s, name, strings.Join(FaultForms(), ", "))
	}
	var err error
	if shared {
		if f.share, err = strconv.ParseFloat(share, 64); err != nil || !(f.share >= 0 && f.share <= 1) {
			return Fault{}, fmt.Errorf("read fault %q: the share must be a number from 0 to 1", s)
		}
	}
	if valued {
		if err := f.setValue(strings.TrimSpace(value)); err != nil {
			return Fault{}, fmt.Errorf("read fault %q: %w", s, err)
		}
	}
	return f, nil
}

// FaultForms lists what [ParseFault] accepts, one form per kind, without the share.
func FaultForms() []string {
	var forms []string
	for _, kind := range slices.Sorted(maps.Keys(faultValues)) {
		if value := faultValues[kind]; value != "" {
			kind += "=" + value
		}
		forms = append(forms, kind)
	}
	return forms
}

func (f *Fault) setValue(value string) (err error) {
	switch faultValues[f.kind] {
	case "STATUS":
		if f.status, err = strconv.Atoi(value); err != nil || f.status < 400 || f.status > 599 {
			return fmt.Errorf("%q is no HTTP status from 400 to 599", value)
		}
	case "DURATION":
		if f.delay, err = time.ParseDuration(value); err != nil || f.delay < 0 {
			return fmt.Errorf("%q is no duration", value)
		}
	case "TOKENS":
		if f.tokens, err = strconv.Atoi(value); err != nil || f.tokens < 0 {
			return fmt.Errorf("%q is no number of tokens", value)
		}
	default:
		return fmt.Errorf("%s takes no value", f.kind)
	}
	return nil
}

// faultStream is the random number stream that faults are drawn from.
const faultStream = 0xfa

// drawFault returns the first of the faults that hits a request; the zero Fault if none does. It
// depends only on the seed and the request's number.
func drawFault(faults []Fault, seed, request uint64) Fault {
	if len(faults) == 0 {
		return Fault{}
	}
	rng := rand.New(rand.NewPCG(seed^workload.Mix64(request), faultStream))
	hit := Fault{}
	for _, f := range faults {
		if rng.Float64() < f.share && hit.kind == "" {
			hit = f
		}
	}
	return hit
}

// at returns the number of tokens after which the fault strikes in an output of the given length.
func (f *Fault) at(output int) int {
	if f.tokens > 0 {
		return min(f.tokens, output)
	}
	return (output + 1) / 2
}
