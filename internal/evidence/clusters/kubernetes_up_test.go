//go:build kubernetes && !slurm

package clusters

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"planner/internal/evidence/programtest"
)

// kubernetes is a control plane and one node with eight GPUs: kube-apiserver on etcd,
// kube-controller-manager, kube-scheduler, kubelet and containerd, in a network and with
// processes and mounts of their own, so that the kernel ends and removes all of them with
// the tests. Ports are the usual ones, and nothing outside can reach them.
type kubernetes struct {
	dir    string
	daemon map[string]*exec.Cmd
}

var site = kubernetes{daemon: map[string]*exec.Cmd{}}

// insideVariable tells the test process in the namespaces where its files are.
const insideVariable = "PLANNER_KUBERNETES_DIR"

func testMain(m *testing.M) int {
	if site.dir = os.Getenv(insideVariable); site.dir == "" {
		return outside()
	}
	program = filepath.Join(site.dir, "planner")
	os.Setenv("PATH", filepath.Join(site.dir, "bin")+":"+os.Getenv("PATH"))
	os.Setenv("KUBECONFIG", site.kubeconfig("admin"))
	began := time.Now()
	if err := errors.Join(site.isolate(), site.up()); err != nil {
		fmt.Printf("SKIPPED: Kubernetes does not come up here: %v\n", err)
		return 0
	}
	fmt.Printf("Kubernetes is up after %v\n", time.Since(began).Round(100*time.Millisecond))
	return m.Run()
}

// outside builds what the tests need, and runs them in namespaces of their own.
func outside() int {
	kept, err := exec.Command("../../../.ci/clusters", "kubernetes", "kept").CombinedOutput()
	if err != nil || os.Getuid() != 0 {
		fmt.Printf("SKIPPED: no Kubernetes, or not root: %s\n", kept)
		return 0
	}
	dir, err := os.MkdirTemp("", "kube-")
	if err == nil {
		defer os.RemoveAll(dir)
		err = prepare(dir, strings.TrimSpace(string(kept)))
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	inside := exec.Command("/proc/self/exe", os.Args[1:]...)
	inside.Stdout, inside.Stderr = os.Stdout, os.Stderr
	inside.Env = append(os.Environ(), insideVariable+"="+dir)
	inside.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWPID | syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	err = inside.Run()
	// What is left of the pods are empty control groups.
	_ = exec.Command("find", "/sys/fs/cgroup", "-depth", "-type", "d", "-path", "*/kubepods*", "-exec", "rmdir", "{}", ";").Run()
	return programtest.ExitCode(err)
}

// prepare makes links to kubeall, which is all components, the program, and images with it.
func prepare(dir, kubeall string) error {
	if err := os.Chmod(dir, 0o755); err != nil {
		return err
	}
	for _, d := range []string{"bin", "log", "pki", "cni", "run"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o755); err != nil {
			return err
		}
	}
	definition, err := os.ReadFile(filepath.Join(filepath.Dir(kubeall), "keda.sh_scaledobjects.yaml"))
	if err = errors.Join(err, os.WriteFile(filepath.Join(dir, "keda.yaml"), definition, 0o600)); err != nil {
		return err
	}
	for _, c := range []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kubectl"} {
		if err := os.Symlink(kubeall, filepath.Join(dir, "bin", c)); err != nil {
			return err
		}
	}
	pause, err := programtest.Build(dir, "pause.go")
	if err == nil {
		program, err = programtest.Build(dir, programtest.Planner)
	}
	if err != nil {
		return err
	}
	return errors.Join(image(dir, "pause", pause), image(dir, "planner", program))
}

// image writes an image localhost/NAME:1 from scratch with one program, /NAME, as
// `docker save` would.
func image(dir, name, path string) error {
	binary, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	layer, err := archive([]tar.Header{{Name: "tmp/", Typeflag: tar.TypeDir, Mode: 0o1777}, {Name: name, Mode: 0o755}}, map[string][]byte{name: binary})
	if err != nil {
		return err
	}
	config, err := json.Marshal(map[string]any{"architecture": "amd64", "os": "linux", "config": map[string]any{"Entrypoint": []string{"/" + name}},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{fmt.Sprintf("sha256:%x", sha256.Sum256(layer))}}})
	if err != nil {
		return err
	}
	manifest := fmt.Sprintf(`[{"Config": "config.json", "RepoTags": ["localhost/%s:1"], "Layers": ["layer.tar"]}]`, name)
	whole, err := archive([]tar.Header{{Name: "layer.tar", Mode: 0o644}, {Name: "config.json", Mode: 0o644}, {Name: "manifest.json", Mode: 0o644}},
		map[string][]byte{"layer.tar": layer, "config.json": config, "manifest.json": []byte(manifest)})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, name+".tar"), whole, 0o600)
}

