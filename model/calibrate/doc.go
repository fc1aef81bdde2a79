// Package calibrate fits the simulated engine's few constants to measured runs, and
// says what the constants' known spread does to an answer.
//
// Only the terms of [model.Terms] are fitted: the front end, the costs per step, layer
// and running request, and the shares of bandwidth and compute that weights, the KV
// cache and large products reach. Data sheets, shapes, collectives and everything else
// stay. A term that the runs say nothing about stays at its default.
package calibrate
