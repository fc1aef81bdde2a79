package report

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"html"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"planner/internal/evidence/must"
	"planner/internal/wire"
	"planner/plan"
	"planner/plan/decide"
	"planner/search"
)

// randomPlan is a plan for a demand, rates and prices of any size.
func randomPlan(r *rand.Rand) (*plan.Plan, error) {
	of := func(low, high float64) float64 { return low * math.Pow(high/low, r.Float64()) }
	var offers []plan.Offer
	for i, gpu := range []string{"H100 SXM", "L40S", "MI300X"}[:1+r.IntN(3)] {
		o := offer(gpu, math.Round(of(0.3, 12)*100)/100)
		o.GPUs = 1 << r.IntN(4)
		o.Knobs.GPU, o.Knobs.TensorParallel, o.Knobs.MaxNumSeqs = gpu, o.GPUs, 64<<i
		rate := of(0.02, 900)
		o.Rate = search.Estimate{Value: rate, Low: rate * (1 - 0.2*r.Float64()), High: rate * (1 + 0.2*r.Float64()), Confidence: 0.9}
		o.Rate.Safe = o.Rate.Low + r.Float64()*(rate-o.Rate.Low)/2
		o.PromptTokens, o.OutputTokens = of(20, 30000), of(5, 3000)
		offers = append(offers, o)
	}
	d := plan.Demand{Rate: of(0.001, 30000), Growth: float64(r.IntN(3)) / 4, BurstIndex: 1, Headroom: float64(r.IntN(4)) / 10, Spare: r.IntN(3)}
	return plan.Solve(d, slo(), offers, nil)
}

// figuresOf are the figures of a decision by the keys of its JSON, as a format prints them.
type figuresOf map[string]string

var decisionLine = regexp.MustCompile(`([\d,]+) x .*? \(([\d,]+) instances? of ([\d,]+) GPUs?\) for .*?: \$([\d.,]+) per hour, \$([\d.,]+) per million output tokens`)
var rateLine = regexp.MustCompile(`one instance:? +([\d.,]+) requests/s at most \(([\d.,]+)-([\d.,]+) at 90 %\); safe: ([\d.,]+)`)

// readDecision finds the figures in the running text of a report.
func readDecision(t *testing.T, text string) figuresOf {
	t.Helper()
	text = strings.Join(strings.Fields(text), " ")
	f := figuresOf{}
	for keys, line := range map[string]*regexp.Regexp{
		"gpus instances gpus_per_instance usd_per_hour usd_per_million_output_tokens": decisionLine, "value low high safe": rateLine,
	} {
		found := line.FindStringSubmatch(text)
		if found == nil {
			t.Fatalf("%v is not in %.600s", line, text)
		}
		for i, key := range strings.Fields(keys) {
			f[key] = found[i+1]
		}
	}
	return f
}

// columnKeys are the keys of the columns of what finance reads.
var columnKeys = map[string]string{"GPUs": "gpus", "inst.": "instances", "kW": "kw", "$ an hour": "usd_per_hour", "a month": "usd_per_month", "a year": "usd_per_year",
	"$/M in": "usd_per_million_input_tokens", "$/M out": "usd_per_million_output_tokens", "$/M all": "usd_per_million_tokens", "times": "times_the_cheapest"}

// readTable is what finance reads, a row a GPU, of lines whose cells a pattern splits.
func readTable(text string, gap *regexp.Regexp) map[string]figuresOf {
	rows := map[string]figuresOf{}
	var header []string
	for line := range strings.Lines(text) {
		cells := gap.Split(strings.TrimSpace(line), -1)
		switch {
		case len(cells) > 5 && cells[0] == "GPU":
			header = cells
		case header != nil && len(cells) == len(header) && !strings.HasPrefix(cells[0], ":"):
			gpu, _, _ := strings.Cut(cells[0], ",")
			rows[gpu] = figuresOf{}
			for i, name := range header {
				if key := columnKeys[name]; key != "" {
					rows[gpu][key] = cells[i]
				}
			}
		case len(rows) > 0:
			return rows
		}
	}
	return rows
}

var (
	htmlRow  = regexp.MustCompile(`(?s)<tr[ >].*?</tr>`)
	htmlTag  = regexp.MustCompile(`(?s)<[^>]*>`)
	htmlCell = regexp.MustCompile(`</t[dh]>\s*<t[dh][^>]*>`)
	escapes  = regexp.MustCompile(`\\([^\w\s])`)
	marked   = regexp.MustCompile(`\*\*|(?m)^[-#|] | \|$`)
)