// archive is a tar of entries with their contents.
func archive(entries []tar.Header, contents map[string][]byte) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		e.Size = int64(len(contents[e.Name]))
		if err := w.WriteHeader(&e); err != nil {
			return nil, err
		}
		if _, err := w.Write(contents[e.Name]); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), w.Close()
}

// nodeAddress is the node's: kubelet refuses 127.0.0.1.
const nodeAddress = "192.0.2.10"

// isolate makes the namespaces of this process a machine of its own. kubelet sets
// parameters of the kernel, which are those of all namespaces: it gets copies to write to.
func (k *kubernetes) isolate() error {
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return err
	}
	if err := syscall.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return err
	}
	for _, name := range []string{"vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops", "kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes"} {
		path, copied := "/proc/sys/"+name, filepath.Join(k.dir, "run", filepath.Base(name))
		value, err := os.ReadFile(path)
		if err = errors.Join(err, os.WriteFile(copied, value, 0o600), syscall.Mount(copied, path, "", syscall.MS_BIND, "")); err != nil {
			return err
		}
	}
	for _, path := range []string{"/var/lib/kubelet", "/run/containerd", "/var/log/containers", "/var/lib/cni"} {
		if err := errors.Join(os.MkdirAll(path, 0o755), syscall.Mount("tmpfs", path, "tmpfs", 0, "")); err != nil {
			return err
		}
	}
	for _, argv := range [][]string{{"ip", "link", "set", "lo", "up"}, {"ip", "address", "add", nodeAddress + "/32", "dev", "lo"}} {
		if out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%v: %w: %s", argv, err, out)
		}
	}
	return nil
}

// users of the API, by their tokens: those of the components, and one with the rights that a test gives.
const tokens = `admin,admin,1,system:masters
controllers,system:kube-controller-manager,2,system:masters
scheduler,system:kube-scheduler,3,system:masters
kubelet,system:node:n1,4,system:nodes
tenant,tenant,5
`

// kubeconfig is the file with which a user calls the API.
func (k *kubernetes) kubeconfig(user string) string { return filepath.Join(k.dir, user+".kubeconfig") }

// up starts everything, and waits for the node.
func (k *kubernetes) up() error {
	if err := k.files(); err != nil {
		return err
	}
	if err := errors.Join(k.start("etcd"), k.start("kube-apiserver"), k.start("containerd")); err != nil {
		return err
	}
	if err := k.until(time.Minute, "kubectl", "get", "--raw", "/readyz"); err != nil {
		return err
	}
	if err := errors.Join(k.start("kube-controller-manager"), k.start("kube-scheduler")); err != nil {
		return err
	}
	if err := k.until(time.Minute, "ctr", "-a", k.dir+"/run/containerd.sock", "version"); err != nil {
		return err
	}
	for _, name := range []string{"pause", "planner"} {
		if err := k.until(0, "ctr", "-a", k.dir+"/run/containerd.sock", "-n", "k8s.io", "images", "import", filepath.Join(k.dir, name+".tar")); err != nil {
			return err
		}
	}
	return k.node()
}

// node starts the node and declares its GPUs.
func (k *kubernetes) node() error {
	if err := k.start("kubelet"); err != nil {
		return err
	}
	if err := k.until(time.Minute, "kubectl", "wait", "--for=condition=Ready", "node/n1", "--timeout=1s"); err != nil {
		return err
	}
	gpus := `{"nvidia.com/gpu":"8"}`
	return errors.Join(
		k.until(0, "kubectl", "label", "--overwrite", "node", "n1", "nvidia.com/gpu.product="+gpuWord),
		k.until(0, "kubectl", "patch", "node", "n1", "--subresource=status", "--type=merge", "-p", `{"status":{"capacity":`+gpus+`,"allocatable":`+gpus+`}}`),
		k.until(time.Minute, "kubectl", "get", "serviceaccount", "default"))
}

// until runs a command again and again for so long, until it succeeds.
func (k *kubernetes) until(patience time.Duration, argv ...string) error {
	for end := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput()
		if err == nil {
			return nil
		}
		if time.Now().After(end) {
			logs, _ := exec.Command("sh", "-c", "grep -hE '^[EF][0-9]|fatal|level=error' "+k.dir+"/log/* | tail -n 5").Output()
			return fmt.Errorf("%v: %w: %s\n%s", argv, err, out, logs)
		}
	}
}

