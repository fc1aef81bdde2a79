// Package realengines holds the tests that start real engines, vLLM and
// llama-server on processors. They are built with the tag realengines only, and
// run with
//
//	.ci/engines && go test -tags realengines -timeout 25m -v ./internal/realengines
//
// where the first command installs the engines that are not there yet. Tests of
// an engine that is not installed are skipped, and say so.
package realengines
