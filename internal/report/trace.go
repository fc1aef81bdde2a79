package report

import (
	"fmt"
	"strings"
	"time"

	"planner/internal/note"
	"planner/sweep/ingest"
	"planner/sweep/workload"
)

// Trace builds the description of a traffic trace.
func Trace(t *ingest.Trace) Document {
	all := &t.Traffic
	d := Document{Title: fmt.Sprintf("%s in %s%s, %s prompt and %s output tokens in the mean", plural(all.Requests, "request"), latency(all.Span),
		where(finite(all.Rate), ", "+rate(few(all.Rate))), number(all.Prompt.Mean, 3), number(all.Output.Mean, 3))}
	d.add(append(Facts{{"format", t.Format, Plain},
		{"requests", count(all.Requests) + where(t.Skipped > 0, ", and "+count(t.Skipped)+" that failed and are left out"), Plain},
		{"estimated", where(t.Estimated > 0, count(t.Estimated)+" requests have lengths that are estimated from text"), Doubt}},
		each("changed", t.Changed, Plain)...))
	d.section("Arrivals", arrivalFacts(t), dispersionTable(all.Dispersion))
	d.section("Lengths", lengthTable(all))
	d.section("Shared prefixes", prefixFact(all.Prefix))
	addWarnings(&d, t.Warnings.Notes)
	return d
}

func arrivalFacts(log *ingest.Trace) Facts {
	t := &log.Traffic
	return Facts{{"span", latency(t.Span), Plain}, {"mean rate", either(finite(t.Rate), rate(few(t.Rate)), unknown), Plain},
		{"busiest hour", where(t.Span > time.Hour, busiest(&t.BusiestHour)), Plain}, {"busiest minute", busiest(&t.BusiestMinute), Plain},
		{"gaps", fmt.Sprintf("coefficient of variation %s (1 for Poisson), correlation with the next %s (0 for Poisson)",
			number(t.GapCV, 3), number(t.GapCorrelation, 2)), Plain}, {"clock", clock(log), Plain}}
}

func busiest(b *workload.Busiest) string {
	return fmt.Sprintf("%s (%s requests/s) from %s on", plural(b.Requests, "request"), number(b.Rate, 3), latency(b.From))
}

func clock(t *ingest.Trace) string {
	switch {
	case t.Resolution < 0:
		return "no coarse ticks"
	case t.Spread:
		return "ticks every " + limit(t.Resolution) + "; arrivals were drawn within the tick"
	}
	return "ticks every " + limit(t.Resolution) + ": requests of one tick leave at the same instant; --spread draws them within it"
}

func dispersionTable(all []workload.DispersionIndex) Table {
	tab := table(left("window"), right("index", "windows"))
	tab.Caption = "Index of dispersion of arrivals: 1 for Poisson, above it for bursts. Of 10 s windows it is what demand.burst_index takes."
	for _, x := range all {
		tab.row(limit(x.Window), number(x.Index, 3), x.Windows)
	}
	return tab
}

func lengthTable(d *workload.Description) Table {
	tab := table(left("tokens"), right("mean", "deviation", "least", "p50", "p90", "p99", "most"))
	for _, x := range []struct {
		name string
		s    workload.LengthSummary
	}{{"prompt", d.Prompt}, {"output", d.Output}, {"both", d.Total}} {
		if x.s.Sum > 0 {
			tab.row(x.name, number(x.s.Mean, 4), number(x.s.StdDev, 3), x.s.Least, x.s.P50, x.s.P90, x.s.P99, x.s.Most)
		}
	}
	tab.Caption = where(finite(d.Correlation), "Prompts and outputs correlate by "+number(d.Correlation, 2)+".")
	return tab
}

func prefixFact(p *workload.PrefixSummary) Paragraph {
	if p == nil {
		return Paragraph{Text: "The trace does not tell which prompts begin alike.", Tone: Quiet}
	}
	return Paragraph{Text: fmt.Sprintf("%s of the prompt tokens were in the beginning of an earlier request: what a prefix cache without limits would hit. "+
		"%s of the requests begin as others do; of %s, %s shared.",
		percent(p.Repeated), percent(p.Sharing), plural(p.Distinct, "different beginning"), count(p.Shared)+either(p.Shared == 1, " is", " are"))}
}

// LengthsOnly builds the description of a file with lengths but no arrivals.
func LengthsOnly(name string, d workload.Description, warnings note.Notes) Document {
	doc := Document{Title: fmt.Sprintf("%s without arrivals, %s prompt and %s output tokens in the mean", plural(d.Requests, "request"),
		number(d.Prompt.Mean, 3), number(d.Output.Mean, 3))}
	doc.add(Facts{{Label: "file", Text: strings.TrimSpace(name)}}, lengthTable(&d))
	addWarnings(&doc, warnings)
	return doc
}
