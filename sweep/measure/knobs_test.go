package measure

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"planner/internal/evidence/must"
	"planner/internal/wire"
)

// Every field of Knobs is in the table under its JSON key, and its row reads and writes that field
// alone.
func TestKnobTable(t *testing.T) {
	rows := map[string]Knob{}
	for _, n := range KnobTable {
		rows[n.Name] = n
	}
	fields := reflect.TypeFor[Knobs]()
	for i := range fields.NumField() {
		f := fields.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" {
			continue // whether another one is known
		}
		n, ok := rows[name]
		if delete(rows, name); !ok {
			t.Errorf("%s has no row in the table", f.Name)
			continue
		}
		value := map[reflect.Kind]any{reflect.Int: 7, reflect.Float64: 0.5, reflect.Bool: true, reflect.String: "x"}[f.Type.Kind()]
		var k Knobs
		n.Set(&k, value)
		if got := reflect.ValueOf(k).Field(i).Interface(); got != value || n.Get(k) != value || (Knobs{}).Differences(k) != 1 {
			t.Errorf("%s set to %v: %+v", name, value, k)
		}
		if n.Set(&k, nil); n.Get(k) != nil && n.Name != "prefix_caching" {
			t.Errorf("%s left to the engine: %v", name, n.Get(k))
		}
	}
	if len(rows) > 0 {
		t.Errorf("rows without a field: %v", rows)
	}
	for i, n := range Searched() {
		if n.Precedence != i+1 || len(n.Usual) == 0 || reflect.TypeOf(n.Usual[0]) != reflect.TypeOf(n.Zero) {
			t.Errorf("%s: precedence %d, usual values %v", n.Name, n.Precedence, n.Usual)
		}
	}
}

func TestKnobsFillAndDescribe(t *testing.T) {
	from := Knobs{MaxNumSeqs: 64, GPUMemoryUtilization: 0.9, PrefixCaching: true, GPU: "L4", TensorParallel: 2}
	got := Knobs{MaxNumSeqs: 8, PrefixUnknown: true}.Or(from)
	want := from
	if want.MaxNumSeqs = 8; got != want {
		t.Errorf("filled %+v, want %+v", got, want)
	}
	if got, want := got.Describe(), "GPU L4, TP 2, seqs 8, memory 0.9, prefix cache true"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// A knob that is not known is null, and comes back as such; a journal without the key means off, as
// it always did.
func TestKnobsJSON(t *testing.T) {
	for _, k := range []Knobs{
		{}, {PrefixCaching: true, MaxNumSeqs: 8, TensorParallel: 2}, {PrefixUnknown: true, MaxNumSeqs: 256, GPU: "L40S"},
	} {
		text := must.Get(wire.Marshal(k))
		if strings.Contains(string(text), `"prefix_caching":null`) != k.PrefixUnknown {
			t.Errorf("%+v: %s", k, text)
		}
		back := Knobs{MaxModelLen: 7, PrefixUnknown: true}
		if err := json.Unmarshal(text, &back); err != nil || back != k {
			t.Errorf("%+v came back as %+v (%v)", k, back, err)
		}
	}
	var k Knobs
	if err := json.Unmarshal([]byte(`{"max_num_seqs":8}`), &k); err != nil || k != (Knobs{MaxNumSeqs: 8}) {
		t.Errorf("%+v, %v", k, err)
	}
}
