// Package wire writes and reads JSON by a few rules, so that a type's tags alone define the file. A key names
// its unit: a [time.Duration] is a number of milliseconds under a key that ends in "_ms", of seconds under
// "_s", of nanoseconds under "_ns", as is everything within that key. Unknown values are null: a float64 that
// is NaN or infinite, and a duration below 0 except in nanoseconds; nil slices are empty lists. A type with
// another form in files declares it by [Written]. Everything else is as in encoding/json.
package wire

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"

	"planner/internal/printable"
	"planner/internal/stat"
)

// units are the units of time in which a key can end.
var units = []struct {
	suffix string
	unit   time.Duration
}{{"_ms", time.Millisecond}, {"_s", time.Second}, {"_ns", time.Nanosecond}}

// unitOf returns the unit that the innermost key of a place names.
func unitOf(place jsontext.Pointer) (time.Duration, error) {
	for p := place; p != ""; p = p.Parent() {
		key := p.LastToken()
		for _, u := range units {
			if strings.HasSuffix("_"+key, u.suffix) {
				return u.unit, nil
			}
		}
	}
	return 0, fmt.Errorf("no key of %q names a unit of time", place)
}

// Written is a type with another form in files: the value that the method returns, which has one type for all
// values except those that a schema names, and is a pointer if it may be null.
type Written interface{ Written() any }

var rules = json.JoinOptions(
	jsonv1.DefaultOptionsV1(), json.FormatNilSliceAsNull(false), json.FormatNilMapAsNull(false),
	json.WithMarshalers(json.JoinMarshalers(json.MarshalToFunc(writeDuration), json.MarshalToFunc(writeFloat), json.MarshalToFunc(writeForm))),
	json.WithUnmarshalers(json.JoinUnmarshalers(json.UnmarshalFromFunc(readDuration), json.UnmarshalFromFunc(readFloat))),
)

// Marshal writes a value on one line, as in journals.
func Marshal(v any) ([]byte, error) { return shown(json.Marshal(v, rules)) }

// shown makes a text safe to show on a terminal.
func shown(data []byte, err error) ([]byte, error) { return printable.JSON(data), err }

// Print writes a value for people to read, without escaping the characters special to HTML.
func Print(v any) ([]byte, error) {
	return shown(json.Marshal(v, rules, jsontext.WithIndent("  "), jsontext.EscapeForHTML(false), jsontext.PreserveRawStrings(false)))
}

// Unmarshal reads what Marshal and Print write. Null is NaN for a float64 and -1 for a duration; a missing key
// leaves the value in v.
func Unmarshal(data []byte, v any) error { return json.Unmarshal(data, v, rules) }

func writeForm(e *jsontext.Encoder, v Written) error { return json.MarshalEncode(e, v.Written()) }

func writeDuration(e *jsontext.Encoder, d time.Duration) error {
	unit, err := unitOf(e.StackPointer())
	switch {
	case err != nil:
		return err
	case unit == time.Nanosecond:
		return e.WriteToken(jsontext.Int(int64(d)))
	case d < 0:
		return e.WriteToken(jsontext.Null)
	}
	return e.WriteToken(jsontext.Float(float64(d) / float64(unit)))
}

func readDuration(d *jsontext.Decoder, to *time.Duration) error {
	unit, err := unitOf(d.StackPointer())
	if err != nil {
		return err
	}
	if d.PeekKind() == jsontext.KindNull {
		*to = -1
		return d.SkipValue()
	}
	var x float64
	if err := json.UnmarshalDecode(d, &x); err != nil {
		return err
	}
	*to = Duration(x, unit)
	return nil
}

func writeFloat(e *jsontext.Encoder, x float64) error {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return e.WriteToken(jsontext.Null)
	}
	return errors.ErrUnsupported
}

func readFloat(d *jsontext.Decoder, to *float64) error {
	if d.PeekKind() == jsontext.KindNull {
		*to = math.NaN()
		return d.SkipValue()
	}
	return errors.ErrUnsupported
}

// Duration returns x units of time, rounded to whole nanoseconds and limited to the range of a [time.Duration].
func Duration(x float64, unit time.Duration) time.Duration {
	const most = 1 << 62
	return time.Duration(math.Round(min(max(x*float64(unit), -most), most)))
}

// Milliseconds converts seconds, rounded to twelve digits, more than any measurement has.
func Milliseconds(seconds float64) float64 {
	return stat.Rounded(1e3*seconds, 12)
}

// ReadName sets a value by its name, given all names in the order of the values; an unknown name is an error.
func ReadName[T ~int](to *T, names []string, text []byte) error {
	i := slices.Index(names, string(text))
	if i < 0 {
		return fmt.Errorf("unknown name %q; allowed: %s", text, strings.Join(names, ", "))
	}
	*to = T(i)
	return nil
}
