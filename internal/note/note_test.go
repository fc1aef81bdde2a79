package note

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"os"
	"slices"
	"testing"
	"time"

	"planner/internal/evidence/must"
	"planner/internal/list"
	"planner/internal/wire"
)

func TestSentence(t *testing.T) {
	for want, n := range map[string]Note{
		"the client was late: p99 of the send lag 2.5ms, 1ms allowed":      New(SendLag, 2500*time.Microsecond, time.Millisecond),
		"12 of 40 requests were still in flight at the end":                New(RequestsOpen, 12, 40),
		"prompts: the server counts +3.1 % tokens against those asked for": New(PromptsOff, 3.14),
		"prompts: their length is a guess of one token a word: gone":       New(PromptsGuessed, errors.New("gone")),
		"costs 116.4 % more per hour":                                      New(Dearer, 116.4),
		"costs 177 times as much per hour":                                 New(Dearer, 17615.1),
		"overloaded: the backlog kept growing":                             New(Overloaded),
		"not told apart from the best set: at 12 requests/s, on the same requests: 98 % beyond ttft.p99, the best set 97 % beyond ttft.p99": New(SeenAsGood, 12.0, "98 % beyond ttft.p99", "97 % beyond ttft.p99"),
		"errors: none of 2 requests failed, which proves a share below 99.7 %, not below 0.1 %":                                             New(ErrorsUnproven, 2, 99.7, 0.1),
		"what {requests%d} somebody else said":       Text("what {requests%d} somebody else said"),
		"client: it stood still for 0.30 s at 4.0 s": New(ClientStood, 300*time.Millisecond, 4*time.Second),
	} {
		if got := n.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestSentences: every kind has a sentence, and every figure a name and a verb that
// write it.
func TestSentences(t *testing.T) {
	for _, k := range kinds {
		n := Note{Kind: k, Figures: map[string]any{}}
		for _, name := range k.names() {
			n.Figures[name] = 1.0
		}
		if got := n.String(); got == "" || slices.ContainsFunc([]rune(got), func(r rune) bool { return r == '{' || r == '!' || r == '}' }) {
			t.Errorf("%s: %q of %q", k.name(), got, k.template())
		}
	}
}

// TestKinds: every kind is listed, with a name of its own.
func TestKinds(t *testing.T) {
	source := must.Get(os.ReadFile("kinds.go"))
	names := map[string]bool{}
	for _, k := range kinds {
		names[k.name()] = true
	}
	if declared := bytes.Count(source, []byte(" Kind = ")); len(kinds) != declared || len(names) != declared {
		t.Errorf("%d kinds are declared, %d listed with %d names", declared, len(kinds), len(names))
	}
}

func TestJSON(t *testing.T) {
	for _, n := range []Note{New(SendLag, 2500*time.Microsecond, time.Millisecond), New(FailedWith, 3, "http status", "429"), New(Overloaded), Text("so")} {
		data := must.Get(wire.Marshal(n))
		var back Note
		if err := json.Unmarshal(data, &back); err != nil || !back.Equal(n) {
			t.Errorf("%s is read as %v, %v", data, back, err)
		}
	}
	data, err := wire.Marshal(New(PromptsOff, math.Inf(1)))
	if err != nil || string(data) != `{"kind":"prompts_off","text":"prompts: the server counts +Inf % tokens against those asked for","figures":{"more_percent":null}}` {
		t.Errorf("%s, %v", data, err)
	}
	for _, old := range []string{`{"kind":"of_tomorrow","text":"so","figures":{"a":1}}`, `{"kind":"client_late","text":"so","figures":{"lag_ms":1}}`, `"so"`} {
		var n Note
		if err := json.Unmarshal([]byte(old), &n); err != nil || !n.Equal(Text("so")) {
			t.Errorf("%s is read as %v, %v", old, n, err)
		}
	}
	if got := (Warnings{Texts: []string{"so"}}).Read(); !got[0].Equal(Text("so")) {
		t.Errorf("an older file is read as %v", got)
	}
}

func TestSummary(t *testing.T) {
	notes := Notes{
		New(ClientStood, 300*time.Millisecond, 4*time.Second), New(Overloaded), New(BoundUnresolved, "ttft.p99", 400),
		New(ClientStood, 1200*time.Millisecond, 9*time.Second), Text("a"), New(BoundUnresolved, "e2e.p99", 400), Text("b"), Text("a"),
	}
	want := []string{
		"client: it stood still for 0.30 to 1.20 s at 4.0 to 9.0 s (2 times)",
		"overloaded: the backlog kept growing",
		"ttft.p99 is undecided: 400 requests do not resolve it",
		"a (2 times)",
		"e2e.p99 is undecided: 400 requests do not resolve it",
		"b",
	}
	if got := notes.Summary(); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if !notes.Has(Overloaded) || notes.Has(SendLag) || len(notes.Of(ClientStood)) != 2 {
		t.Errorf("%v", notes)
	}
}

func TestReason(t *testing.T) {
	for _, r := range []Reason{{}, {Text: "so"}, Because(CarriesLess, "5", "6"), ReasonOf(New(EmptyPool, 1)), ReasonOf(errors.New("so"))} {
		data := must.Get(wire.Marshal(r))
		var back Reason
		if err := json.Unmarshal(data, &back); err != nil || back.Text != r.Text || !back.Read().Equal(r.Read()) || back.Read().String() != r.Text {
			t.Errorf("%s is read as %+v, %v", data, back, err)
		}
	}
	reasons := []Reason{Because(CarriesLess, "5", "6"), Because(EngineFailed, "mem", ": 5 GiB"), Because(CarriesLess, "4", "6"), Because(EngineFailed, "gone", ": 5 GiB"),
		Because(EngineFailed, "mem", ": 6 GiB"), {Text: "so"}, {Text: "so"}, {Text: "so 2"}}
	var sizes []int
	for _, g := range list.Groups(reasons, func(r Reason) string { return r.Read().Likeness() }) {
		sizes = append(sizes, len(g))
	}
	if !slices.Equal(sizes, []int{2, 2, 1, 2, 1}) {
		t.Errorf("%v of a kind", sizes)
	}
}
