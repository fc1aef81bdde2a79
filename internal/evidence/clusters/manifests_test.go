//go:build kubernetes && !slurm

package clusters

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// What `planner manifests` writes of plans and of replayed fleets is taken by the API
// server as it stands, without a field that it does not know.
func TestManifests(t *testing.T) {
	dir := folder(t, simulated)
	set := func(args ...string) []string {
		for _, s := range []string{"demand.rate=8", "hardware.gpu=H100 SXM", "knobs.max_num_seqs=64", "knobs.max_num_batched_tokens=2048"} {
			args = append(args, "--set", s)
		}
		return args
	}
	run(t, 0, dir, set("plan", "p.toml", "-o", "one", "-q", "--set", "engine.tensor_parallel=1")...)
	run(t, 0, dir, set("plan", "p.toml", "-o", "eight", "-q", "--set", "model.name=llama-3.1-70b", "--set", "engine.tensor_parallel=8")...)
	for _, scaler := range []string{`hpa={kind="hpa",metric="in_flight",target=20}`, `own={kind="hpa",metric="kv_usage",target=0.7,scale_down={stabilization="90s"}}`,
		`keda={kind="keda",metric="waiting",target=3}`, `ttft={kind="keda",metric="ttft_p90_ms",target=300,scale_up={policies=[{type="pods",value=2,period="60s"}]}}`} {
		name, value, _ := strings.Cut(scaler, "=")
		run(t, 0, dir, set("fleet", "p.toml", "-o", name, "--no-static", "--set", "engine.tensor_parallel=1", "--set", "fleet.autoscaler="+value, "--set", `fleet.stages=[{rate=4,duration="60s"}]`)...)
	}
	kubectl(t, leaderWorkerSets(t), "create", "-f", "-")
	kubectl(t, "", "create", "-f", filepath.Join(site.dir, "keda.yaml"))
	kubectl(t, "", "wait", "--for=condition=Established", "crd", "--all", "--timeout=30s")
	time.Sleep(2 * time.Second) // the schemas of new kinds take a moment
	kubectl(t, "", "create", "namespace", "llm")
	for _, c := range []struct{ args, kinds string }{
		{"one", "deployment.apps service poddisruptionbudget.policy horizontalpodautoscaler.autoscaling"},
		{"one --name chat --namespace llm --volume-claim models --node-selector nvidia.com/gpu.product=H100 --image registry.example/vllm:1", "deployment.apps service poddisruptionbudget.policy horizontalpodautoscaler.autoscaling"},
		{"eight", "deployment.apps service poddisruptionbudget.policy horizontalpodautoscaler.autoscaling"},
		{"eight --node-gpus 4 --namespace llm", "leaderworkerset.leaderworkerset.x-k8s.io service poddisruptionbudget.policy horizontalpodautoscaler.autoscaling"},
		{"hpa --name chat", "horizontalpodautoscaler.autoscaling"},
		{"own", "horizontalpodautoscaler.autoscaling"},
		{"keda", "scaledobject.keda.sh"},
		{"ttft --namespace llm", "scaledobject.keda.sh"},
	} {
		written := run(t, 0, dir, append([]string{"manifests"}, strings.Fields(c.args)...)...)
		said := kubectl(t, written, "create", "--dry-run=server", "--validate=strict", "-f", "-")
		var kinds []string
		for line := range strings.Lines(said) {
			kind, _, _ := strings.Cut(line, "/")
			kinds = append(kinds, kind)
		}
		if got := strings.Join(kinds, " "); got != c.kinds {
			t.Errorf("%s: the API server took %q, want %q", c.args, got, c.kinds)
		}
	}
	// What it would not take is told: the test can fail.
	broken := strings.Replace(run(t, 0, dir, "manifests", "eight", "--node-gpus", "4"), "size: 2", "size: two\n    sise: 2", 1)
	if err := os.WriteFile(dir+"/broken.yaml", []byte(broken), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("kubectl", "create", "--dry-run=server", "--validate=strict", "-f", dir+"/broken.yaml").CombinedOutput(); err == nil || !strings.Contains(string(out), "sise") {
		t.Errorf("a wrong manifest was taken: %s", out)
	}
}

// leaderWorkerSets defines the kind LeaderWorkerSet: its own fields as its API has them in
// v0.7, and those of pods as the API server itself has them, as the project's own
// definition is generated.
func leaderWorkerSets(t *testing.T) string {
	var core struct {
		Components struct{ Schemas map[string]map[string]any }
	}
	api(t, http.MethodGet, "/openapi/v3/api/v1", nil, &core)
	pod, err := json.Marshal(structural(core.Components.Schemas, map[string]any{"$ref": "#/components/schemas/io.k8s.api.core.v1.PodTemplateSpec"}))
	if err != nil {
		t.Fatal(err)
	}
	number, intOrText := `{"type":"integer","format":"int32"}`, `{"x-kubernetes-int-or-string":true}`
	enum := func(words string) string {
		return fmt.Sprintf(`{"type":"string","enum":["%s"]}`, strings.ReplaceAll(words, " ", `","`))
	}
	object := func(required string, fields ...string) string {
		return fmt.Sprintf(`{"type":"object","required":[%s],"properties":{%s}}`, required, strings.Join(fields, ","))
	}
	spec := object(`"leaderWorkerTemplate"`, `"replicas":`+number, `"startupPolicy":`+enum("LeaderCreated LeaderReady"),
		`"rolloutStrategy":`+object(`"type"`, `"type":`+enum("RollingUpdate"), `"rollingUpdateConfiguration":`+object("", `"partition":`+number, `"maxUnavailable":`+intOrText, `"maxSurge":`+intOrText)),
		`"networkConfig":`+object(`"subdomainPolicy"`, `"subdomainPolicy":`+enum("Shared UniquePerReplica")),
		`"leaderWorkerTemplate":`+object(`"workerTemplate"`, `"size":`+number, `"restartPolicy":`+enum("Default RecreateGroupOnPodRestart RecreateGroupAfterStart None"),
			`"leaderTemplate":`+string(pod), `"workerTemplate":`+string(pod)))
	return `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"leaderworkersets.leaderworkerset.x-k8s.io",
		"annotations":{"api-approved.kubernetes.io":"https://github.com/kubernetes-sigs/lws"}},
		"spec":{"group":"leaderworkerset.x-k8s.io","scope":"Namespaced","names":{"kind":"LeaderWorkerSet","plural":"leaderworkersets","singular":"leaderworkerset","listKind":"LeaderWorkerSetList"},
		"versions":[{"name":"v1","served":true,"storage":true,"subresources":{"status":{}},"schema":{"openAPIV3Schema":` + object("", `"spec":`+spec) + `}}]}}`
}

// structural is a schema of the API server as definitions of kinds may have it: with what
// it refers to, and without defaults.
func structural(all map[string]map[string]any, schema map[string]any) map[string]any {
	if several, ok := schema["allOf"].([]any); ok {
		schema = several[0].(map[string]any)
	}
	if ref, ok := schema["$ref"].(string); ok {
		schema = all[ref[strings.LastIndex(ref, "/")+1:]]
	}
	if _, ok := schema["oneOf"]; ok || schema["format"] == "int-or-string" {
		return map[string]any{"x-kubernetes-int-or-string": true}
	}
	plain := map[string]any{}
	for key, value := range schema {
		switch key {
		case "type", "format", "required":
			plain[key] = value
		case "items", "additionalProperties":
			if deeper, ok := value.(map[string]any); ok {
				plain[key] = structural(all, deeper)
			}
		case "properties":
			fields := map[string]any{}
			for name, field := range value.(map[string]any) {
				fields[name] = structural(all, field.(map[string]any))
			}
			plain[key] = fields
		}
	}
	return plain
}
