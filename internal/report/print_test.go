package report

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"planner/internal/evidence/must"
	"planner/internal/note"
	"planner/internal/wire"
	"planner/sweep/measure"
)

// A line may be too wide only where nothing could be broken: a single word, or
// one option of a command.
func TestTextKeepsItsWidth(t *testing.T) {
	for name, d := range documents() {
		for width := 40; width <= 200; width += 3 {
			for line := range strings.Lines(string(Text(d, width, false))) {
				line = strings.TrimSuffix(line, "\n")
				if line != strings.TrimRight(line, " ") {
					t.Errorf("%s at %d: blanks at the end of %q", name, width, line)
				}
				if utf8.RuneCountInString(line) <= width {
					continue
				}
				body := strings.TrimSuffix(strings.TrimSpace(line), " \\")
				if len(strings.Fields(body)) > 1 && len(options(body)) > 1 {
					t.Errorf("%s at %d: %d columns: %q", name, width, utf8.RuneCountInString(line), line)
				}
			}
		}
	}
}

// The first five lines of a plan are its decision: fleet, load, limits and cost, the rate of
// an instance with its doubt, what limits it, and how full the fleet is.
func TestDecisionInFiveLines(t *testing.T) {
	d := documents()["plan"]
	d.Blocks = d.Blocks[1:] // what stands first where data fails a check
	lines := strings.SplitAfterN(string(Text(d, 80, false)), "\n", 6)
	for _, want := range []string{"36 x H100 SXM", "9 instances", "100 requests/s", "500 ms", "$107.64", "16.1-17.7", "safe: 16.2", "limited by", "68.5 %", "one instance lost"} {
		if !strings.Contains(strings.Join(lines[:5], ""), want) {
			t.Errorf("%q is not in the first five lines:\n%s", want, strings.Join(lines[:5], ""))
		}
	}
}

// TestNothingIsLeftOut: every word of a wide report is in a narrow one.
func TestNothingIsLeftOut(t *testing.T) {
	for name, d := range documents() {
		for i, b := range d.Blocks {
			tab := b.Table
			if tab == nil {
				continue
			}
			narrow := strings.Join(strings.Fields(string(Text(Document{Blocks: []Block{b}}, 80, false))), " ")
			for _, row := range tab.Rows {
				for k, c := range row {
					for word := range strings.FieldsSeq(c.Text) {
						if tab.Columns[k].Name != "" && word != unknown && !strings.Contains(narrow, word) {
							t.Errorf("%s, block %d: %q is lost", name, i, word)
						}
					}
				}
			}
		}
	}
}

func TestNothingPrintsNaN(t *testing.T) {
	bad := regexp.MustCompile(`NaN|[+-]?Inf\b|%!|<nil>|\{0x`)
	for name, d := range documents() {
		for _, f := range printed(d).Files {
			if at := bad.FindIndex(f.Data); at != nil {
				t.Errorf("%s, %s: ...%s...", name, f.Name, f.Data[max(at[0]-40, 0):min(at[1]+40, len(f.Data))])
			}
		}
	}
}

func TestColorOnlyAddsColor(t *testing.T) {
	escape := regexp.MustCompile("\x1b\\[[0-9]*m")
	for name, d := range documents() {
		plain, colored := Text(d, 100, false), Text(d, 100, true)
		if bytes.Contains(plain, []byte("\x1b")) {
			t.Errorf("%s: escapes without color", name)
		}
		if !bytes.Equal(plain, escape.ReplaceAll(colored, nil)) {
			t.Errorf("%s: color changes more than color", name)
		}
	}
}

func TestHTMLIsWellFormedAndFetchesNothing(t *testing.T) {
	for name, d := range documents() {
		page := HTML(d)
		r := xml.NewDecoder(bytes.NewReader(page))
		for {
			tok, err := r.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Errorf("%s: %v", name, err)
				break
			}
			el, ok := tok.(xml.StartElement)
			if !ok {
				continue
			}
			if el.Name.Local == "link" || el.Name.Local == "img" {
				t.Errorf("%s: element %s", name, el.Name.Local)
			}
			for _, a := range el.Attr {
				if a.Name.Local == "src" || a.Name.Local == "href" && !strings.HasPrefix(a.Value, "#") || strings.HasPrefix(a.Name.Local, "on") {
					t.Errorf("%s: attribute %s of %s", name, a.Name.Local, el.Name.Local)
				}
			}
		}
		if bytes.Contains(page, []byte("url(")) || bytes.Contains(page, []byte("@import")) {
			t.Errorf("%s: the style sheet fetches", name)
		}
	}
}

