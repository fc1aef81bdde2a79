package model

import (
	"fmt"
	"strings"

	"planner/internal/list"
)

// Enumeration is a setting with a few named values; an empty name marks a value that cannot be given.
type Enumeration interface {
	~int
	fmt.Stringer
	names() []string
}

// Names lists the names of an enumeration's values.
func Names[T Enumeration]() []string {
	var t T
	return list.Filter(t.names(), func(name string) bool { return name != "" })
}

// Parse returns the enumeration's value with a name, ignoring case. The error lists the allowed names.
func Parse[T Enumeration](s string) (T, error) {
	var t T
	for i, name := range t.names() {
		if name != "" && strings.EqualFold(s, name) {
			return T(i), nil
		}
	}
	return 0, fmt.Errorf("%q: allowed are %s", s, strings.Join(Names[T](), " "))
}
