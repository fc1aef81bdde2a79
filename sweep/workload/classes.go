package workload

import (
	"fmt"
	"strings"
)

// classShapes are the four traffic classes that a configuration can name. They
// are ours: round figures in the range of the public Azure, BurstGPT and
// Mooncake traces, lognormal with sigma 0.8 and clipped. They stand for a kind
// of traffic, not for anybody's: who has a trace should use it.
var classShapes = []Shape{
	{Name: "chat", Prompt: lognormal(500, 50, 4000), Output: lognormal(200, 10, 2000)},
	{Name: "code", Prompt: lognormal(1500, 200, 8000), Output: lognormal(500, 50, 4000)},
	{Name: "long-context-qa", Prompt: lognormal(16000, 2000, 128000), Output: lognormal(300, 20, 2000)},
	{Name: "summarization", Prompt: lognormal(4000, 500, 32000), Output: lognormal(150, 50, 500)},
}

func lognormal(median float64, low, high int) Lengths {
	return Lengths{Dist: Lognormal, Median: median, Sigma: 0.8, Min: low, Max: high}
}

// Class returns the shape of a named traffic class.
func Class(name string) (Shape, error) {
	for _, s := range classShapes {
		if strings.EqualFold(s.Name, name) {
			return s, nil
		}
	}
	return Shape{}, fmt.Errorf("unknown class %q; allowed: %s", name, strings.Join(ClassNames(), ", "))
}

// ClassNames lists the named traffic classes.
func ClassNames() []string {
	names := make([]string, len(classShapes))
	for i, s := range classShapes {
		names[i] = s.Name
	}
	return names
}
