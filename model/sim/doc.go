// Package sim runs a schedule of requests through one modelled serving engine,
// step by step, in virtual time.
//
// # Reading guide
//
// [scheduler] is vLLM V1's scheduler with its block pool and prefix cache. It is driven step by
// step and has no notion of time: pool.go has the queue of free blocks, prefix.go the identity of
// cached blocks, schedule.go the two phases of a step, output.go the handling of a step's tokens,
// and steady.go the shortcut for requests that only decode.
//
// [Engine] adds time: it takes requests as they arrive (run.go), asks a step-time model how long
// each batch runs (core.go) and turns the result into records. Between events it fast-forwards over
// many decode steps at once; the records equal those of single steps to the microsecond. [Online]
// drives an engine whose requests are not known in advance.
//
// The package is pure: no clock, no random draw, no goroutine, no I/O. One Engine
// belongs to one goroutine.
package sim
