//go:build kubernetes && !slurm

package clusters

import (
	"path/filepath"
	"testing"
)

// What the shared tests need to know of the site: it has one node, whose label says one
// thing of its GPUs.
const (
	launcher      = "kubernetes"
	engineProgram = "/planner"
	gpuWord       = "TEST-GPU"
	siteTable     = `
[cluster]
gpu = { "H100 SXM" = "` + gpuWord + `", "L40S" = "` + gpuWord + `" }
image = "localhost/planner:1"
planner = "localhost/planner:1"
`
)

// leftOf are the objects of a run that the cluster still has.
func leftOf(t *testing.T, name string) string {
	return kubectl(t, "", "get", "pods,configmaps", "-l", "planner/run="+name, "-o", "name")
}

// jobsOf are the pods of a run by part.
func jobsOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	jobs := map[string]string{}
	name := runName(t, filepath.Join(dir, "run"))
	for _, part := range bothParts {
		jobs[part] = kubectl(t, "", "get", "pods", "-l", "planner/run="+name+",planner/part="+part, "-o", "jsonpath={.items[0].metadata.name}")
	}
	return jobs
}