// files writes what the components read.
func (k *kubernetes) files() error {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return err
	}
	files := map[string]string{
		"pki/sa.key":      string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})),
		"tokens.csv":      tokens,
		"containerd.toml": strings.ReplaceAll(containerdConfig, "DIR", k.dir),
		"kubelet.yaml":    strings.ReplaceAll(kubeletConfig, "DIR", k.dir),
		"cni/10.conflist": `{"cniVersion": "0.4.0", "name": "pods", "plugins": [{"type": "ptp", "ipam": {"type": "host-local", "subnet": "10.88.0.0/16"}}]}`,
	}
	for line := range strings.Lines(tokens) {
		user, _, _ := strings.Cut(line, ",")
		files[filepath.Base(k.kubeconfig(user))] = strings.ReplaceAll(kubeconfigText, "USER", user)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(k.dir, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

const kubeconfigText = `apiVersion: v1
kind: Config
current-context: here
clusters: [{name: here, cluster: {server: "https://127.0.0.1:6443", insecure-skip-tls-verify: true}}]
users: [{name: user, user: {token: USER}}]
contexts: [{name: here, context: {cluster: here, user: user}}]
`

const containerdConfig = `version = 2
root = "DIR/containerd/root"
state = "DIR/containerd/state"
[grpc]
  address = "DIR/run/containerd.sock"
[ttrpc]
  address = "DIR/run/containerd.ttrpc"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "localhost/pause:1"
  disable_apparmor = true
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "DIR/cni"
`

const kubeletConfig = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: ` + nodeAddress + `
authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
containerRuntimeEndpoint: unix://DIR/run/containerd.sock
cgroupDriver: cgroupfs
enforceNodeAllocatable: [none]
failSwapOn: false
failCgroupV1: false
featureGates: {KubeletInUserNamespace: true} # what the kernel refuses is a warning
evictionHard: {memory.available: 1Mi, nodefs.available: "0%", imagefs.available: "0%", nodefs.inodesFree: "0%"}
imageGCHighThresholdPercent: 100
nodeStatusUpdateFrequency: 4s
syncFrequency: 10s
resolvConf: ""
podLogsDir: DIR/pods
makeIPTablesUtilChains: false
oomScoreAdj: 0
`

// argv is the command line of a component.
func (k *kubernetes) argv(name string) []string {
	return map[string][]string{
		"etcd": {"--data-dir", k.dir + "/etcd", "--unsafe-no-fsync", "--log-level", "warn"},
		"kube-apiserver": {"--etcd-servers", "http://127.0.0.1:2379", "--bind-address", "127.0.0.1", "--advertise-address", nodeAddress, "--endpoint-reconciler-type", "none",
			"--service-cluster-ip-range", "10.96.0.0/16", "--cert-dir", k.dir + "/pki", "--token-auth-file", k.dir + "/tokens.csv", "--kubelet-preferred-address-types", "InternalIP",
			"--authorization-mode", "Node,RBAC", "--service-account-issuer", "https://kubernetes.default.svc", "--service-account-key-file", k.dir + "/pki/sa.key",
			"--service-account-signing-key-file", k.dir + "/pki/sa.key"},
		"kube-controller-manager": {"--kubeconfig", k.kubeconfig("controllers"), "--service-account-private-key-file", k.dir + "/pki/sa.key", "--root-ca-file", k.dir + "/pki/apiserver.crt",
			"--leader-elect=false", "--bind-address", "127.0.0.1", "--cert-dir", k.dir + "/pki/controllers", "--node-monitor-grace-period", "20s", "--node-monitor-period", "2s"},
		"kube-scheduler": {"--kubeconfig", k.kubeconfig("scheduler"), "--leader-elect=false", "--bind-address", "127.0.0.1", "--cert-dir", k.dir + "/pki/scheduler"},
		"kubelet": {"--config", k.dir + "/kubelet.yaml", "--kubeconfig", k.kubeconfig("kubelet"), "--hostname-override", "n1", "--node-ip", nodeAddress,
			"--root-dir", k.dir + "/kubelet", "--cert-dir", k.dir + "/pki/kubelet"},
		"containerd": {"--config", k.dir + "/containerd.toml"},
	}[name]
}

// start starts a component.
func (k *kubernetes) start(name string, more ...string) error {
	log, err := os.OpenFile(filepath.Join(k.dir, "log", name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(name, slices.Concat(k.argv(name), more)...)
	cmd.Stdout, cmd.Stderr = log, log
	k.daemon[name] = cmd
	return cmd.Start()
}

// kill ends a component with signal 9.
func (k *kubernetes) kill(name string) {
	_ = k.daemon[name].Process.Kill()
	_ = k.daemon[name].Wait()
}

// kubectl runs a command as the administrator, again where the API server is away.
func kubectl(t *testing.T, input string, args ...string) string {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(time.Second) {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		cmd := exec.CommandContext(ctx, "kubectl", append([]string{"--kubeconfig", site.kubeconfig("admin")}, args...)...)
		cmd.Stdin = strings.NewReader(input)
		out, err := cmd.CombinedOutput()
		cancel()
		if err == nil {
			return strings.TrimSpace(string(out))
		}
		if !strings.Contains(string(out), "refused") && ctx.Err() == nil || time.Now().After(end) {
			t.Fatalf("kubectl %v: %v: %s", args, err, out)
		}
	}
}
