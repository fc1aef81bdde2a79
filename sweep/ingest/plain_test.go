package ingest

import (
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"planner/internal/evidence/must"
	"planner/sweep/measure"
)

// plainResults reads a plain CSV, whatever it looks like.
func plainResults(name string, data []byte) (*Results, error) {
	p := &pointReader{name: name, layout: &plainFormat.layouts[0]}
	err := p.documents(data)
	return &Results{Measurements: p.points}, err
}

func TestPlainTable(t *testing.T) {
	data := must.Get(os.ReadFile("../../testdata/llama-70b-8xh100.csv"))
	r := must.Get(Read("table.csv", data))
	if len(r.Measurements) != 9 {
		t.Fatalf("%d points", len(r.Measurements))
	}
	m := r.Measurements[6]
	if m.Trial.Rate != 30 || m.TTFT.P50 != 480*time.Millisecond || m.TTFT.P99 != 2500*time.Millisecond || !m.Valid {
		t.Errorf("point %+v", m)
	}
	if m.TTFT.P90 != measure.Unresolved || m.TPOT.P99 != measure.Unresolved || m.Counts != nil || m.Requests != 0 || !math.IsNaN(m.Achieved) {
		t.Errorf("figures that the table does not hold: %+v", m)
	}
}

func TestPlainColumns(t *testing.T) {
	const text = "\xef\xbb\xbf# measured by hand\n" +
		" Rate_Per_S, ttft_p99_ms,tpot_mean_ms,e2e_p99.9_ms,itl_p999_ms,achieved_per_s,requests,failed,duration_s,max_num_seqs,prefix_caching,gpu\n" +
		"2.5,120.5,30,,41,2.4,600,3,240,256,true,H100 SXM\n"
	m := must.Get(plainResults("t.csv", []byte(text))).Measurements[0]
	want := measure.Knobs{MaxNumSeqs: 256, PrefixCaching: true, GPU: "H100 SXM"}
	if m.Trial.Knobs != want || m.Trial.Rate != 2.5 || m.Achieved != 2.4 || m.Requests != 600 || m.Failed != 3 || m.Duration != 4*time.Minute {
		t.Errorf("conditions %+v", m)
	}
	if m.TTFT.P99 != 120500*time.Microsecond || m.TPOT.Mean != 30*time.Millisecond || m.ITL.P999 != 41*time.Millisecond || m.E2E.P999 != measure.Unresolved || m.TTFT.N != 597 {
		t.Errorf("latencies %+v", m.Latencies)
	}
}

func TestPlainProblems(t *testing.T) {
	for _, tc := range []struct{ text, want string }{
		{"", "t.csv: no header"},
		{"rate_per_s,ttft_p99_ms\n", "t.csv: no rows"},
		{"rate,ttft_p99_ms\n1,2\n", "t.csv:1: rate: unknown column"},
		{"rate,ttft_p99_ms\n1,2\n", "t.csv:1: rate_per_s: the column is missing"},
		{"rate_per_s,ttft_p98_ms\n1,2\n", "t.csv:1: ttft_p98_ms: unknown column"},
		{"rate_per_s,requests\n1,2\n", "t.csv:1: no column of latencies"},
		{"rate_per_s,ttft_p99_ms,ttft_p99_ms\n1,2,2\n", "t.csv:1: ttft_p99_ms: the column is there twice"},
		{"rate_per_s,ttft_p99_ms\n1,2\n,3\n", "t.csv:3: rate_per_s: is empty"},
		{"rate_per_s,ttft_p99_ms\n1,\n", "t.csv:2: no latency in this row"},
		{"rate_per_s,ttft_p99_ms\n-1,2\n", `t.csv:2: rate_per_s: "-1" is not a finite number above 0`},
		{"rate_per_s,ttft_p99_ms\nNaN,2\n", `t.csv:2: rate_per_s: "NaN"`},
		{"rate_per_s,ttft_p99_ms\n1,1e30\n", "t.csv:2: ttft_p99_ms: 1e+30 is no latency"},
		{"rate_per_s,ttft_p50_ms,ttft_p99_ms\n1,30,20\n", "t.csv:2: ttft: p99 of 20ms is below p50 of 30ms"},
		{"rate_per_s,ttft_p99_ms,requests,failed\n1,2,10,11\n", "t.csv:2: failed: 11 of 10 requests"},
		{"rate_per_s,ttft_p99_ms,failed\n1,2,3\n", "t.csv:2: failed: 3 of how many? requests is empty or missing"},
		{"rate_per_s,ttft_p99_ms,requests\n1,2,1.5\n", `t.csv:2: requests: "1.5" is not a whole number`},
		{"rate_per_s,ttft_p99_ms\n1,2,3\n", "t.csv:2: 3 cells, the header has 2"},
		{"rate_per_s,ttft_p99_ms\n1,\"2\n", "t.csv:"},
	} {
		_, err := plainResults("t.csv", []byte(tc.text))
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%q: error %v, want %q", tc.text, err, tc.want)
		}
		if err != nil && !inFile(err) {
			t.Errorf("%q: %T is no *fileError", tc.text, err)
		}
	}
	// All problems at once.
	_, err := plainResults("t.csv", []byte("rate_per_s,ttft_p99_ms\nx,2\n1,y\n"))
	if err == nil || strings.Count(err.Error(), "\n") != 1 {
		t.Errorf("two problems as %v", err)
	}
}
