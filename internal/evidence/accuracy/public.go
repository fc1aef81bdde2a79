package main

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"

	"planner/internal/config"
	"planner/internal/list"
	"planner/model"
	"planner/model/calibrate"
	"planner/model/sim"
	"planner/sweep/workload"
)

// publicName is the file of the servers that others measured.
const publicName = "public.toml"

// publicFile is that file; its beginning says what the keys mean.
type publicFile struct {
	GPU, Model []map[string]any          // rows of tables that the catalog lacks
	Workload   map[string]map[string]any // keys of [workload] of planner.toml, by the name that loads use
	Server     []publicServer
}

// publicServer is one server: settings as in planner.toml, and its loads.
type publicServer struct {
	Source, Batch                  string
	Model, Hardware, Engine, Knobs map[string]any
	SamePrompts                    bool         `toml:"same_prompts"`
	Loads                          []publicLoad `toml:"load"`
}

// publicLoad is one load and what was measured: lengths in tokens, counts, and what the keys say.
type publicLoad struct {
	Prompt, Output  int
	Workload        string
	Slots, Requests int
	Rate            float64
	Ramp            float64 `toml:"ramp_s"`
	TTFT            float64 `toml:"ttft_ms"`
	TTFTMedian      float64 `toml:"ttft_p50_ms"`
	TPOT            float64 `toml:"tpot_ms"`
	TPOTMedian      float64 `toml:"tpot_p50_ms"`
	TPOTP99         float64 `toml:"tpot_p99_ms"`
	E2EP99          float64 `toml:"e2e_p99_ms"`
	Duration        float64 `toml:"duration_s"`
	RequestRate     float64 `toml:"requests_per_s"`
	OutputRate      float64 `toml:"tokens_per_s"`
	TokenRate       float64 `toml:"total_tokens_per_s"`
}

// readPublic reads the servers that others measured: the file is the server's source, the group
// the batch in which it was predicted. The seed draws arrivals and lengths.
func readPublic(dir string, seed uint64) ([]server, error) {
	data, err := os.ReadFile(filepath.Join(dir, publicName))
	if err != nil {
		return nil, err
	}
	var f publicFile
	if err := toml.NewDecoder(bytes.NewReader(data)).DisallowUnknownFields().Decode(&f); err != nil {
		return nil, fmt.Errorf("read %s: %w", publicName, err)
	}
	catalog, err := f.catalog()
	if err != nil {
		return nil, err
	}
	out := make([]server, len(f.Server))
	for i := range f.Server {
		if out[i], err = f.server(&f.Server[i], catalog, seed); err != nil {
			return nil, fmt.Errorf("%s: server %d, %s: %w", publicName, i+1, f.Server[i].Source, err)
		}
	}
	return out, nil
}

// catalog returns the built-in catalog with the file's own rows.
func (f *publicFile) catalog() (*model.Catalog, error) {
	catalog, err := model.NewCatalog()
	if err != nil {
		return nil, err
	}
	for table, rows := range map[model.CatalogTable][]map[string]any{model.GPUTable: f.GPU, model.ModelTable: f.Model} {
		for _, cells := range rows {
			row := model.Row{}
			for name, cell := range cells {
				row[name] = fmt.Sprint(cell)
			}
			if err := catalog.Put(table, row); err != nil {
				return nil, fmt.Errorf("%s: %w", publicName, err)
			}
		}
	}
	return catalog, nil
}

// server configures a server as planner would for each of its loads; requests may be as long as
// those of any.
func (f *publicFile) server(p *publicServer, catalog *model.Catalog, seed uint64) (server, error) {
	s := server{file: p.Source, group: p.Batch}
	for i := range p.Loads {
		l := &p.Loads[i]
		c, err := f.configured(p, l, catalog)
		if err != nil {
			return server{}, err
		}
		runnable, rejected := c.Candidates()
		if len(runnable) != 1 {
			return server{}, fmt.Errorf("%d configurations, rejected: %v", len(runnable), rejected)
		}
		k := runnable[0]
		longest := s.limits.MaxModelLen
		s.dep, s.limits, s.cache = c.Deployment(k), sim.Args(k, c.Engine.Version, c.Engine.Features()), k.PrefixCaching
		s.limits.MaxModelLen = max(s.limits.MaxModelLen, longest)
		s.loads = append(s.loads, l.load(&c.Workload, p.SamePrompts, seed))
	}
	return s, nil
}

