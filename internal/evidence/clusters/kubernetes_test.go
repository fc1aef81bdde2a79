//go:build kubernetes && !slurm

package clusters

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"planner/internal/evidence/programtest"
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

// leftOf are the objects of a run that the cluster still has, once it had the time to
// remove what is owned by what was deleted.
func leftOf(t *testing.T, name string) (left string) {
	for range 20 {
		left = kubectl(t, "", "get", "pods,configmaps", "--all-namespaces", "-l", "planner/run="+name, "-o", "name")
		if left == "" {
			break
		}
		time.Sleep(time.Second)
	}
	return left
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

// jobsEnded reports whether no pod of a run will do more.
func jobsEnded(t *testing.T, dir string) bool {
	t.Helper()
	phases := kubectl(t, "", "get", "pods", "-l", "planner/run="+runName(t, filepath.Join(dir, "run")), "-o", "jsonpath={.items[*].status.phase}")
	return !strings.Contains(phases, "Running") && !strings.Contains(phases, "Pending")
}

// rules are a namespace a kind of refusal.
const rules = `
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Namespace, metadata: {name: poor}}
- {apiVersion: v1, kind: ResourceQuota, metadata: {name: gpus, namespace: poor}, spec: {hard: {requests.nvidia.com/gpu: "0"}}}
- {apiVersion: v1, kind: Namespace, metadata: {name: safe, labels: {pod-security.kubernetes.io/enforce: restricted}}}
- {apiVersion: v1, kind: Namespace, metadata: {name: strict}}
- apiVersion: admissionregistration.k8s.io/v1
  kind: ValidatingAdmissionPolicy
  metadata: {name: teams}
  spec:
    matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}
    validations: [{expression: "'team' in object.metadata.labels", message: every pod says whose it is}]
- apiVersion: admissionregistration.k8s.io/v1
  kind: ValidatingAdmissionPolicyBinding
  metadata: {name: teams}
  spec: {policyName: teams, validationActions: [Deny], matchResources: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: strict}}}}
`

// What the API server or the scheduler refuses ends within ten seconds, in their own
// words, and what the node cannot start once the node has tried.
func TestRefusals(t *testing.T) {
	kubectl(t, rules, "apply", "-f", "-")
	time.Sleep(2 * time.Second) // the API server takes a moment to know of a policy
	dir := folder(t, simulated)
	for i, c := range []struct {
		set, words string
		within     time.Duration
	}{
		{"cluster.namespace=poor", "exceeded quota: gpus, requested: requests.nvidia.com/gpu=1", 10 * time.Second},
		{"cluster.namespace=safe", `violates PodSecurity \"restricted:latest\"`, 10 * time.Second},
		{"cluster.namespace=strict", "every pod says whose it is", 10 * time.Second},
		{"cluster.namespace=nowhere", `namespaces \"nowhere\" not found`, 10 * time.Second},
		{"cluster.image=localhost/nothing:1", "failed to pull and unpack image", 20 * time.Second},
		{"cluster.planner=localhost/nothing:1", "failed to pull and unpack image", 20 * time.Second},
		{`cluster.gpu={ "L40S" = "B200" }`, "didn't match Pod's node affinity/selector", 10 * time.Second},
		{`cluster.extra=['{"spec":{"priorityClassName":"unheard-of"}}']`, "no PriorityClass with name unheard-of was found", 10 * time.Second},
		{"cluster.planner=/nowhere/planner", "stat /nowhere/planner: no such file or directory", 20 * time.Second},
	} {
		refused(t, dir, "r"+strconv.Itoa(i), c.words, c.within, c.set)
	}
	t.Setenv("KUBECONFIG", site.kubeconfig("tenant"))
	refused(t, dir, "forbidden", `User \"tenant\" cannot list resource \"pods\"`, 10*time.Second)
}

// The rights that docs/clusters.md names are enough for a whole run.
func TestDocumentedRole(t *testing.T) {
	doc, err := os.ReadFile("../../../docs/clusters.md")
	if err != nil {
		t.Fatal(err)
	}
	role := regexp.MustCompile("(?s)```yaml\n(apiVersion: rbac.*?)```").FindSubmatch(doc)
	if role == nil {
		t.Fatal("docs/clusters.md names no Role")
	}
	kubectl(t, "", "create", "namespace", "lab")
	kubectl(t, string(role[1]), "--namespace", "lab", "create", "-f", "-")
	kubectl(t, "", "--namespace", "lab", "create", "rolebinding", "tenant", "--role=planner", "--user=tenant")
	t.Setenv("KUBECONFIG", site.kubeconfig("tenant"))
	dir := folder(t, strings.Replace(simulated, "[engine]", "[engine]\nlauncher = \"kubernetes\"", 1)+"namespace = \"lab\"\n")
	doctor, said := planner(dir, "doctor", "p.toml")
	_ = doctor.Run() // what it says of this machine does not matter
	if strings.Count(said.String(), "kubernetes would take it") != 4 {
		t.Errorf("doctor: %s", said)
	}
	run(t, 0, dir, "plan", "p.toml", "-o", "here", "-q", "--set", "engine.launcher=local")
	run(t, 0, dir, "plan", "p.toml", "-o", "there")
	if diff := cmp.Diff(plan(t, dir, "here"), plan(t, dir, "there")); diff != "" {
		t.Error(diff)
	}
	nothingLeft(t, dir, "there")
}

// A pod that somebody deletes is followed by another, which goes on.
func TestDeletedPod(t *testing.T) {
	t.Parallel()
	said := harmed(t, 6, func(v victim) {
		kubectl(t, "", "delete", "pod", v.jobs["l40s-tp1"], "--wait=false")
		kubectl(t, "", "delete", "pod", v.jobs["h100-sxm-tp1"], "--grace-period=0", "--force")
	})
	if strings.Count(said, "the part goes on in another") < 2 || strings.Contains(said, "go on with") {
		t.Errorf("two pods were deleted: %s", said)
	}
}

// The planner of a pod, its first process, is killed with signal 9: the kernel ends the
// engine, and another pod goes on.
func TestKilledPod(t *testing.T) {
	t.Parallel()
	said := harmed(t, 6, func(v victim) {
		if killed := kill(t, runName(t, filepath.Join(v.dir, "run"))+"/l40s-tp1"); killed != 1 {
			t.Errorf("%d processes killed, want 1", killed)
		}
	})
	if !strings.Contains(said, "the part goes on in another") {
		t.Errorf("nothing is said of that: %s", said)
	}
}

// kill kills the processes of planner in pods whose command line ends with some words.
func kill(t *testing.T, ending string) (killed int) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range all {
		line, _ := os.ReadFile(path)
		if pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path))); strings.HasPrefix(string(line), "/var/lib/planner/tools/planner\x00resume") && strings.HasSuffix(string(line), ending+"\x00") {
			_ = syscall.Kill(pid, syscall.SIGKILL)
			killed++
		}
	}
	return killed
}

