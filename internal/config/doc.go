// Package config reads the TOML file of a run, and the overrides of the command line, into the types of the
// other packages, or says exactly what is wrong.
//
// Reading has three steps. The reader (places.go, source.go, reader.go) holds the tree of values and the place
// of each. The table of keys (keys.go) gives for every key the codec (codecs.go, texts.go) that reads and
// prints its values, and its field in a [Config]; tables inside a section have such rows as well (tables.go).
// Strictness, defaults, [Config.TOML] and [Template] all follow from it. The resolution (model.go, hardware.go,
// knobs.go, ...) turns names into data sheets and files into distributions, and checks what concerns several
// keys. A user's catalog (catalog.go) is read by the same reader.
//
// Reading does not stop at the first problem: a [Problems] holds all of them, in the order of the file.
package config
