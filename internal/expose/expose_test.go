package expose

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"planner/internal/evidence/must"
	"planner/sweep/load"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

// slowServer answers with two tokens, and every tenth request with an error.
func slowServer(t *testing.T, pause time.Duration) string {
	t.Helper()
	n := make(chan int, 1)
	n <- 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i := <-n + 1
		n <- i
		if i%10 == 0 {
			http.Error(w, "no", http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for range 2 {
			time.Sleep(pause)
			fmt.Fprint(w, "data: {\"choices\":[{\"index\":0,\"text\":\" a\"}]}\n\n")
			w.(http.Flusher).Flush()
		}
		fmt.Fprint(w, "data: {\"choices\":[{\"index\":0,\"text\":\"\",\"finish_reason\":\"length\"}],\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":2}}\n\ndata: [DONE]\n\n")
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// figures are the series of a page.
func figures(page io.Reader) map[string]float64 {
	p := expfmt.NewTextParser(model.UTF8Validation)
	families := must.Get(p.TextToMetricFamilies(page))
	out := map[string]float64{}
	for name, f := range families {
		for _, m := range f.Metric {
			key := name
			for _, l := range m.Label {
				key += " " + l.GetValue()
			}
			out[key] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	return out
}

// A load test is told of while it runs, and what came of it stays on the page; the next
// one counts on.
func TestExporter(t *testing.T) {
	t.Parallel()
	free := must.Get(net.Listen("tcp", "127.0.0.1:0"))
	address := free.Addr().String()
	free.Close()
	file := filepath.Join(t.TempDir(), "planner.prom")
	page := must.Get(New(address))
	text := must.Get(New(file))
	fetch := func() map[string]float64 {
		r := must.Get(http.Get("http://" + address + "/metrics"))
		defer r.Body.Close()
		return figures(r.Body)
	}
	tokens := workload.Lengths{Dist: workload.Fixed, Value: 2}
	trial := measure.Trial{Number: 1, Rate: 100, Window: 500 * time.Millisecond, Workload: &workload.Workload{Class: "x", Arrivals: workload.Constant,
		Shapes: []workload.Shape{{Prompt: tokens, Output: tokens}}}}
	client := load.Client{URL: slowServer(t, 20*time.Millisecond), Model: "m", Stream: true, Engine: "generic"}
	for round := 1; round <= 2; round++ {
		test := must.Get(client.Start(context.Background(), trial, trial.Schedule()))
		for _, x := range []*Exporter{page, text} {
			x.See([]measure.Trial{trial})
			x.See(test)
		}
		time.Sleep(300 * time.Millisecond)
		if now := fetch(); now["planner_trial_running"] != 1 || now["planner_offered_requests_per_second"] != 100 ||
			now["planner_requests_in_flight"] < 1 || now["planner_requests_sent_total"] < float64(40*(round-1)+10) {
			t.Errorf("under way: %v", now)
		}
		must.Get(test.Wait())
		for _, x := range []*Exporter{page, text} {
			x.See(measure.Measurement{})
		}
		end := fetch()
		if n := float64(len(trial.Schedule()) * round); end["planner_trial_running"] != 0 || end["planner_requests_in_flight"] != 0 || end["planner_requests_sent_total"] != n ||
			end["planner_requests_done_total"] != n || end["planner_requests_failed_total"] < n/10-1 || end["planner_ttft_seconds 0.5"] < 0.02 {
			t.Errorf("at the end of %d: %v", round, end)
		}
	}
	want := fetch()
	for _, x := range []*Exporter{page, text} {
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	}
	f := must.Get(os.Open(file))
	defer f.Close()
	for name, x := range figures(f) {
		if !strings.Contains(name, "elapsed") && x != want[name] {
			t.Errorf("%s is %v in the file, %v on the page", name, x, want[name])
		}
	}
	if _, err := New("no/such/folder/planner.prom"); err == nil {
		t.Error("a file where no folder is")
	}
}