// A pod that is preempted by one of a higher priority waits for its GPUs, and goes on.
func TestPreemptedPod(t *testing.T) {
	kubectl(t, "", "create", "priorityclass", "urgent", "--value=1000")
	said := harmed(t, 5, func(victim) {
		kubectl(t, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"urgent"},"spec":{"priorityClassName":"urgent","terminationGracePeriodSeconds":1,"containers":[{"name":"c",
			"image":"localhost/pause:1","resources":{"limits":{"nvidia.com/gpu":8},"requests":{"nvidia.com/gpu":8}}}]}}`, "create", "-f", "-")
		kubectl(t, "", "wait", "--for=condition=Ready", "pod/urgent", "--timeout=90s")
		time.Sleep(10 * time.Second) // as long as a pod that never runs would be given
		kubectl(t, "", "delete", "pod", "urgent")
	})
	if !strings.Contains(said, "the part goes on in another") || !strings.Contains(said, "Insufficient nvidia.com/gpu") || strings.Contains(said, "go on with") {
		t.Errorf("nothing is said of that: %s", said)
	}
}

// The process that submits is killed with signal 9, and what it left is cleaned.
func TestClean(t *testing.T) {
	dir := folder(t, live)
	cmd, _ := planner(dir, "sweep", "p.toml", "-o", "run", "--rates", "5,6,7", "--duration", "4s", "--warm-up", "1s")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	await(t, time.Minute, func() bool { return len(lines(dir, bothParts[0])) > 0 })
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if len(engines(t)) == 0 {
		t.Error("no engine outlives the process that submits: nothing is shown")
	}
	said := run(t, 0, dir, "clean", "run")
	if !strings.Contains(said, "jobs cancelled: 2;") {
		t.Error(said)
	}
	nothingLeft(t, dir, "run")
	again, out := planner(dir, "resume", "run")
	if code := programtest.ExitCode(again.Run()); code != 0 && code != noneTrusted {
		t.Errorf("resume: exit code %d: %s", code, out)
	}
	for _, p := range bothParts {
		if n := len(lines(dir, p)); n != 3 {
			t.Errorf("%s: %d trials, want 3", p, n)
		}
	}
	nothingLeft(t, dir, "run")
}

// A pod that reaches its deadline goes on in another.
func TestTimeLimit(t *testing.T) {
	t.Parallel()
	said := harmed(t, 24, func(victim) {}, "--set", "cluster.time_limit=2m")
	if !strings.Contains(said, "the part goes on in another") {
		t.Errorf("no pod reached its deadline: %s", said)
	}
}

// The API server is away for a minute: pods go on, and so does who follows them.
func TestAPIServerDown(t *testing.T) {
	inOneGo(t, func() {
		site.kill("kube-apiserver")
		time.Sleep(time.Minute)
		if err := site.start("kube-apiserver"); err != nil {
			t.Fatal(err)
		}
		// Elsewhere these would have lost their leadership and started again; here they
		// would ask the API server again after up to a minute.
		for _, name := range []string{"kube-scheduler", "kube-controller-manager"} {
			site.kill(name)
			if err := site.start(name); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// The node's agent is killed and away for as long as the node takes to be given up: its
// pods live on, and are followed again when it is back.
func TestKubeletKilled(t *testing.T) {
	inOneGo(t, func() {
		site.kill("kubelet")
		await(t, 3*time.Minute, func() bool {
			out, _ := exec.Command("kubectl", "get", "node", "n1", "-o", `jsonpath={.status.conditions[?(@.type=="Ready")].status}`).Output()
			return string(out) == "Unknown"
		})
		if err := site.node(); err != nil {
			t.Fatal(err)
		}
	})
}

// inOneGo is harmed, while no other test runs, by what nobody needs to resume after.
func inOneGo(t *testing.T, harm func()) {
	t.Helper()
	if said := harmed(t, 12, func(victim) { harm() }); strings.Contains(said, "go on with") {
		t.Errorf("it had to be resumed: %s", said)
	}
}