// configured is planner's configuration of a server under a load.
func (f *publicFile) configured(p *publicServer, l *publicLoad, catalog *model.Catalog) (*config.Config, error) {
	lengths, known := f.Workload[l.Workload]
	if l.Workload == "" {
		lengths, known = map[string]any{"prompt": fixed(l.Prompt), "output": fixed(l.Output)}, true
	}
	if !known {
		return nil, fmt.Errorf("no workload %q", l.Workload)
	}
	return config.LoadWith(catalog, "", slices.Concat(overrides("model", p.Model), overrides("hardware", p.Hardware), overrides("engine", p.Engine),
		overrides("knobs", p.Knobs), overrides("workload", lengths)), config.For("simulate"))
}

// fixed is planner's table of one length in tokens.
func fixed(tokens int) map[string]any { return map[string]any{"dist": "fixed", "value": tokens} }

// overrides are the values of a table, each with its full key.
func overrides(key string, table map[string]any) (out []config.Override) {
	for _, name := range slices.Sorted(maps.Keys(table)) {
		if inner, ok := table[name].(map[string]any); ok {
			out = append(out, overrides(key+"."+name, inner)...)
		} else {
			out = append(out, config.Override{Key: key + "." + name, Value: fmt.Sprint(table[name])})
		}
	}
	return out
}

// Requests of a closed loop for which none are given: so many a slot, and at least so many.
const requestsPerSlot, leastRequests = 5, 10

// load draws the requests and states what was measured. With the same prompts, request i of every
// load has the same text.
func (l *publicLoad) load(w *workload.Workload, samePrompts bool, seed uint64) load {
	n := cmp.Or(l.Requests, max(requestsPerSlot*l.Slots, leastRequests))
	out := load{label: l.label(n), slots: l.Slots}
	switch {
	case l.Rate > 0:
		out.requests = arriving(w, n, l.Rate, seed)
	case l.Ramp > 0:
		out.requests, out.slots = staggered(w.Slots(n, seed), l.Slots, l.Ramp), 0
	default:
		out.requests, out.slots = w.Slots(n, seed), cmp.Or(l.Slots, n)
	}
	if samePrompts {
		for i := range out.requests {
			q := &out.requests[i]
			q.Shared = []workload.Segment{{Content: workload.TraceContent(uint64(i)), Tokens: q.Prompt}}
		}
	}
	out.measured = l.figures(out.requests)
	return out
}

// arriving draws n requests of an open loop; their gaps are rescaled so that the last is due after
// n mean gaps, as vLLM's client does.
func arriving(w *workload.Workload, n int, rate float64, seed uint64) []workload.Request {
	requests := w.Schedule(rate, workload.Span(float64(2*n), rate), seed)[:n]
	stretch := float64(n) / rate / requests[n-1].Due.Seconds()
	for i := range requests {
		requests[i].Due = time.Duration(stretch * float64(requests[i].Due))
	}
	return requests
}

// staggered starts the slots of a closed loop one after another over a ramp in seconds; every
// further request waits for the end of the one before it in its slot.
func staggered(requests []workload.Request, slots int, ramp float64) []workload.Request {
	for i := range requests {
		if i < slots {
			requests[i].Due = time.Duration(ramp * 1e9 * float64(i) / float64(slots))
		} else {
			requests[i].Parent = i - slots + 1
		}
	}
	return requests
}