func TestMarkdownTablesAreRectangular(t *testing.T) {
	bar := regexp.MustCompile(`(?:^|[^\\])(\|)`)
	for name, d := range documents() {
		fenced, columns := false, 0
		for line := range strings.Lines(string(Markdown(d))) {
			if strings.HasPrefix(line, "```") {
				fenced = !fenced
			}
			if fenced || !strings.HasPrefix(line, "|") {
				columns = 0
				continue
			}
			n := len(bar.FindAllString(line, -1))
			if columns > 0 && n != columns {
				t.Errorf("%s: %d bars after %d: %q", name, n, columns, line)
			}
			columns = n
		}
	}
}

func TestCSVReadsBack(t *testing.T) {
	rows := must.Get(csv.NewReader(bytes.NewReader(documents()["plan"].Data.CSV())).ReadAll())
	column := map[string]int{}
	for i, name := range rows[0] {
		if _, twice := column[name]; twice {
			t.Errorf("column %q twice", name)
		}
		column[name] = i
	}
	all := trials()
	if len(rows)-1 != len(all)-1 { // one is rejected
		t.Fatalf("%d rows of %d trials", len(rows)-1, len(all))
	}
	for i, row := range rows[1:] {
		for name, want := range map[string]float64{
			"rate_per_s": all[i].Trial.Rate, "achieved_per_s": all[i].Achieved, "ttft_p99_ms": millis(all[i].TTFT.P99), "tpot_mean_ms": millis(all[i].TPOT.Mean),
			"requests": float64(all[i].Requests), "knobs.max_num_seqs": float64(all[i].Trial.Knobs.MaxNumSeqs),
		} {
			if got, err := strconv.ParseFloat(row[column[name]], 64); err != nil || got != want {
				t.Errorf("row %d, %s: %q, want %v", i, name, row[column[name]], want)
			}
		}
		if row[column["ttft_p99.9_ms"]] != "" {
			t.Errorf("row %d: an unresolved quantile reads %q", i, row[column["ttft_p99.9_ms"]])
		}
	}
}

// Every figure that decides anything in plan.json stands in the text, rounded as
// a reader can check.
func TestTextHoldsTheFiguresOfTheJSON(t *testing.T) {
	encoded := must.Get(wire.Print(solved()))
	var p map[string]any
	must.OK(json.Unmarshal(encoded, &p))
	text := strings.Join(strings.Fields(string(Text(documents()["plan"], 160, false))), " ")
	for path, digits := range map[string]int{
		"max_rate_per_s.value": 3, "max_rate_per_s.low": 3, "max_rate_per_s.high": 3, "max_rate_per_s.safe": 3,
		"default_knobs.max_rate_per_s.value": 3, "fleet.instances": 3, "fleet.gpus": 3, "fleet.instances_needed": 3, "fleet.gpus_per_instance": 3,
		"cost.usd_per_hour": 5, "cost.usd_per_million_output_tokens": 3, "cost.usd_per_million_tokens": 2, "cost.at_capacity.usd_per_million_output_tokens": 2,
		"knee_per_s": 3, "saturation_per_s.value": 3, "saturation_per_s.low": 3, "roofline.weight_stream_ms": 3, "roofline.stream_tokens_per_s": 3,
		"roofline.output_tokens_per_s": 3, "roofline.prompts_per_s": 3, "roofline.ceiling_per_s": 3, "roofline.idle_ttft_ms": 3, "roofline.concurrency": 3,
		"knobs.max_num_seqs": 3, "knobs.max_num_batched_tokens": 4, "knobs.tensor_parallel": 1, "knobs.max_model_len": 4, "demand.rate_per_s": 3,
	} {
		value := lookUp(t, p, path)
		want := strings.TrimPrefix(number(value, digits), "-")
		plain := strings.TrimRight(strings.TrimRight(strings.ReplaceAll(want, ",", ""), "0"), ".")
		if !strings.Contains(text, want) && !strings.Contains(text, plain) {
			t.Errorf("%s = %v does not stand in the text as %s", path, value, want)
		}
	}
}

func lookUp(t *testing.T, p map[string]any, path string) float64 {
	t.Helper()
	var v any = p
	for key := range strings.SplitSeq(path, ".") {
		m, ok := v.(map[string]any)
		if !ok {
			t.Fatalf("%s: nothing at %s", path, key)
		}
		v = m[key]
	}
	f, ok := v.(float64)
	if !ok {
		t.Fatalf("%s is %v", path, v)
	}
	return f
}

// TestCostlyDoubt remarks a fleet that the doubt about the rate makes half as large again, and no other.
func TestCostlyDoubt(t *testing.T) {
	for share, remarked := range map[float64]bool{0.1: true, 0.95: false} {
		p := solved()
		p.Offer.Rate.Safe = share * p.Offer.Rate.Value
		p.Fleet, _ = p.FleetAt(p.Offer.Rate.Safe)
		likely, _ := p.FleetAt(p.Offer.Rate.Value)
		if text := doubtCosts(p); (text != "") != remarked || remarked && !strings.Contains(text, fmt.Sprintf("would take %d GPUs", likely.GPUs)) {
			t.Errorf("safe at %g of the likely rate: %q", share, text)
		}
	}
}

