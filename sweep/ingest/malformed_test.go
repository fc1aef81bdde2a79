package ingest

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
	"testing"

	"planner/internal/note"
	"planner/sweep/measure"
)

// inFile reports whether an error says what is wrong with a file.
func inFile(err error) bool {
	_, ok := errors.AsType[*fileError](err)
	return ok
}

// fixture is a result file of testdata.
type fixture struct {
	name string
	data []byte
	read *Results
}

// fixtures are the files of testdata that are read as results.
func fixtures(t testing.TB) (all []fixture) {
	t.Helper()
	err := filepath.WalkDir("testdata", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if r, failed := Read("f", data); failed == nil {
			all = append(all, fixture{path, data, r})
		}
		return err
	})
	if err != nil || len(all) < 30 {
		t.Fatalf("%d fixtures, %v", len(all), err)
	}
	return all
}

var (
	someNumber = regexp.MustCompile(`[:,\[] ?(-?[0-9][0-9.]*(?:[eE][-+]?[0-9]+)?)[,\s\]}]`)
	listEntry  = regexp.MustCompile(`, ?-?[0-9.]+(?:[eE]-?[0-9]+)?\s*[,\]]`)
	somePair   = regexp.MustCompile(`"[a-z_0-9]+": ?-?[0-9.]+(?:[eE]-?[0-9]+)?[,}]`)
)

// replace puts another text for one of the numbers of a file.
func replace(rng *rand.Rand, data []byte, by string) []byte {
	all := someNumber.FindAllSubmatchIndex(data, -1)
	if len(all) == 0 {
		return nil
	}
	at := all[rng.IntN(len(all))]
	old := string(data[at[2]:at[3]])
	return bytes.Join([][]byte{data[:at[2]], []byte(strings.ReplaceAll(by, "*", old)), data[at[3]:]}, nil)
}

// repeat writes one of the matches of an expression twice, or leaves it out.
func repeat(rng *rand.Rand, data []byte, of *regexp.Regexp, times int) []byte {
	all := of.FindAllIndex(data, -1)
	if len(all) == 0 {
		return nil
	}
	at := all[rng.IntN(len(all))]
	match := bytes.TrimRight(data[at[0]:at[1]], "]} ")
	return bytes.Join([][]byte{data[:at[0]], bytes.Repeat(match, times), data[at[0]+len(match):]}, nil)
}

// mutations are ways in which files go wrong; nil where a file has no place for one.
var mutations = []struct {
	name string
	do   func(rng *rand.Rand, data []byte) []byte
}{
	{"cut", func(rng *rand.Rand, data []byte) []byte { return data[:rng.IntN(len(data))] }},
	{"empty", func(*rand.Rand, []byte) []byte { return []byte{} }},
	{"wrong type", func(rng *rand.Rand, data []byte) []byte {
		return replace(rng, data, []string{`"x"`, "true", "{}", "[]", `"*"`, "null"}[rng.IntN(6)])
	}},
	{"negative", func(rng *rand.Rand, data []byte) []byte { return replace(rng, data, "-*") }},
	{"zero", func(rng *rand.Rand, data []byte) []byte { return replace(rng, data, "0") }},
	{"huge", func(rng *rand.Rand, data []byte) []byte {
		return replace(rng, data, []string{"1e308", "1e999", "9e18", "*000000000"}[rng.IntN(4)])
	}},
	{"NaN", func(rng *rand.Rand, data []byte) []byte {
		return replace(rng, data, []string{"NaN", "-Infinity"}[rng.IntN(2)])
	}},
	{"a list too short", func(rng *rand.Rand, data []byte) []byte { return repeat(rng, data, listEntry, 0) }},
	{"a list too long", func(rng *rand.Rand, data []byte) []byte { return repeat(rng, data, listEntry, 3) }},
	{"a key twice", func(rng *rand.Rand, data []byte) []byte { return repeat(rng, data, somePair, 2) }},
	{"deep", func(rng *rand.Rand, data []byte) []byte { return replace(rng, data, strings.Repeat("[", 100_000)+"*") }},
	{"other bytes", func(rng *rand.Rand, data []byte) []byte {
		out := bytes.Clone(data)
		for range 1 + rng.IntN(3) {
			out[rng.IntN(len(out))] = byte(rng.IntN(256))
		}
		return out
	}},
}

