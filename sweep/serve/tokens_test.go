package serve

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"planner/internal/evidence/must"
)

// FuzzTokenize: every text has tokens, which detokenise to a text of as many, and
// generated text has the tokens that it was generated with.
func FuzzTokenize(f *testing.F) {
	for _, s := range []string{"", "Hello world", "  two spaces", " abc abd", "ünïcödé ✓ 漢字漢字漢字", "\xff\xfe broken", "a b c"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		ids := tokenize(nil, s)
		if (len(ids) == 0) != (s == "") || len(ids) > len(s) {
			t.Fatalf("%q has %d tokens", s, len(ids))
		}
		var text []byte
		for _, id := range ids {
			if id < 0 || id >= vocabulary || id >= eosToken && id < firstHashed {
				t.Fatalf("%q has the token %d", s, id)
			}
			text = appendWord(text, id)
		}
		again := tokenize(nil, string(text))
		if len(again) != len(ids) {
			t.Fatalf("%q has %d tokens, detokenised %q has %d", s, len(ids), text, len(again))
		}
		for i, id := range ids {
			if id < words && again[i] != id {
				t.Fatalf("%q: generated token %d comes back as %d", s, id, again[i])
			}
		}
	})
}

// FuzzRequest: no body makes the server fail otherwise than by a refusal, and what it
// accepts fits the context.
func FuzzRequest(f *testing.F) {
	for _, s := range []string{
		`{"prompt":[1,2,3],"max_tokens":5}`, `{"prompt":"x","stream":true,"stream_options":{"include_usage":true}}`, `{"messages":[{"role":"user","content":"x"}]}`,
		`{"prompt":[[1]]}`, `{"prompt":[[[[1]]]]}`, `{"prompt":["a"]}`, `{"messages":[{"content":[{"type":"text","text":"y"}]}]}`, `{"prompt":[1e3]}`, `{"n":null}`, `[]`, `null`,
		`{"prompt":[99999999999999999999]}`, `{"prompt":"\ud800"}`, `{"min_tokens":-1,"prompt":"a"}`, `{"max_tokens":9223372036854775807,"prompt":"a"}`,
	} {
		f.Add([]byte(s), false)
		f.Add([]byte(s), true)
	}
	server := Simulator{Model: "m", MaxModelLen: 50, reply: 8}
	f.Fuzz(func(t *testing.T, body []byte, chat bool) {
		c, err := server.parseRequest(body, chat)
		if err != nil {
			if _, ok := err.(*apiError); !ok {
				t.Fatalf("%q: error of the type %T: %v", body, err, err)
			}
			return
		}
		if len(c.prompt) == 0 || c.output < 1 || len(c.prompt)+c.output > 50 {
			t.Fatalf("%q: accepted with %d prompt and %d output tokens", body, len(c.prompt), c.output)
		}
		r := newReply(c, "id\"\n", "m", 1)
		var stream []byte
		for k := range c.output {
			r.Due = append(r.Due, 0)
			stream = r.token(stream, k)
		}
		if _, done := events(t, string(r.ending(stream))); !done {
			t.Fatalf("%q: no end", body)
		}
		if !json.Valid(r.object()) {
			t.Fatalf("%q: not JSON: %s", body, r.object())
		}
	})
}

// FuzzParseIDs compares the reader of token ids with encoding/json.
func FuzzParseIDs(f *testing.F) {
	for _, s := range []string{`[]`, `[1]`, `[1, 2,3 ]`, `[1.0]`, `[-1]`, `[true]`, `[1e2]`, `[2147483648]`, "[1,\n\t2]"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var want []int64
		if !json.Valid([]byte(s)) || len(s) == 0 || s[0] != '[' {
			return
		}
		err := json.Unmarshal([]byte(s), &want)
		good := err == nil && len(want) > 0
		for _, id := range want {
			good = good && id >= 0 && id <= maxTokenID
		}
		got, err := parseIDs([]byte(s))
		if good != (err == nil) && !(len(want) == 0 && err == nil) {
			// A list with null reads as 0 in encoding/json, and "-0" as 0.
			if !good || !(slices.Contains(want, 0)) {
				t.Fatalf("%q: %v, %v; want %v", s, got, err, want)
			}
			return
		}
		for i, id := range got {
			if good && int64(id) != want[i] {
				t.Fatalf("%q: %v, want %v", s, got, want)
			}
		}
	})
}

// TestDistributionDraws compares the means of many draws with those of the distributions.
func TestDistributionDraws(t *testing.T) {
	const n = 200_000
	for text, want := range map[string]float64{
		"100ms": 0.1, "exponential:50ms": 0.05, "lognormal:100ms,0.5": 0.1 * math.Exp(0.125), "uniform:80ms,120ms": 0.1,
	} {
		d := must.Get(ParseDistribution(text))
		rng := rand.New(rand.NewPCG(1, 1))
		sum, least := 0.0, time.Duration(math.MaxInt64)
		for range n {
			x := d.draw(rng)
			sum += x.Seconds()
			least = min(least, x)
		}
		if mean := sum / n; math.Abs(mean-want) > 0.01*want || least < 0 {
			t.Errorf("%s: mean %v, least %v, want %v", text, mean, least, want)
		}
	}
}
