// Package config reads the TOML file of a run, and what the command line puts on
// top of it, into the types of the other packages, or says exactly what is wrong.
//
// Reading has three steps. The reader (places.go, source.go, reader.go) holds the tree
// of values with the place each of them came from. The table of keys (keys.go) says for
// every key by which codec (codecs.go, texts.go) its values are read and printed, and
// where in a [Config] they go; a table inside a section has such rows, too (tables.go).
// Strictness, defaults, [Config.TOML] and [Template] all follow from it. The resolution
// (model.go, hardware.go, knobs.go, ...) turns names into data sheets and files into
// distributions and checks what concerns several keys at once.
// A user's catalog (catalog.go) is read by the same reader.
//
// Nothing stops at the first problem: a [Problems] holds all of them, in the order
// of the file.
package config
