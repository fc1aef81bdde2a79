// Package serve is the simulated engine behind an OpenAI-compatible HTTP port, in
// real time: what a client measures there can be compared with when each token was
// due and when it truly left. Without a model it answers after fixed or random
// times, and everything that goes wrong with real engines can be asked for.
//
// # Reading guide
//
// [Server] is what a caller fills in; serving.go opens and closes ports and
// connections, conn.go speaks HTTP on one of them, routes.go has the endpoints and
// ask.go reads requests for tokens. desk.go is the heart: the one goroutine that
// owns the engine and writes every token at its instant, for which alarm_linux.go
// sleeps precisely and outlet.go writes without waiting. reply.go and frames.go
// make the bytes.
//
// backend.go says what decides when tokens come: [planner/model/sim], or fixed.go,
// which has times without a model, and law.go their distributions. identity.go finds out which prompts begin alike,
// tokens.go is the made-up vocabulary, fault.go what goes wrong, meter.go the
// metrics, log.go the emission log.
//
// # Time
//
// A request counts as arrived when its last byte has been read. The engine's own
// clock is exact: that the server wakes some microseconds late changes when a
// token leaves, never when it or any other is due.
package serve
