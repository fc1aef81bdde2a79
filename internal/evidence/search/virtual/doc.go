// Package virtual holds servers in virtual time whose maximum rate is known, to
// try searches on: queues with a closed form and a small batching engine.
package virtual