// readHTML is the running text of a page, and its tables with a bar between two cells.
func readHTML(page []byte) (text, tables string) {
	body := string(page[bytes.Index(page, []byte("<body")):])
	for _, row := range htmlRow.FindAllString(body, -1) {
		cells := htmlCell.ReplaceAllString(strings.Join(strings.Fields(row), " "), " | ")
		tables += strings.TrimSpace(html.UnescapeString(htmlTag.ReplaceAllString(cells, ""))) + "\n"
	}
	return html.UnescapeString(htmlTag.ReplaceAllString(body, " ")), tables
}

// agrees reports whether a printed figure is an exact one, rounded where its digits end:
// the ends of an interval outwards, what is safe down.
func agrees(key, printed string, exact float64) bool {
	text := strings.ReplaceAll(printed, ",", "")
	scale := 1.0
	for suffix, by := range map[string]float64{"M": 1e6, "B": 1e9} {
		if cut, is := strings.CutSuffix(text, suffix); is {
			text, scale = cut, by
		}
	}
	v, err := strconv.ParseFloat(text, 64)
	_, decimals, _ := strings.Cut(text, ".")
	unit := math.Pow10(-len(decimals))
	for digits := strings.TrimRight(text, "0"); decimals == "" && unit < math.Pow10(len(text)-len(digits)); {
		unit *= 10 // zeros at the end may stand for digits
	}
	most, least := 0.5*unit, -0.5*unit // by how much the exact one may be above
	switch key {
	case "low", "safe":
		most, least = unit, 0
	case "high":
		most, least = 0, -unit
	}
	above := exact/scale - v
	return err == nil && above <= most+1e-9*unit && above >= least-1e-9*unit
}

// TestFormatsAgree prints random plans in every format and reads the figures of the decision
// back: texts are the same to the letter, and rounded from those of the JSON and the CSV.
func TestFormatsAgree(t *testing.T) {
	r := rand.New(rand.NewPCG(20261122, 1))
	for n := 0; n < 25; {
		p, err := randomPlan(r)
		if err != nil {
			continue
		}
		n++
		d := planDocument(p, decide.Background{}, Engines{})
		page, tables := readHTML(HTML(d))
		markdown := marked.ReplaceAllString(escapes.ReplaceAllString(string(Markdown(d)), "$1"), "")
		narrow, wide := string(Text(d, 80, false)), string(Text(d, 300, false))
		bar, gap := regexp.MustCompile(` \| `), regexp.MustCompile(`  +`)
		for format, text := range map[string]string{"text of 300 columns": wide, "markdown": markdown, "HTML": page} {
			if got, want := fmt.Sprint(readDecision(t, text)), fmt.Sprint(readDecision(t, narrow)); got != want {
				t.Errorf("plan %d: %s says %s, the text of 80 columns %s", n, format, got, want)
			}
		}
		rows := readTable(wide, gap)
		for format, other := range map[string]map[string]figuresOf{"markdown": readTable(markdown, bar), "HTML": readTable(tables, bar)} {
			if got, want := fmt.Sprint(other), fmt.Sprint(rows); got != want {
				t.Errorf("plan %d: the table of %s is %s, of text %s", n, format, got, want)
			}
		}
		exact := exactFigures(t, p, d)
		decision := readDecision(t, narrow)
		for key, printed := range decision {
			if !agrees(key, printed, exact[0][key]) {
				t.Errorf("plan %d: %s is %s in reports, %v in JSON and CSV", n, key, printed, exact[0][key])
			}
		}
		for i, a := range eachGPU(p.All()) {
			row := rows[gpuName(&a.Offer)]
			if row == nil && exact[i]["times_the_cheapest"] <= uneconomical {
				t.Errorf("plan %d: %s is not in the table of text:\n%s", n, a.Offer.GPU, wide)
			}
			for key, printed := range row {
				if !agrees(key, printed, exact[i][key]) {
					t.Errorf("plan %d: %s of %s is %s in reports, %v in JSON and CSV", n, key, a.Offer.GPU, printed, exact[i][key])
				}
			}
		}
	}
}

// TestRowsSizeTheirFleets: the rate that stands beside an alternative gives its instances.
func TestRowsSizeTheirFleets(t *testing.T) {
	r := rand.New(rand.NewPCG(20261124, 1))
	gap := regexp.MustCompile(`  +`)
	for rows := 0; rows < 40; {
		p, err := randomPlan(r)
		if err != nil {
			continue
		}
		text := string(Text(planDocument(p, decide.Background{}, Engines{}), 300, false))
		_, table, _ := strings.Cut(text, "ALTERNATIVES, BY COST\n\n")
		header := []string(nil)
		for line := range strings.Lines(table) {
			cells := gap.Split(strings.TrimSpace(line), -1)
			if header == nil {
				header = cells
				continue
			}
			if len(cells) < 3 {
				break
			}
			at := func(name string) float64 {
				v, err := strconv.ParseFloat(strings.ReplaceAll(cells[slices.Index(header, name)], ",", ""), 64)
				if err != nil {
					t.Fatal(line, err)
				}
				return v
			}
			rows++
			loaded, spare := p.Fleet.PlannedRate*(1+p.Demand.Headroom)/at("safe req/s of one"), float64(p.Demand.Spare)
			const digits = 5e-5 // half of the last of five digits
			low, high := math.Ceil(loaded*(1-digits))+spare, math.Ceil(loaded*(1+digits))+spare
			if got := at("instances"); got < low || got > high {
				t.Errorf("%s: %g instances for %g requests/s, headroom %g and %g spares", line, got, p.Fleet.PlannedRate, p.Demand.Headroom, spare)
			}
		}
	}
}

