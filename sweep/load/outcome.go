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

	"planner/sweep/measure"
)

// failure is why a request did not end well.
type failure struct {
	outcome measure.Outcome
	detail  string
}

func failed(o measure.Outcome, detail string) *failure { return &failure{o, oneLine(detail)} }

// Errors of reading an answer, classified by failureOfError.
var (
	errMalformed = errors.New("malformed answer")
	errCut       = errors.New("the answer was cut short")
	errNoAnswer  = errors.New("connection closed without an answer")
)

// failureOfError classifies an error of the network. What the client itself ran
// out of, files or ports, is a request that it dropped.
func failureOfError(err error) *failure {
	var netErr net.Error
	var dns *net.DNSError
	var cert *tls.CertificateVerificationError
	var unknown x509.UnknownAuthorityError
	var record tls.RecordHeaderError
	switch {
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE),
		errors.Is(err, syscall.EADDRNOTAVAIL), errors.Is(err, syscall.ENOBUFS):
		return failed(measure.Dropped, err.Error())
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded),
		errors.As(err, &netErr) && netErr.Timeout():
		return failed(measure.Timeout, "")
	case errors.As(err, &dns), errors.Is(err, syscall.ECONNREFUSED),
		errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return failed(measure.Refused, err.Error())
	case errors.As(err, &cert), errors.As(err, &unknown), errors.As(err, &record):
		return failed(measure.Refused, err.Error())
	case errors.Is(err, errMalformed):
		return failed(measure.Malformed, err.Error())
	case errors.Is(err, errCut), errors.Is(err, io.ErrUnexpectedEOF):
		return failed(measure.Truncated, "")
	case strings.Contains(err.Error(), "malformed"):
		// net/http has no type for these.
		return failed(measure.Malformed, err.Error())
	}
	// Resets, broken pipes, HTTP/2 stream errors and connections closed without
	// an answer: the connection broke.
	return failed(measure.Reset, withoutPorts(err))
}

// withoutPorts is what happened to a connection, without the addresses that tell
// it from all others.
func withoutPorts(err error) string {
	var op *net.OpError
	if errors.As(err, &op) && op.Err != nil {
		return op.Err.Error()
	}
	return err.Error()
}

func failedStatus(code int, body []byte) *failure {
	if len(body) == 0 {
		return failed(measure.HTTPStatus, fmt.Sprint(code))
	}
	return failed(measure.HTTPStatus, fmt.Sprintf("%d: %s", code, body))
}

// oneLine makes a detail fit for a table: at most 160 bytes without breaks.
func oneLine(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > 160 {
		s = s[:160]
	}
	return strings.ToValidUTF8(s, "")
}
