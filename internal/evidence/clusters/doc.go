// Package clusters holds tests of the launchers for clusters on a real Slurm, which they
// start on the loopback of this machine with GPUs that are declared and not there:
//
//	.ci/clusters slurm
//	go test -tags slurm -parallel 6 -v ./internal/evidence/clusters
package clusters
