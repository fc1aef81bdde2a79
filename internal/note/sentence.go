package note

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"planner/internal/list"
)

// placeholder matches a figure in a sentence: its name and format, {lag_ms%.2f}. Without a format it is written
// as it is; %dur writes a duration, and %more a percentage as more or less, or from three times on as a
// multiple. %s writes text that, like a number, may differ between notes that are otherwise the same.
var placeholder = regexp.MustCompile(`\{(\w+)(%[^}]+)?\}`)

// name returns the kind's name in files.
func (k Kind) name() string {
	name, _, _ := strings.Cut(string(k), ": ")
	return name
}

func (k Kind) template() string { return strings.TrimPrefix(string(k), k.name()+": ") }

func (k Kind) names() []string {
	return list.Distinct(list.Map(placeholder.FindAllStringSubmatch(k.template(), -1), func(m []string) string { return m[1] }))
}

// sentence returns the common sentence of notes that are alike, with the range of each number that differs.
func sentence(notes Notes) string {
	return placeholder.ReplaceAllStringFunc(notes[0].Kind.template(), func(s string) string {
		m := placeholder.FindStringSubmatch(s)
		return values(notes, m[1], m[2])
	})
}

func values(notes Notes, name, verb string) string {
	numbers := list.FilterMap(notes, func(n Note) (float64, bool) { v, ok := n.Figures[name].(float64); return v, ok })
	if len(numbers) == 0 {
		return fmt.Sprint(notes[0].Figures[name])
	}
	low, high := number(slices.Min(numbers), name, verb), number(slices.Max(numbers), name, verb)
	if low == high {
		return low
	}
	return low + " to " + high
}

func number(x float64, name, verb string) string {
	switch verb {
	case "", "%s":
		return fmt.Sprintf("%g", x)
	case "%dur":
		d := time.Duration(math.Round(x * float64(unitOf(name))))
		switch {
		case d >= time.Minute:
			d = d.Round(time.Second)
		case d >= time.Second:
			d = d.Round(time.Millisecond)
		}
		return d.String()
	case "%more":
		if x >= 200 {
			return fmt.Sprintf("%.3g times as much", 1+x/100)
		}
		if x < 0 {
			return fmt.Sprintf("%.1f %% less", -x)
		}
		return fmt.Sprintf("%.1f %% more", x)
	case "%d", "%+d":
		return fmt.Sprintf(verb, int64(x))
	}
	text := fmt.Sprintf(verb, x)
	if rounded, err := strconv.ParseFloat(text, 64); err == nil && strings.Contains(text, "e+") {
		return strconv.FormatFloat(rounded, 'f', -1, 64) // 1e+02 % is unreadable
	}
	return text
}
