package load

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"unicode"

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
	return failed(measure.Malformed, fmt.Sprintf("malformed answer: "+format, args...))
}

// Errors of connections that break.
var (
	errCut      = failed(measure.Truncated, "")
	errNoAnswer = failed(measure.Reset, "connection closed without an answer")
)

// outcomeOf classifies the error of a request. What the client itself ran out of,
// files or ports, is a request that it dropped.
func outcomeOf(err error) (o measure.Outcome, detail string) {
	var known *outcomeError
	var netErr net.Error
	var dns *net.DNSError
	var cert *tls.CertificateVerificationError
	var unknown x509.UnknownAuthorityError
	var record tls.RecordHeaderError
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
		errors.As(err, &cert), errors.As(err, &unknown), errors.As(err, &record):
		return measure.Refused, text
	case errors.Is(err, io.ErrUnexpectedEOF):
		return measure.Truncated, ""
	case strings.Contains(err.Error(), "malformed"):
		// net/http has no type for these.
		return measure.Malformed, text
	}
	// Resets, broken pipes, HTTP/2 stream errors and connections closed without
	// an answer: the connection broke. What happened to it is said without the
	// addresses that tell it from all others.
	var op *net.OpError
	if errors.As(err, &op) && op.Err != nil {
		text = oneLine(op.Err.Error())
	}
	return measure.Reset, text
}

// oneLine makes a detail fit for a table: at most 160 bytes without breaks, nor any
// character that a terminal would obey.
func oneLine(s string) string {
	s = strings.ToValidUTF8(s[:min(len(s), 4<<10)], "")
	s = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, s)
	s = strings.Join(strings.Fields(s), " ")
	return strings.ToValidUTF8(s[:min(len(s), 160)], "")
}
