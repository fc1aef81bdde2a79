package serve

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net"

	"planner/model/sim"
)

// Simulator answers an OpenAI-compatible API over HTTP with tokens that leave when a simulated
// engine, or fixed times, say so. The zero value serves a model called "simulated", all of whose
// tokens come at once.
type Simulator struct {
	// Addr is where to listen; "" means 127.0.0.1:8000, and port 0 any free port.
	Addr string
	// Model is the name under which the model is served; "" means "simulated".
	Model string
	// Version is what /version says; "" means "simulated".
	Version string
	// Timer and Config describe the simulated engine. Without a Timer the times of Fixed apply.
	Timer  sim.Timer
	Config sim.Config
	Fixed  Fixed
	// MaxModelLen is the maximum of prompt and output together, in tokens; 0 means that of the
	// simulated engine, or 131,072 without one.
	MaxModelLen int
	// Faults each hit a share of the requests. The header X-Planner-Fault of a request asks for a
	// fault of its own; see [ParseFault].
	Faults []Fault
	// Seed determines what is drawn: fixed times and faults.
	Seed uint64
	// Log, if set, receives the emission log; see [Emission].
	Log io.Writer

	listener *net.TCPListener
	// reply is after how many tokens the model ends a reply by itself, unless the request ignores
	// that; 0 means 512.
	reply int
	// limits are those on clients; the zero value means the usual ones.
	limits clientLimits
}

// Defaults of a Simulator.
const (
	defaultAddr     = "127.0.0.1:8000"
	defaultName     = "simulated"
	defaultModelLen = 131072
	defaultReply    = 512
)

// Listen opens the port. Requests wait there until [Simulator.Serve] is called.
func (s *Simulator) Listen() error {
	l, err := net.Listen("tcp", cmp.Or(s.Addr, defaultAddr))
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	s.listener = l.(*net.TCPListener)
	return nil
}

// URL returns the address that clients use, such as "http://127.0.0.1:8000"; "" before
// [Simulator.Listen].
func (s *Simulator) URL() string {
	if s.listener == nil {
		return ""
	}
	return "http://" + s.listener.Addr().String()
}

// Serve answers requests until ctx ends; then it closes the port and all connections, ends the
// replies in progress and returns nil. Otherwise it returns the error that stopped it. It calls
// [Simulator.Listen] if nobody has.
func (s *Simulator) Serve(ctx context.Context) error {
	if s.listener == nil {
		if err := s.Listen(); err != nil {
			return err
		}
	}
	v, err := s.start()
	if err != nil {
		s.listener.Close()
		return err
	}
	return v.serve(ctx)
}
