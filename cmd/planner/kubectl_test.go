package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// fakePod is a pod of a cluster that is a folder, $FAKE: its containers are processes
// here, to which /var/lib/planner is a folder of their own.
type fakePod struct {
	Metadata struct {
		Name, GenerateName string
		Labels             map[string]string
	} `json:"metadata"`
	Spec struct {
		Init       []fakeContainer `json:"initContainers"`
		Containers []fakeContainer `json:"containers"`
		Volumes    []struct {
			ConfigMap struct{ Name string } `json:"configMap"`
		} `json:"volumes"`
	} `json:"spec"`
	Status     map[string]any    `json:"status"`
	BinaryData map[string][]byte `json:"binaryData,omitempty"`
	Kind       string            `json:"kind"`
}

type fakeContainer struct {
	Image   string   `json:"image"`
	Command []string `json:"command"`
}

func fakeFile(name string) string { return filepath.Join(os.Getenv("FAKE"), name) }

// fakeKubectl passes for kubectl and the cluster behind it.
func fakeKubectl() {
	args := slices.DeleteFunc(os.Args[1:], func(a string) bool { return a == "--namespace" || a == "lab" })
	if away, err := os.ReadFile(fakeFile("away")); err == nil {
		fail(string(away))
	}
	switch args[0] {
	case "create":
		fakeCreate(args)
	case "run-pod":
		fakeRun(args[1])
	case "get":
		if args[1] == "configmap" {
			if _, err := os.Stat(fakeFile(args[2] + ".owner")); err == nil {
				fmt.Print("uid-1")
			}
			return
		}
		found, _ := filepath.Glob(fakeFile("*.pod"))
		items := []json.RawMessage{}
		for _, path := range found {
			data, _ := os.ReadFile(path)
			items = append(items, data)
		}
		json.NewEncoder(os.Stdout).Encode(map[string]any{"items": items})
	case "logs":
		log, err := os.Open(fakeFile(args[1] + ".log"))
		if err != nil {
			fail("container is waiting to start: PodInitializing")
		}
		io.Copy(os.Stdout, log)
	case "delete":
		found, _ := filepath.Glob(fakeFile("*.pod"))
		for _, path := range found {
			if args[1] != "pod" || filepath.Base(path) == args[2]+".pod" {
				os.Remove(path)
			}
		}
	}
}

func fail(words string) {
	fmt.Fprintln(os.Stderr, strings.TrimSpace(words))
	os.Exit(1)
}

// fakeCreate makes an object of what is on standard input, and starts it where it is a pod.
func fakeCreate(args []string) {
	var o fakePod
	if err := json.NewDecoder(os.Stdin).Decode(&o); err != nil {
		fail(err.Error())
	}
	if slices.Contains(args, "--dry-run=server") {
		return
	}
	name := o.Metadata.Name
	if name == "" {
		name = fmt.Sprintf("%s%d", o.Metadata.GenerateName, os.Getpid())
	}
	if o.Kind == "ConfigMap" {
		if o.BinaryData == nil {
			os.WriteFile(fakeFile(name+".owner"), nil, 0o600)
			fmt.Print("uid-1")
			return
		}
		os.WriteFile(fakeFile(name+".tgz"), o.BinaryData["seed.tgz"], 0o600)
		fmt.Print(name)
		return
	}
	if words, err := os.ReadFile(fakeFile("quota")); err == nil && strings.Contains(name, "h100") {
		fail(string(words))
	}
	o.Metadata.Name, o.Status = name, map[string]any{"phase": "Pending"}
	o.save()
	self, err := os.Executable()
	if err != nil {
		fail(err.Error())
	}
	cmd := exec.Command(self, "run-pod", name)
	cmd.Args[0], cmd.SysProcAttr = "kubectl", &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		fail(err.Error())
	}
	fmt.Print(name)
}

func (o *fakePod) save() {
	data, _ := json.Marshal(o)
	os.WriteFile(fakeFile(o.Metadata.Name+".new"), data, 0o600)
	os.Rename(fakeFile(o.Metadata.Name+".new"), fakeFile(o.Metadata.Name+".pod"))
}

// fakeRun is the node: it runs the containers of a pod, or says why it cannot.
func fakeRun(name string) {
	var o fakePod
	data, err := os.ReadFile(fakeFile(name + ".pod"))
	if err != nil || json.Unmarshal(data, &o) != nil {
		return
	}
	if o.Spec.Containers[0].Image == "nowhere" {
		waiting := map[string]any{"reason": "ImagePullBackOff", "message": "Back-off pulling image nowhere"}
		o.Status["containerStatuses"] = []any{map[string]any{"state": map[string]any{"waiting": waiting}}}
		o.save()
		return
	}
	if o.Spec.Containers[0].Image == "broken" {
		os.WriteFile(fakeFile(name+".log"), fmt.Appendf(nil, "%s exec format error", time.Now().UTC().Format(time.RFC3339Nano)), 0o600)
		o.Status["phase"] = "Failed"
		o.save()
		return
	}
	root := fakeFile(o.Metadata.Labels["planner/run"] + o.Metadata.Labels["planner/part"]) // /var/lib/planner of every pod of the part
	os.RemoveAll(root)
	os.MkdirAll(filepath.Join(root, "seed"), 0o700)
	os.MkdirAll(filepath.Join(root, "tools"), 0o700)
	for _, v := range o.Spec.Volumes {
		if v.ConfigMap.Name != "" {
			seed, _ := os.ReadFile(fakeFile(v.ConfigMap.Name + ".tgz"))
			os.WriteFile(filepath.Join(root, "seed", "seed.tgz"), seed, 0o600)
		}
	}
	o.Status["phase"] = "Running"
	o.save()
	program, _ := exec.LookPath("planner")
	for _, c := range append(o.Spec.Init, o.Spec.Containers...) {
		for i, word := range c.Command {
			if c.Command[i] = strings.Replace(word, "/var/lib/planner/", root+"/", 1); word == "/planner" {
				c.Command[i] = program
			}
		}
		cmd := exec.Command(c.Command[0], c.Command[1:]...)
		out, _ := cmd.StdoutPipe()
		cmd.Stderr = cmd.Stdout
		cmd.Start()
		log, _ := os.Create(fakeFile(name + ".log"))
		lines := bufio.NewScanner(out)
		lines.Buffer(nil, 64<<20)
		for lines.Scan() {
			fmt.Fprintf(log, "%s %s\n", time.Now().UTC().Format(time.RFC3339Nano), lines.Text())
		}
		log.Close()
		if cmd.Wait() != nil {
			o.Status["phase"] = "Failed"
			break
		}
		o.Status["phase"] = "Succeeded"
	}
	if _, err := os.Stat(fakeFile(name + ".pod")); err == nil {
		o.save()
	}
}
