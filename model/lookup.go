package model

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"planner/internal/list"
	"planner/internal/spelling"
)

// find returns the index of the entry that a name refers to: an exact match, else the only entry that begins
// with it, else the only one that contains it. Each entry has one or more names; the first is shown in
// messages.
func find(what, name string, entries [][]string) (int, error) {
	want := fold(name)
	if want == "" {
		return -1, fmt.Errorf("%s: no name given", what)
	}
	if exact := matching(entries, func(n string) bool { return fold(n) == want }); len(exact) > 0 {
		return exact[0], nil
	}
	hits := matching(entries, func(n string) bool { return strings.HasPrefix(fold(n), want) })
	if len(hits) == 0 {
		hits = matching(entries, func(n string) bool { return strings.Contains(fold(n), want) })
	}
	switch len(hits) {
	case 1:
		return hits[0], nil
	case 0:
		return -1, fmt.Errorf("%s %q is not in the catalog; the nearest are %s", what, name, quoted(nearest(want, entries)))
	}
	return -1, fmt.Errorf("%s %q fits several in the catalog: %s", what, name, quoted(list.Map(hits, func(h int) string { return entries[h][0] })))
}

// matching returns the indices of the entries with a name that fits.
func matching(entries [][]string, fits func(name string) bool) []int {
	var out []int
	for i, names := range entries {
		if slices.ContainsFunc(names, func(n string) bool { return n != "" && fits(n) }) {
			out = append(out, i)
		}
	}
	return out
}

// notInNames removes what is optional in names.
var notInNames = strings.NewReplacer(" ", "", "-", "", "_", "")

// fold removes that and lowers the case.
func fold(s string) string { return notInNames.Replace(strings.ToLower(strings.TrimSpace(s))) }

// findVariant returns the entry whose name equals a Hugging Face id without its owner and variant suffixes, -1
// if there is none.
func findVariant(name string, entries [][]string) int {
	want := bareName(name)
	if hits := matching(entries, func(n string) bool { return bareName(n) == want }); len(hits) > 0 {
		return hits[0]
	}
	return -1
}

// bareName strips owner and variant from a Hugging Face id.
func bareName(s string) string {
	s = strings.ToLower(s[strings.LastIndex(s, "/")+1:])
	s = strings.TrimPrefix(s, "meta-")
	for _, suffix := range []string{"-hf", "-instruct", "-chat", "-it", "-base"} {
		s = strings.TrimSuffix(s, suffix)
	}
	return fold(s)
}

// formatSuffixes are the ends of Hugging Face ids of quantised checkpoints, longer ones before those that they
// end in.
var formatSuffixes = []struct {
	suffix string
	format WeightFormat
}{
	{"-fp8-dynamic", FP8}, {"-fp8", FP8}, {"-mxfp8", FP8}, {"-nvfp4", NVFP4}, {"-fp4", NVFP4}, {"-mxfp4", MXFP4}, {"-awq-int4", INT4}, {"-awq", INT4},
	{"-gptq-int4", INT4}, {"-int4", INT4}, {"-quantized.w4a16", INT4}, {"-quantized.w8a16", INT8}, {"-quantized.w8a8", INT8}, {"-w4a16", INT4}, {"-w8a16", INT8}, {"-gptq-int8", INT8}, {"-int8", INT8}, {"-w8a8", INT8},
}

// cutFormat strips the quantisation suffix from a name.
func cutFormat(name string) (rest string, f WeightFormat, ok bool) {
	lower := strings.ToLower(name)
	for _, s := range formatSuffixes {
		if strings.HasSuffix(lower, s.suffix) {
			return name[:len(name)-len(s.suffix)], s.format, true
		}
	}
	return name, FormatUnset, false
}

// NamedFormat returns the format that a checkpoint's name ends in, as with quantised ones (FP8, AWQ, NVFP4 and
// the like); FormatUnset if none.
func NamedFormat(name string) WeightFormat {
	_, f, _ := cutFormat(name)
	return f
}

// nearest returns the shown names of up to three entries with the smallest edit distance from the whole name or
// from its beginning, which people often give alone; at most one of those that share their first word.
func nearest(want string, entries [][]string) []string {
	type candidate struct {
		name string
		off  int
	}
	candidates := list.Map(entries, func(names []string) candidate {
		least := math.MaxInt
		for _, n := range names {
			if n != "" {
				whole := fold(n)
				least = min(least, 2*spelling.Distance(want, whole), 2*spelling.Distance(want, whole[:min(len(want), len(whole))])+1)
			}
		}
		return candidate{names[0], least}
	})
	slices.SortStableFunc(candidates, func(a, b candidate) int { return cmp.Compare(a.off, b.off) })
	var near []string
	families := map[string]bool{}
	for _, c := range candidates {
		family, _, _ := strings.Cut(c.name, " ")
		if !families[family] && len(near) < 3 {
			near = append(near, c.name)
		}
		families[family] = true
	}
	return near
}

// quoted lists names for messages.
func quoted(names []string) string {
	return strings.Join(list.Map(names, func(n string) string { return fmt.Sprintf("%q", n) }), ", ")
}