// figures are what was measured; durations and tokens/s become requests/s, as all requests complete.
func (l *publicLoad) figures(requests []workload.Request) figures {
	prompt := mean(list.Map(requests, func(q workload.Request) float64 { return float64(q.Prompt) }))
	output := mean(list.Map(requests, func(q workload.Request) float64 { return float64(q.Output) }))
	completed := cmp.Or(l.RequestRate, l.OutputRate/output, l.TokenRate/(prompt+output))
	if l.Duration > 0 {
		completed = float64(len(requests)) / l.Duration
	}
	return figures{
		metricTTFT: l.TTFT, metricTPOT: l.TPOT, metricCompleted: completed, metricTTFTMedian: l.TTFTMedian,
		metricTPOTMedian: l.TPOTMedian, metricTPOTP99: l.TPOTP99, metricE2EP99: l.E2EP99,
	}
}

// label says in short what a load of n requests is.
func (l *publicLoad) label(n int) string {
	lengths := cmp.Or(l.Workload, fmt.Sprintf("%d/%d", l.Prompt, l.Output))
	switch {
	case l.Rate > 0:
		return fmt.Sprintf("%s at %g/s", lengths, l.Rate)
	case l.Slots > 0:
		return fmt.Sprintf("%s c%d", lengths, l.Slots)
	}
	return fmt.Sprintf("%s all %d", lengths, n)
}

// deployment names a server's model, format, GPUs and release.
func (s *server) deployment() string {
	return fmt.Sprintf("%s %s, %d x %s, %s", s.model(), s.dep.Precision.Weights, s.dep.GPUs(), s.gpu(), s.limits.EngineVersion)
}

// publicSamples are the sets of constants that an interval is made of, as many as for a plan's.
const publicSamples = 32

// publicFigure is how the interval of one figure did.
type publicFigure struct {
	server *server
	ttft   bool
	covered
}

// groupings are the properties by which public servers are summed up.
var groupings = []struct {
	name string
	of   func(*server) string
}{
	{"batch", func(s *server) string { return s.group }},
	{"generation of the GPU", func(s *server) string { return string(s.dep.Hardware.Generation) }},
	{"experts", func(s *server) string {
		kind, _, _ := strings.Cut(s.kind(), " in ")
		return kind
	}},
	{"format of the weights", (*server).served},
	{"evidence: all times may be off by", (*server).evidence},
	{"source", func(s *server) string {
		source, _, _ := strings.Cut(s.file, ",")
		return source
	}},
}

// served names the kind of a server's model and its format, for experts too.
func (s *server) served() string {
	if s.dep.Arch.MoE.Present() {
		return s.kind() + " in " + s.dep.Precision.Weights.String()
	}
	return s.kind()
}

// evidence is by how much, in percent, all times may be off in 90 % of cases for what was never served.
func (s *server) evidence() string {
	_, within := model.Uncalibrated(s.dep)
	return fmt.Sprintf("%2.0f %%", 100*within)
}

// predictPublic simulates the public servers with the default constants and with samples of them,
// means over the schedules; the servers are those of the first.
func (s *study) predictPublic() (servers []server, central [][]figures, drawn [][][]figures, err error) {
	stated := guise{
		as: func(s server) server { return s }, constants: defaults,
		spread: func(s *server) model.Spread { return model.SpreadFor(s.dep, s.limits) },
	}
	var sum [][][]figures // of the samples, and behind them of the defaults
	for k := range s.schedules {
		read, err := readPublic(s.dir, s.seed+1000*uint64(k))
		if err != nil {
			return nil, nil, nil, err
		}
		central, drawn, err := stated.predict(read, publicSamples)
		if err != nil {
			return nil, nil, nil, err
		}
		if k == 0 {
			servers, sum = read, append(drawn, central)
			continue
		}
		for i, got := range append(drawn, central) {
			addFigures(sum[i], got)
		}
	}
	for i := range sum {
		scaleFigures(sum[i], 1/float64(s.schedules))
	}
	return servers, sum[publicSamples], sum[:publicSamples], nil
}

