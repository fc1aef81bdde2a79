// Package serve is the simulated engine behind an OpenAI-compatible HTTP port, in
// real time: what a client measures there can be compared with when each token was
// due and when it truly left. Without a model it answers after fixed or random
// times, and each way in which a request can fail can be asked for.
//
// # Reading guide
//
// [Simulator] is what a caller fills in; service.go opens and closes ports and
// connections, session.go speaks HTTP on one of them, routes.go has the endpoints
// and request.go reads requests for tokens. loop.go is the heart: the one
// goroutine that owns the backend and writes every token at its instant, for which
// waker_linux.go sleeps precisely and sendbuffer.go writes without waiting.
// reply.go makes the bytes.
//
// The backend is [planner/model/sim], or fixed.go, which has times without a model.
// tokens.go is the made-up vocabulary, fault.go what goes wrong, metrics.go and
// log.go what is told.
//
// # Time
//
// A request counts as arrived when its last byte has been read. The engine's own
// clock is exact: that the server wakes some microseconds late changes when a
// token leaves, never when it or any other is due.
package serve
