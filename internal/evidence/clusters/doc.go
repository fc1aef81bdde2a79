// Package clusters holds tests of the launchers for clusters on a real Slurm and on a real
// Kubernetes, which they start on the loopback of this machine with GPUs that are declared
// and not there:
//
//	.ci/clusters slurm
//	go test -tags slurm -parallel 12 -v ./internal/evidence/clusters
//
//	.ci/clusters kubernetes
//	go test -tags kubernetes -parallel 4 -timeout 20m -v ./internal/evidence/clusters
package clusters