// wholeFigures are those of a measurement that are never 0 where it is right.
func wholeFigures(t *testing.T, m *measure.Measurement) map[string]float64 {
	out := map[string]float64{}
	for _, metric := range []string{"ttft", "tpot", "e2e"} {
		for _, stat := range measure.Stats() {
			out[metric+"."+stat] = figureOf(t, m, metric+"."+stat)
		}
	}
	for _, name := range []string{"requests", "completed", "achieved", "output", "prompt", "run"} {
		out[name] = figureOf(t, m, name)
	}
	return out
}

// Files that went wrong are refused by an error that names the file, or read with figures
// that are right or missing: none panics, none turns a figure into 0.
func TestMalformedFiles(t *testing.T) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(400 << 20))
	byFormat := map[string][]fixture{}
	var formats []string
	for _, f := range fixtures(t) {
		if byFormat[f.read.Format] = append(byFormat[f.read.Format], f); len(byFormat[f.read.Format]) == 1 {
			formats = append(formats, f.read.Format)
		}
	}
	rng := rand.New(rand.NewPCG(5, 1))
	refused, read := 0, 0
	for i := 0; refused+read < 360; i++ {
		all := byFormat[formats[i%len(formats)]]
		f := all[rng.IntN(len(all))]
		mutation := mutations[i/len(formats)%len(mutations)]
		data := mutation.do(rng, f.data)
		if data == nil {
			continue
		}
		r, err := Read("f", data)
		where := fmt.Sprintf("%s, %s", f.name, mutation.name)
		if err != nil {
			refused++
			if !inFile(err) || !strings.HasPrefix(err.Error(), "f:") || len(err.Error()) > 1500 {
				t.Errorf("%s: error %q", where, err)
			}
			continue
		}
		read++
		for k := range r.Measurements {
			m := &r.Measurements[k]
			for name, x := range wholeFigures(t, m) {
				uncounted := r.Format == "mlperf" && (name == "requests" || name == "completed") // by its summary
				if !(x > 0 || math.IsNaN(x) || uncounted) || math.IsInf(x, 0) {
					t.Errorf("%s: %s is %g", where, name, x)
				}
			}
			if !loaded(*m) && (m.Valid || !m.Warnings.Has(note.NoLoad)) {
				t.Errorf("%s: valid without a load", where)
			}
		}
	}
	t.Logf("%d formats (%s): %d files refused, %d read", len(formats), strings.Join(formats, ", "), refused, read)
	if len(formats) < 9 || refused < 100 {
		t.Errorf("%d formats, %d refused", len(formats), refused)
	}
}

// Whatever the bytes are, parsing ends with documents or with an error.
func FuzzParsers(f *testing.F) {
	for parser, text := range []string{
		"{\"a\":NaN}\n[{\"b\":[1,\"x\"]}]", "a: [1, .nan]\nb: {c: 'd'}\n", "a,b\n1,\"2\n3\"\n", "Metric,avg\nx,1\n\nMetric,Value\ny,2\n",
		"a : 1\nb (ns): 2\n",
		":::MLLOG {\"key\":\"a\",\"value\":1}\n",
		"A,B\nc,d\nMean,Percentiles\n1,\"[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]\"\n", "Name,User Count\nAggregated,4\n",
	} {
		f.Add(uint8(parser), text)
	}
	f.Fuzz(func(t *testing.T, number uint8, text string) {
		all := []func(*pointReader, []byte){parseJSON, parseYAML, parseRows, parseMetrics, parsePairs, parseMLLog, parseGuidellmTable, parseLocust}
		parsed := func(p *pointReader) loggedRequest {
			p.doc.MarshalTo(nil)
			return unknownRequest()
		}
		all[int(number)%len(all)](&pointReader{layout: &layout{marks: []string{"any"}, request: parsed}}, []byte(text))
	})
}
