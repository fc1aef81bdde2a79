// Package config reads the TOML file of a run, and what the command line puts on
// top of it, into the types of the other packages, or says exactly what is wrong.
//
// Reading has three steps. The source (position.go, source.go) is the tree of
// values with the place each of them came from. The table of keys (keys.go) says
// for every key what it takes, what it is without being given, and how it is
// printed: strictness, defaults, [Config.TOML] and [Keys] all follow from it. The
// resolution (resolve.go and its neighbours) turns names into data sheets and
// files into distributions and checks what concerns several keys at once.
//
// Nothing stops at the first problem: a [Problems] holds all of them, in the order
// of the file.
package config