// TestIdleHardware remarks a fleet whose limits leave nearly all of its hardware idle, and no
// other.
func TestIdleHardware(t *testing.T) {
	p := solved()
	ceiling, _ := p.Evidence.Roofline.Ceiling(&p.Offer)
	for share, remarked := range map[float64]bool{0.01: true, 0.049: true, 0.051: false, 0.6: false} {
		p.Offer.Rate.Value = share * ceiling
		if text := idleHardware(p); (text != "") != remarked || remarked && !strings.Contains(text, percent(share)) {
			t.Errorf("%v of the roofline: %q", share, text)
		}
	}
	p.Offer.Rate.Value, p.Warnings = 0.01*ceiling, note.Notes{note.New(note.FewSlots, 8.0, 90.0, 2, 20)}
	if text := idleHardware(p); !strings.Contains(text, "engine.lora.slots") || strings.Contains(text, "limits, or") {
		t.Errorf("where adapters wait for slots: %q", text)
	}
	p.Evidence.Roofline = nil
	if text := idleHardware(p); text != "" {
		t.Error(text)
	}
}

// TestEngineTimeOfSets counts what a search counts, load behind the window too, unless a trial ended before it.
func TestEngineTimeOfSets(t *testing.T) {
	whole := measure.Measurement{Trial: measure.Trial{Rate: 1, Warmup: 10 * time.Second, Cooldown: 5 * time.Second}, Duration: time.Minute}
	cut := whole
	cut.Aborted = note.Because(note.Overloaded)
	tab := summaryTable([]measure.Measurement{whole, cut}, measure.Knobs{})
	if got := tab.Rows[0][2].Text; got != "145 s" {
		t.Errorf("%s, want 75 and 70 s", got)
	}
}

// TestStayed: of what arrives no share below 0 stays.
func TestStayed(t *testing.T) {
	m := measure.Measurement{Counts: []measure.Count{{Bound: measure.ThroughputBound, N: 613, Value: 0.0033, Low: -0.097, High: 0.103}}}
	if row := objectiveTable(&m).Rows[0]; row[2].Text != "0.33 % stayed" || row[4].Text != "0 % to 10.3 %" {
		t.Errorf("%v", row)
	}
}

// TestFrontierOfAllInstances: however many kinds of instances were tried, each is in the chart and on the
// frontier where it belongs, and a row of that names its GPU.
func TestFrontierOfAllInstances(t *testing.T) {
	p := solved()
	p.Offer.Knobs.GPU = "GPU A"
	for n, series := range map[int]int{3: 6, 5: 5, 9: 6} {
		var trials []measure.Measurement
		for i := range 2 * n {
			k := settings()
			k.GPU, k.TensorParallel = fmt.Sprintf("GPU %c", 'A'+i/2), 1+i%2
			m := trial(i+1, k, 4+float64(i)/100)
			m.OutputTokens *= float64(1+i) * float64(k.TensorParallel)
			trials = append(trials, m)
		}
		var d Document
		addPareto(&d, p, trials)
		drawn, points := d.Blocks[1].Chart.Series, 0
		for _, line := range drawn {
			points += len(line.Points)
		}
		last, best := fmt.Sprintf("GPU %c", 'A'+n-1), d.Blocks[2].Table.Rows[0]
		if len(drawn) != series+1 || points != 2*n || best[2].Text != fmt.Sprint(2*n) || !strings.Contains(best[3].Text, last) {
			t.Errorf("%d GPUs: %d series of %d points, best %v", n, len(drawn)-1, points, best)
		}
	}
}

// TestNothingToTrade: results that say nothing of tokens draw no frontier, and a table without kW explains none.
func TestNothingToTrade(t *testing.T) {
	p := solved()
	var trials []measure.Measurement
	for i := range 4 {
		m := measure.Measurement{Trial: measure.Trial{Rate: float64(i + 1)}, Valid: true}
		m.TPOT.P50, m.OutputTokens = 20*time.Millisecond, math.NaN()
		trials = append(trials, m)
	}
	var d Document
	addPareto(&d, p, trials)
	if len(d.Blocks) > 0 {
		t.Errorf("%s", Text(d, 80, false))
	}
	p.Fleet.KW = 0
	addFinance(&d, "costs", p.All()[:1])
	if text := string(Text(d, 400, false)); strings.Contains(text, "kW") || !strings.Contains(text, "730 hours") {
		t.Error(text)
	}
}
