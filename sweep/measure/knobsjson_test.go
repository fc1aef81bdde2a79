package measure

import (
	"encoding/json"
	"strings"
	"testing"
)

// A knob that nobody told is null, and comes back as such; a journal without the key
// means off, as it always did.
func TestKnobsJSON(t *testing.T) {
	for _, k := range []Knobs{
		{}, {PrefixCaching: true, MaxNumSeqs: 8, TensorParallel: 2}, {PrefixUnknown: true, MaxNumSeqs: 256, GPU: "L40S"},
	} {
		text, err := json.Marshal(k)
		if err != nil {
			t.Fatal(err)
		}
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
