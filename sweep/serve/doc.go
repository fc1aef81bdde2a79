// Package serve puts the simulated engine behind an OpenAI-compatible HTTP port, in real time: what
// a client measures there can be compared with when each token was due and when it really left.
// Without a model it answers after fixed or random times, and each way in which a request can fail
// can be asked for.
//
// # Reading guide
//
// [Simulator] is what a caller fills in; service.go opens and closes ports and connections,
// session.go speaks HTTP on one connection, routes.go has the endpoints and request.go parses
// requests for tokens. loop.go is the heart: the one goroutine that owns the backend and writes
// every token at its instant, for which waker_linux.go sleeps precisely and sendbuffer.go writes
// without waiting. reply.go builds the bytes.
//
// The backend is [planner/model/sim], or fixed.go, which has times without a model. tokens.go is
// the made-up vocabulary, which hftokenizer.go writes for clients, fault.go is what goes wrong,
// metrics.go and log.go are what is reported.
//
// # Time
//
// A request counts as arrived when its last byte has been read. The engine's own clock is exact: if
// the server wakes some microseconds late, that changes when a token leaves, never when that or any
// other token is due.
package serve
