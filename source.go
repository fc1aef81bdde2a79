// Package planner holds the source of the types that are written as JSON: their comments
// describe the keys in schemas.
package planner

import "embed"

// Source are the files of the packages with such types.
//
//go:embed internal/note/*.go model/bounds.go model/curve/*.go plan/*.go plan/decide/*.go plan/diagnose/*.go plan/effects/*.go
//go:embed plan/fleet/*.go plan/trust/*.go search/*.go sweep/measure/*.go sweep/workload/*.go
var Source embed.FS
