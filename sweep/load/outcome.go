package load

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"planner/internal/printable"
	"planner/sweep/measure"
)

// outcomeError is why a request did not end well.
type outcomeError struct {
	outcome measure.Outcome
	detail  string
}

// Error is the detail.
func (e *outcomeError) Error() string { return e.detail }

func failed(o measure.Outcome, detail string) error { return &outcomeError{o, oneLine(detail)} }

func malformed(format string, args ...any) error {
	return failed(measure.Malformed, fmt.Sprintf(format, args...))
}

// Errors of connections that break.
var (
	errCut      = failed(measure.Truncated, "")
	errNoAnswer = failed(measure.Reset, "connection closed without an answer")
)

// outcomeOf classifies the error of a request. One for which the client itself ran out of files or
// ports counts as dropped by it.
func outcomeOf(err error) (o measure.Outcome, detail string) {
	var known *outcomeError
	var netErr net.Error
	var dns *net.DNSError
	var cert *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	var op *net.OpError
	text := oneLine(err.Error())
	switch {
	case errors.As(err, &known):
		return known.outcome, known.detail
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE),
		errors.Is(err, syscall.EADDRNOTAVAIL), errors.Is(err, syscall.ENOBUFS):
		return measure.Dropped, text
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded),
		errors.As(err, &netErr) && netErr.Timeout():
		return measure.Timeout, ""
	case errors.As(err, &dns), errors.Is(err, syscall.ECONNREFUSED),
		errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH),
		errors.As(err, &cert), errors.As(err, &record):
		return measure.Refused, text
	case errors.As(err, &op) && op.Err != nil:
		// Without the addresses, which would make each failure a kind of its own. "remote error" is
		// what a TLS alert is called.
		if op.Op == "remote error" {
			return measure.Refused, oneLine(op.Err.Error())
		}
		return measure.Reset, oneLine(op.Err.Error())
	case errors.Is(err, io.ErrUnexpectedEOF):
		return measure.Truncated, ""
	case isBreak(err):
		return measure.Reset, strings.Replace(streamID.ReplaceAllString(text, ""), clientClosed, "http2: the connection broke", 1)
	}
	// Anything that is not an error of the network or of time is one of the answer.
	return measure.Malformed, text
}

// streamID matches what would make each error of HTTP/2 a kind of its own. clientClosed is the
// error of net/http for requests on a connection on which another one could not be sent.
var streamID = regexp.MustCompile(`stream ID \d+; |LastStreamID=\d+, `)

const clientClosed = "http2: client connection force closed via ClientConn.Close"

// isBreak reports whether an error is that of a connection that broke. Some of net/http and of its
// HTTP/2 have no type.
func isBreak(err error) bool {
	var errno syscall.Errno
	return errors.As(err, &errno) || errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) ||
		slices.ContainsFunc([]string{"server closed idle connection", "http2: ", "stream error: "}, func(part string) bool {
			return strings.Contains(err.Error(), part)
		})
}

// maxWords is the length of the longest detail, in bytes.
const maxWords = 160

func oneLine(s string) string { return printable.Line(s, maxWords) }
