// Package realengines holds the tests that start real engines, vLLM and
// llama-server on processors, mostly through the program as its users do. They
// are built with the tag realengines only, and run with
//
//	.ci/engines && go test -tags realengines -timeout 25m -short -v ./internal/evidence/realengines
//
// where the first command installs the engines that are not there yet. Tests of
// an engine that is not installed are skipped, and say so. Without -short a
// prediction of some minutes is added: whether the simulated engine, calibrated on
// two rates of vLLM, gives the mean of a third within a factor of two:
//
//	go test -tags realengines -timeout 25m -v -run Predict ./internal/evidence/realengines
//
// So are plans that are to come to a decision, and are checked by a load generator that
// is not planner's: each may take 20 minutes, on processors that do nothing else. Behind
// -args, -runs says how many of each engine, -budget how long each may take:
//
//	go test -tags realengines -timeout 6h -v -run Decisions ./internal/evidence/realengines -args -runs 5
//
// What the tests assert is what engines do: how they fail, what they say of
// themselves, that nothing of them is left. A search whose trials planner itself
// does not trust, since the machine does something else besides, is skipped with
// what planner said of it.
package realengines
