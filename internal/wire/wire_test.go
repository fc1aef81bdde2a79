package wire

import (
	"bytes"
	"encoding/json"
	"math"
	"testing"
	"time"

	"planner/internal/evidence/must"
)

type sample struct {
	Took   time.Duration            `json:"took_s"`
	Trip   time.Duration            `json:"round_trip_ms"`
	Due    time.Duration            `json:"due_ns"`
	Limits map[string]time.Duration `json:"ttft_ms"`
	Pair   [2]time.Duration         `json:"pair_s,omitzero"`
	Share  float64                  `json:"share"`
	Known  *float64                 `json:"known"`
	List   []float64                `json:"list"`
	Inner  struct {
		Mean time.Duration `json:"mean"`
		N    int           `json:"n"`
	} `json:"e2e_ms"`
	Note string `json:"note,omitempty"`
}

func TestUnitsStandInKeys(t *testing.T) {
	v := sample{Took: 1500 * time.Millisecond, Trip: 1234567, Due: -1, Share: 0.25, List: []float64{1, math.NaN()}, Note: "a<b",
		Limits: map[string]time.Duration{"p99": time.Second, "mean": -1}}
	v.Inner.Mean, v.Inner.N = 2500*time.Microsecond, 3
	const want = `{"took_s":1.5,"round_trip_ms":1.234567,"due_ns":-1,"ttft_ms":{"mean":null,"p99":1000},"share":0.25,` +
		`"known":null,"list":[1,null],"e2e_ms":{"mean":2.5,"n":3},"note":"a\u003cb"}`
	got, err := Marshal(v)
	if err != nil || string(got) != want {
		t.Fatalf("%v\n%s\nwant\n%s", err, got, want)
	}
	var back sample
	must.OK(Unmarshal(got, &back))
	if !math.IsNaN(back.List[1]) || back.Known != nil {
		t.Errorf("unknown figures came back as %v and %v", back.List[1], back.Known)
	}
	if again, err := Marshal(back); err != nil || string(again) != want {
		t.Errorf("%v\nwritten again\n%s", err, again)
	}
	for _, x := range []float64{math.Inf(1), math.Inf(-1)} {
		if got, err := Marshal(x); err != nil || string(got) != "null" {
			t.Errorf("%g is %s, %v", x, got, err)
		}
	}
}

// A duration whose key does not say its unit is a mistake in the program.
func TestDurationWithoutUnit(t *testing.T) {
	if got, err := Marshal(struct{ Took time.Duration }{1}); err == nil {
		t.Errorf("written as %s", got)
	}
	var v struct{ Took time.Duration }
	if err := Unmarshal([]byte(`{"Took":1}`), &v); err == nil {
		t.Errorf("read as %v", v.Took)
	}
}

// Lists and maps of nothing are empty, wherever they stand.
func TestNothingIsEmpty(t *testing.T) {
	v := struct {
		List []string       `json:"list"`
		Map  map[string]int `json:"map"`
		Left []string       `json:"left,omitempty"`
	}{}
	if got, err := Marshal(v); err != nil || string(got) != `{"list":[],"map":{}}` {
		t.Errorf("%s, %v", got, err)
	}
}

// Apart from these rules a document is what encoding/json writes, to the byte.
func TestAsEncodingJSON(t *testing.T) {
	type part struct {
		C bool `json:"c,omitempty"`
	}
	v := struct {
		part
		Floats []float64      `json:"floats"`
		Empty  []string       `json:"empty"`
		Map    map[string]int `json:"map"`
		None   map[string]int `json:"none,omitempty"`
		Any    any            `json:"any"`
		Text   string         `json:"text"`
		Time   time.Time      `json:"time"`
	}{
		part{true}, []float64{0, 1, 0.1, 1e-7, 1e21, 1e20, 123456789.125, -0.5, 5e-324, math.MaxFloat64}, []string{},
		map[string]int{"b": 1, "a": 2}, nil, map[string]any{"z": 1.5, "y": []any{}}, "<&>\u2028é\x01", time.Unix(1, 5).UTC(),
	}
	want, _ := json.Marshal(v)
	if got, err := Marshal(v); err != nil || string(got) != string(want) {
		t.Errorf("%v\n%s\nwant\n%s", err, got, want)
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	_ = e.Encode(v)
	if got, err := Print(v); err != nil || string(got)+"\n" != b.String() {
		t.Errorf("%v\n%s\nwant\n%s", err, got, b.String())
	}
}

// marshaled writes itself by these rules, as a type with a method does.
type marshaled string

func (m marshaled) MarshalJSON() ([]byte, error) { return Marshal(string(m)) }

func TestPrintLeavesSigns(t *testing.T) {
	if got, err := Print([]any{marshaled("a < b")}); err != nil || string(got) != "[\n  \"a < b\"\n]" {
		t.Errorf("%s, %v", got, err)
	}
}

// Times below 26 days come back to the nanosecond; far ones stay within what a
// Duration holds.
func TestTimesComeBack(t *testing.T) {
	type pair struct {
		Long  time.Duration `json:"_s"`
		Short time.Duration `json:"_ms"`
	}
	for _, d := range []time.Duration{0, 1, 999, 123456789, time.Hour + 1, 26*24*time.Hour - 1} {
		text := must.Get(Marshal(pair{d, d}))
		var back pair
		if err := Unmarshal(text, &back); err != nil || back != (pair{d, d}) {
			t.Errorf("%v is %s and comes back as %v, %v", d, text, back, err)
		}
	}
	if far := Duration(1e300, time.Second); far <= 0 {
		t.Errorf("a long time is %v", far)
	}
	if far := Duration(-1e300, time.Second); far >= 0 {
		t.Errorf("a long time ago is %v", far)
	}
}

func TestMillisecondsHaveTwelveDigits(t *testing.T) {
	for s, want := range map[float64]float64{0: 0, 0.1: 100, 1.0 / 3: 333.333333333, 0.0123456789012345: 12.3456789012} {
		if got := Milliseconds(s); got != want {
			t.Errorf("%g s: %v ms, want %v", s, got, want)
		}
	}
}