// exactFigures reads the plan and its alternatives from JSON and from CSV, which must say the
// same.
func exactFigures(t *testing.T, p *plan.Plan, d Document) []map[string]float64 {
	t.Helper()
	type offer struct {
		Fleet map[string]any `json:"fleet"`
		Cost  map[string]any `json:"cost"`
		Rate  map[string]any `json:"max_rate_per_s"`
	}
	var whole struct {
		offer
		Alternatives []offer `json:"alternatives"`
	}
	data, err := wire.Marshal(p)
	if err == nil {
		err = json.Unmarshal(data, &whole)
	}
	sheet, _ := d.Sheet(AlternativesSheet)
	lines, bad := csv.NewReader(bytes.NewReader(sheet.CSV())).ReadAll()
	if err != nil || bad != nil || len(lines) != 2+len(whole.Alternatives) {
		t.Fatal(err, bad, len(lines))
	}
	var all []map[string]float64
	for i, o := range append([]offer{whole.offer}, whole.Alternatives...) {
		figures := map[string]float64{}
		for _, part := range []map[string]any{o.Fleet, o.Cost, o.Rate} {
			for key, v := range part {
				if x, is := v.(float64); is {
					figures[key] = x
				}
			}
		}
		for k, key := range lines[0] {
			name := map[string]string{"max_rate_per_s": "value", "safe_rate_per_s": "safe"}[key]
			if name == "" {
				name = key
			}
			x, err := strconv.ParseFloat(lines[i+1][k], 64)
			if known, in := figures[name]; in && (err != nil || math.Abs(x/known-1) > 1e-14) {
				t.Errorf("%s of offer %d is %q in CSV, %v in JSON", key, i, lines[i+1][k], known)
			} else if err == nil {
				figures[name] = x
			}
		}
		all = append(all, figures)
	}
	return all
}

// TestBreakEvenPrice: a GPU without a price says in every format at which one it costs what the
// chosen one does: both take 36 GPUs here.
func TestBreakEvenPrice(t *testing.T) {
	unpriced := offer("MI355X", 0)
	unpriced.Knobs.GPU, unpriced.PricedBy = "MI355X", ""
	p := must.Get(plan.Solve(demand(), slo(), []plan.Offer{offer("H100 SXM", 2.99), unpriced}, nil))
	d := planDocument(p, decide.Background{}, Engines{})
	page, _ := readHTML(HTML(d))
	const want = "MI355X, TP 4: no price is known; at 2.99 USD per GPU and hour it costs what the chosen one does"
	for format, text := range map[string]string{"text": string(Text(d, 80, false)), "markdown": string(Markdown(d)), "HTML": page} {
		if !strings.Contains(strings.Join(strings.Fields(text), " "), want) {
			t.Errorf("%s does not say that %s", format, want)
		}
	}
	var file struct {
		Alternatives []struct {
			Note struct{ Figures map[string]float64 }
		}
	}
	must.OK(json.Unmarshal(must.Get(wire.Marshal(p)), &file))
	sheet, _ := d.Sheet(AlternativesSheet)
	column := slices.Index(sheet.Header, "break_even_usd_per_gpu_hour")
	if got := file.Alternatives[0].Note.Figures["break_even_usd_per_gpu_hour"]; math.Abs(got-2.99) > 1e-12 || sheet.Rows[1][column] != "2.99" || sheet.Rows[0][column] != "" {
		t.Errorf("%g in JSON, %q in CSV", got, sheet.Rows[1][column])
	}
}

// A price of nothing is a price: only the figures of a fleet that there is not are left out.
func TestFreeGPUsCostNothingInCSV(t *testing.T) {
	free := offer("H100 SXM", 0)
	free.PricedBy = "the configuration"
	d := planDocument(must.Get(plan.Solve(demand(), slo(), []plan.Offer{free}, nil)), decide.Background{}, Engines{})
	for _, name := range []string{AlternativesSheet, SensitivitySheet} {
		sheet, ok := d.Sheet(name)
		column := slices.Index(sheet.Header, "usd_per_hour")
		if !ok || len(sheet.Rows) == 0 || sheet.Rows[0][column] != "0" {
			t.Errorf("%s: %v", name, sheet.Rows)
		}
	}
}
