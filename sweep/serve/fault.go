package serve

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"
)

// FaultKind names something that goes wrong.
type FaultKind string

// What can go wrong. N counts tokens; where it is not given, half of the output
// is taken.
const (
	// FaultError answers with a status and nothing else: error=503. 429 and 503
	// tell the client to retry after a second.
	FaultError FaultKind = "error"
	// FaultSlow delays the first token and all behind it: slow=2s.
	FaultSlow FaultKind = "slow"
	// FaultStall stops the stream in the middle for a while: stall=2s.
	FaultStall FaultKind = "stall"
	// FaultCut closes the connection behind N tokens: cut=3.
	FaultCut FaultKind = "cut"
	// FaultReset resets the connection behind N tokens: reset=3.
	FaultReset FaultKind = "reset"
	// FaultTruncate ends the stream behind N tokens without a reason, a count
	// or the end marker, but as HTTP wants it: truncate=3.
	FaultTruncate FaultKind = "truncate"
	// FaultMalformed sends an event of broken JSON behind N tokens and goes on:
	// malformed=3.
	FaultMalformed FaultKind = "malformed"
	// FaultMerge sends N tokens in one event: merge=4.
	FaultMerge FaultKind = "merge"
	// FaultRole sends a first event without a token as soon as the request is
	// there, as some engines do.
	FaultRole FaultKind = "role"
	// FaultUsage holds back the counts and the end of the stream: usage=1s.
	FaultUsage FaultKind = "usage"
	// FaultShort generates N tokens fewer than asked for: short=3.
	FaultShort FaultKind = "short"
	// FaultEmpty answers 200 and not one event.
	FaultEmpty FaultKind = "empty"
	// FaultEvent ends the stream of a 200 with an error event behind N tokens:
	// event=3.
	FaultEvent FaultKind = "event"
	// FaultHang never answers.
	FaultHang FaultKind = "hang"
	// FaultRefuse closes the port to new connections for a while; the request
	// itself is served: refuse=2s.
	FaultRefuse FaultKind = "refuse"
	// FaultCrash ends the server, which returns [ErrCrash].
	FaultCrash FaultKind = "crash"
)

// faultValues says what stands behind the "=" of each kind.
var faultValues = map[FaultKind]byte{
	FaultError: 's', FaultSlow: 'd', FaultStall: 'd', FaultCut: 'n', FaultReset: 'n', FaultTruncate: 'n', FaultMalformed: 'n', FaultMerge: 'n',
	FaultRole: 0, FaultUsage: 'd', FaultShort: 'n', FaultEmpty: 0, FaultEvent: 'n', FaultHang: 0, FaultRefuse: 'd', FaultCrash: 0,
}

// Fault is something that goes wrong with a share of the requests. The zero
// value is nothing wrong.
type Fault struct {
	Kind FaultKind
	// Share is the probability that a request is hit.
	Share float64
	// Status is the HTTP status of an error, Delay how long something takes,
	// Tokens where or how much; 0 means the default of the kind.
	Status int
	Delay  time.Duration
	Tokens int
}

// Defaults of what a fault does not say.
const (
	faultStatus = 500
	faultDelay  = time.Second
	faultMerge  = 4
)

// ParseFault reads KIND[=VALUE][@SHARE], as in "stall=2s@0.01"; without a share
// every request is hit. The header X-Planner-Fault of a request takes the same
// form.
func ParseFault(s string) (Fault, error) {
	text, share, shared := strings.Cut(s, "@")
	name, value, valued := strings.Cut(text, "=")
	f := Fault{Kind: FaultKind(strings.TrimSpace(name)), Share: 1, Status: faultStatus, Delay: faultDelay}
	form, known := faultValues[f.Kind]
	if !known {
		return Fault{}, fmt.Errorf("read fault %q: unknown kind %q; allowed: %s", s, name, strings.Join(FaultForms(), ", "))
	}
	if f.Kind == FaultMerge {
		f.Tokens = faultMerge
	}
	var err error
	if shared {
		if f.Share, err = strconv.ParseFloat(share, 64); err != nil || !(f.Share >= 0 && f.Share <= 1) {
			return Fault{}, fmt.Errorf("read fault %q: the share must be a number from 0 to 1", s)
		}
	}
	if valued {
		if err := f.setValue(form, strings.TrimSpace(value)); err != nil {
			return Fault{}, fmt.Errorf("read fault %q: %w", s, err)
		}
	}
	return f, nil
}

// FaultForms lists what [ParseFault] reads, one form a kind, without the share.
func FaultForms() []string {
	values := map[byte]string{'s': "=STATUS", 'd': "=DURATION", 'n': "=TOKENS"}
	var forms []string
	for _, kind := range slices.Sorted(maps.Keys(faultValues)) {
		forms = append(forms, string(kind)+values[faultValues[kind]])
	}
	return forms
}

func (f *Fault) setValue(form byte, value string) (err error) {
	switch form {
	case 's':
		if f.Status, err = strconv.Atoi(value); err != nil || f.Status < 400 || f.Status > 599 {
			return fmt.Errorf("%q is no HTTP status from 400 to 599", value)
		}
	case 'd':
		if f.Delay, err = time.ParseDuration(value); err != nil || f.Delay < 0 {
			return fmt.Errorf("%q is no duration", value)
		}
	case 'n':
		if f.Tokens, err = strconv.Atoi(value); err != nil || f.Tokens < 0 {
			return fmt.Errorf("%q is no number of tokens", value)
		}
	default:
		return fmt.Errorf("%s takes no value", f.Kind)
	}
	return nil
}

// String is what [ParseFault] reads, without the share.
func (f Fault) String() string {
	switch form := faultValues[f.Kind]; {
	case form == 's':
		return fmt.Sprintf("%s=%d", f.Kind, f.Status)
	case form == 'd':
		return fmt.Sprintf("%s=%v", f.Kind, f.Delay)
	case form == 'n' && f.Tokens > 0:
		return fmt.Sprintf("%s=%d", f.Kind, f.Tokens)
	}
	return string(f.Kind)
}

// stream is the stream of random numbers that faults are drawn from.
const faultStream = 0xfa

// drawFault returns the first of the faults that hits a request; the zero Fault
// if none does. It depends on the seed and on the request's number alone.
func drawFault(faults []Fault, seed, request uint64) Fault {
	if len(faults) == 0 {
		return Fault{}
	}
	rng := rand.New(rand.NewPCG(seed^mix(request), faultStream))
	hit := Fault{}
	for _, f := range faults {
		if rng.Float64() < f.Share && hit.Kind == "" {
			hit = f
		}
	}
	return hit
}

// at is the number of tokens behind which the fault strikes in an output of so
// many.
func (f Fault) at(output int) int {
	if f.Tokens > 0 {
		return min(f.Tokens, output)
	}
	return (output + 1) / 2
}