// printPublic prints each figure of the public servers and how many lie within the stated
// intervals, by kinds of servers.
func (s *study) printPublic(w io.Writer) error {
	servers, central, drawn, err := s.predictPublic()
	if err != nil {
		return err
	}
	fmt.Fprintf(w, `Servers that others measured, simulated with the default constants, means over %d schedules; the interval of 90 %% is of %d draws of
constants, on the same requests. Milliseconds, or for rates and durations requests/s. z is the logarithm of measured over simulated (for rates
of simulated over measured, so that above 0 is slower) in half widths of the interval. Nothing of a client's own is added to TTFT.

`, s.schedules, publicSamples)
	var each []publicFigure
	for i := range servers {
		for l := range servers[i].loads {
			values := list.Map(drawn, func(f [][]figures) figures { return f[i][l] })
			each = append(each, servers[i].printFigures(w, &servers[i].loads[l], &central[i][l], values)...)
		}
	}
	printGroupings(w, servers, each)
	return nil
}

// printFigures prints the figures of a load that were measured, a line each.
func (s *server) printFigures(w io.Writer, l *load, central *figures, drawn []figures) (out []publicFigure) {
	for m := range metricCount {
		if l.measured[m] == 0 {
			continue
		}
		f := publicFigure{server: s, ttft: m == metricTTFT || m == metricTTFTMedian}
		values := list.Map(drawn, func(f figures) float64 { return f[m] })
		low, high := calibrate.Shifts(values).Ends()
		if m == metricCompleted {
			f.add(1/l.measured[m], 1/central[m], list.Map(values, func(v float64) float64 { return 1 / v }))
		} else {
			f.add(l.measured[m], central[m], values)
		}
		fmt.Fprintf(w, "%-60s %-52s %-22s %-11s %10.4g %10.4g %10.4g to %-10.4g z %+5.2f\n",
			s.file, s.deployment(), l.label, m, l.measured[m], central[m], low, high, f.logs[0]/f.widths[0])
		out = append(out, f)
	}
	return out
}

// printGroupings prints how many figures lie within, over all servers and by their properties.
func printGroupings(w io.Writer, servers []server, each []publicFigure) {
	fmt.Fprintf(w, "\n%-44s %s\n%-44s", "", "figures; within; not slower than the slow end; not faster than the fast end; median and rms of ln(measured / simulated)", "")
	for _, name := range []string{"TTFT", "TPOT, durations, rates", "all"} {
		fmt.Fprintf(w, " %-32s", name)
	}
	fmt.Fprintln(w)
	printGroup(w, "all", each)
	for _, by := range groupings {
		fmt.Fprintf(w, "%s\n", by.name)
		for _, name := range names(servers, by.of) {
			printGroup(w, "  "+name, list.Filter(each, func(f publicFigure) bool { return by.of(f.server) == name }))
		}
	}
}

// printGroup prints a line of figures: of TTFT, of all others, and of both.
func printGroup(w io.Writer, name string, of []publicFigure) {
	var ttft, others, both covered
	for i := range of {
		both.join(&of[i].covered)
		if of[i].ttft {
			ttft.join(&of[i].covered)
		} else {
			others.join(&of[i].covered)
		}
	}
	fmt.Fprintf(w, "%-44s %s %s %s\n", name, ttft.sides(), others.sides(), both.sides())
}

// sides says how many figures there are, and their shares within, not slower and not faster, with
// the median and the root of the mean square of their logarithms.
func (c *covered) sides() string {
	n := float64(len(c.logs))
	if n == 0 {
		return fmt.Sprintf("%-32s", "  -")
	}
	return fmt.Sprintf("%3.0f; %4.2f %4.2f %4.2f; %+5.2f %4.2f ", n, c.within(), 1-float64(c.slower)/n, 1-float64(c.faster)/n, quantile(c.logs, 0.5), c.rms())
}
