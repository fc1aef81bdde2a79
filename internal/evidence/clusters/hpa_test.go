//go:build kubernetes && !slurm

package clusters

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"strings"
	"sync"
	"testing"
	"time"
)

var record = flag.String("record", "", "file for the decisions of the HorizontalPodAutoscaler")

// autoscaled is a series of decisions of the HorizontalPodAutoscaler of
// kube-controller-manager on a metric that this test makes up.
type autoscaled struct {
	Name     string    `json:"name"`
	Min      int       `json:"min"`
	Max      int       `json:"max"`
	Up       *behavior `json:"up,omitempty"`
	Down     *behavior `json:"down,omitempty"`
	Metrics  []target  `json:"metrics"`
	Steps    []*step   `json:"steps"`
	replicas int
	// load is what the fleet has to do at a time, of which each pod takes its share.
	load func(second float64) float64
	// pending and starting are how many steps a pod is not scheduled, and has no metric.
	pending, starting int
	// blind are the seconds in which the first metric is not known.
	blind [2]float64

	server *metricServer
	fleet  []*madeUpPod
	made   int
}

type behavior struct {
	StabilizationSeconds int      `json:"stabilization_s"`
	Select               string   `json:"select"`
	Policies             []policy `json:"policies"`
}

type policy struct {
	Type          string `json:"type"`
	Value         int    `json:"value"`
	PeriodSeconds int    `json:"period_s"`
}

// target is a metric of every pod, or the value, or the mean per pod, of one of them all.
type target struct {
	Kind   string  `json:"kind"`
	Target float64 `json:"target"`
}

// step is a decision: what was seen, and what was wanted then.
type step struct {
	At    float64 `json:"at_s"`
	Asked int     `json:"asked"`
	// Values are those of the pods that have one; Missing have none, Unready are pending.
	Values  []float64 `json:"values,omitempty"`
	Missing int       `json:"missing,omitempty"`
	Unready int       `json:"unready,omitempty"`
	Ready   int       `json:"ready"`
	// Value is the metric of all pods, null where it is not known.
	Value *float64 `json:"value,omitempty"`
	Want  int      `json:"want"`
}

// madeUpPod is a pod that exists in the API alone, for so many steps.
type madeUpPod struct {
	name string
	age  int
}

// sync is the time between two decisions, and decisions how many are recorded.
const (
	syncSeconds = 2
	decisions   = 60
)

// allSeries are what is recorded: loads that grow, fall, jump, swing and wander, pods that
// start at once or late, and bounds of every kind. Times lie between the decisions.
func allSeries() []*autoscaled {
	r := rand.New(rand.NewPCG(18, 2))
	wander := make([]float64, 200)
	for i, level := 0, 40.0; i < len(wander); i++ {
		level = min(max(level+30*(r.Float64()-0.5), 5), 160)
		wander[i] = level
	}
	wandering := func(s float64) float64 { return wander[min(int(s), len(wander)-1)] }
	hill := func(top float64) func(float64) float64 {
		return func(s float64) float64 { return 8 + top*math.Pow(math.Sin(math.Pi*min(s/110, 1)), 2) }
	}
	jump := func(s float64) float64 {
		if s > 20 && s < 70 {
			return 143
		}
		return 17
	}
	swing := func(s float64) float64 { return 70 + 55*math.Sin(s/5.3) }
	pods, value, average := []target{{"pods", 10}}, []target{{"value", 250}}, []target{{"average", 7.5}}
	usualUp := &behavior{0, "Max", []policy{{"Pods", 4, 15}, {"Percent", 100, 15}}}
	usualDown := &behavior{31, "Max", []policy{{"Percent", 100, 15}}}
	quick := &behavior{0, "Max", []policy{{"Percent", 100, 7}}}
	return []*autoscaled{
		{Name: "no settings", Min: 1, Max: 30, Metrics: pods, replicas: 1, load: hill(150)},
		{Name: "no settings, and a load that falls while it grows", Min: 2, Max: 35, Metrics: []target{{"pods", 4.1}}, replicas: 2, load: func(s float64) float64 { return 127 * math.Exp(-s/90) },
			pending: 1, starting: 1},
		{Name: "shrinks after 31 s", Min: 2, Max: 12, Up: usualUp, Down: usualDown, Metrics: pods, replicas: 4, load: swing},
		{Name: "pods start late", Min: 1, Max: 40, Up: usualUp, Down: usualDown, Metrics: pods, replicas: 2, load: jump, starting: 4},
		{Name: "pods wait for a node", Min: 1, Max: 40, Up: usualUp, Down: usualDown, Metrics: pods, replicas: 2, load: jump, pending: 3, starting: 1},
		{Name: "the mildest policy", Min: 1, Max: 40, Up: &behavior{0, "Min", []policy{{"Pods", 3, 7}, {"Percent", 50, 15}}},
			Down: &behavior{5, "Min", []policy{{"Pods", 2, 7}, {"Percent", 20, 15}}}, Metrics: pods, replicas: 3, load: hill(200)},
		{Name: "slow to grow", Min: 1, Max: 40, Up: &behavior{7, "Max", []policy{{"Pods", 2, 5}, {"Percent", 30, 15}}}, Down: &behavior{15, "Max", []policy{{"Percent", 25, 7}, {"Pods", 1, 3}}},
			Metrics: pods, replicas: 5, load: wandering, starting: 2},
		{Name: "a value of the fleet", Min: 1, Max: 25, Up: quick, Down: usualDown, Metrics: value, replicas: 3, load: wandering, starting: 2},
		{Name: "a mean per pod of a value of the fleet", Min: 1, Max: 25, Up: quick, Down: quick, Metrics: average, replicas: 3, load: wandering},
		{Name: "two metrics, one unknown for a while", Min: 2, Max: 25, Up: usualUp, Down: quick, Metrics: []target{pods[0], value[0]}, replicas: 4, load: swing, blind: [2]float64{30, 61}},
		{Name: "never shrinks", Min: 1, Max: 9, Up: usualUp, Down: &behavior{0, "Disabled", nil}, Metrics: pods, replicas: 2, load: hill(110), blind: [2]float64{50, 57}},
	}
}

// TestRecordHPA records what kube-controller-manager decides on series of metrics.
func TestRecordHPA(t *testing.T) {
	if *record == "" {
		t.Skip("-args -record FILE records the decisions of two minutes")
	}
	site.kill("kube-controller-manager")
	if err := site.start("kube-controller-manager", fmt.Sprintf("--horizontal-pod-autoscaler-sync-period=%ds", syncSeconds), "--concurrent-horizontal-pod-autoscaler-syncs=10",
		"--controllers=horizontal-pod-autoscaler-controller", "--kube-api-qps=500", "--kube-api-burst=500"); err != nil {
		t.Fatal(err)
	}
	defer func() {
		site.kill("kube-controller-manager")
		if err := site.start("kube-controller-manager"); err != nil {
			t.Error(err)
		}
	}()
	all := allSeries()
	server := serveMetrics(t)
	var ended sync.WaitGroup
	for i, a := range all {
		a.server = server
		ended.Go(func() { a.run(t, fmt.Sprintf("s%02d", i)) })
	}
	ended.Wait()
	version := struct{ GitVersion string }{}
	api(t, http.MethodGet, "/version", nil, &version)
	data, err := json.Marshal(map[string]any{"kubernetes": version.GitVersion, "series": all})
	if err != nil {
		t.Fatal(err)
	}
	data = bytes.ReplaceAll(data, []byte(`{"at_s"`), []byte("\n"+`{"at_s"`))
	data = append(bytes.ReplaceAll(data, []byte(`{"name"`), []byte("\n"+`{"name"`)), '\n')
	if err := os.WriteFile(*record, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

// run records the decisions of one series, whose objects bear a name.
func (a *autoscaled) run(t *testing.T, name string) {
	labels := map[string]any{"app": name}
	container := map[string]any{"name": "engine", "image": "localhost/pause:1"}
	spec := map[string]any{"replicas": a.replicas, "selector": map[string]any{"matchLabels": labels},
		"template": map[string]any{"metadata": map[string]any{"labels": labels}, "spec": map[string]any{"containers": []any{container}}}}
	api(t, http.MethodPost, "/apis/apps/v1/namespaces/default/deployments", map[string]any{"metadata": map[string]any{"name": name}, "spec": spec}, nil)
	asked := a.server.ask(name)
	a.follow(t, name, a.replicas, container)
	for _, p := range a.fleet {
		p.age = a.pending + a.starting
	}
	a.states(t)
	api(t, http.MethodPost, "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers", a.autoscaler(name), nil)
	var began time.Time
	for range decisions {
		var ask metricAsk
		select {
		case ask = <-asked:
		case <-time.After(time.Minute):
			t.Errorf("%s: no decision for a minute", a.Name)
			return
		}
		if began.IsZero() {
			began = time.Now()
		}
		s := a.see(time.Since(began).Seconds(), &ask)
		time.Sleep(syncSeconds * time.Second / 3)
		var scale struct{ Spec struct{ Replicas int } }
		api(t, http.MethodGet, "/apis/apps/v1/namespaces/default/deployments/"+name+"/scale", nil, &scale)
		s.Want = scale.Spec.Replicas
		a.Steps = append(a.Steps, s)
		a.follow(t, name, s.Want, container)
		a.states(t)
	}
	api(t, http.MethodDelete, "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers/"+name, nil, nil)
}

// autoscaler is the object that asks for what is recorded.
func (a *autoscaled) autoscaler(name string) map[string]any {
	rules := func(b *behavior) map[string]any {
		r := map[string]any{"stabilizationWindowSeconds": b.StabilizationSeconds, "selectPolicy": b.Select}
		var list []any
		for _, p := range b.Policies {
			list = append(list, map[string]any{"type": p.Type, "value": p.Value, "periodSeconds": p.PeriodSeconds})
		}
		if list != nil {
			r["policies"] = list
		}
		return r
	}
	var metrics []any
	for i, m := range a.Metrics {
		metric := map[string]any{"name": fmt.Sprintf("%s-%d", name, i)}
		quantity := fmt.Sprintf("%dm", int(math.Round(1000*m.Target)))
		switch m.Kind {
		case "pods":
			metrics = append(metrics, map[string]any{"type": "Pods", "pods": map[string]any{"metric": metric, "target": map[string]any{"type": "AverageValue", "averageValue": quantity}}})
		case "value":
			metrics = append(metrics, map[string]any{"type": "External", "external": map[string]any{"metric": metric, "target": map[string]any{"type": "Value", "value": quantity}}})
		case "average":
			metrics = append(metrics, map[string]any{"type": "External", "external": map[string]any{"metric": metric, "target": map[string]any{"type": "AverageValue", "averageValue": quantity}}})
		}
	}
	spec := map[string]any{"scaleTargetRef": map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": name}, "minReplicas": a.Min, "maxReplicas": a.Max, "metrics": metrics}
	if a.Up != nil {
		spec["behavior"] = map[string]any{"scaleUp": rules(a.Up), "scaleDown": rules(a.Down)}
	}
	return map[string]any{"metadata": map[string]any{"name": name}, "spec": spec}
}

// follow makes as many pods exist as are asked for, and all of them a step older.
func (a *autoscaled) follow(t *testing.T, name string, want int, container map[string]any) {
	for _, p := range a.fleet {
		p.age++
	}
	for len(a.fleet) > want {
		last := len(a.fleet) - 1
		api(t, http.MethodDelete, "/api/v1/namespaces/default/pods/"+a.fleet[last].name+"?gracePeriodSeconds=0", nil, nil)
		a.fleet = a.fleet[:last]
	}
	for len(a.fleet) < want {
		p := &madeUpPod{name: fmt.Sprintf("%s-%d", name, a.made)}
		a.made++
		api(t, http.MethodPost, "/api/v1/namespaces/default/pods", map[string]any{"metadata": map[string]any{"name": p.name, "labels": map[string]any{"app": name}},
			"spec": map[string]any{"containers": []any{container}, "schedulerName": "none"}}, nil)
		a.fleet = append(a.fleet, p)
	}
	api(t, http.MethodPatch, "/apis/apps/v1/namespaces/default/deployments/"+name+"/status", map[string]any{"status": map[string]any{"replicas": len(a.fleet)}}, nil)
}

// states has the pods be what they are at their age.
func (a *autoscaled) states(t *testing.T) {
	for _, p := range a.fleet {
		phase, ready := "Running", "True"
		switch {
		case p.age < a.pending:
			phase, ready = "Pending", "False"
		case p.age < a.pending+a.starting:
			ready = "False"
		}
		api(t, http.MethodPatch, "/api/v1/namespaces/default/pods/"+p.name+"/status", map[string]any{"status": map[string]any{"phase": phase,
			"conditions": []any{map[string]any{"type": "Ready", "status": ready}}}}, nil)
	}
}

// see notes what the controller sees at a decision, and answers what it asks for.
func (a *autoscaled) see(second float64, ask *metricAsk) *step {
	s := &step{At: math.Round(1000*second) / 1000, Asked: len(a.fleet)}
	for _, p := range a.fleet {
		switch {
		case p.age < a.pending:
			s.Unready++
		case p.age < a.pending+a.starting:
			s.Missing++
		default:
			s.Ready++
		}
	}
	load := a.load(second)
	share := math.Round(1000*load/float64(max(s.Ready, 1))) / 1000
	blind := second > a.blind[0] && second < a.blind[1]
	answers := make([]map[string]float64, len(a.Metrics))
	for i, m := range a.Metrics {
		answers[i] = map[string]float64{}
		switch {
		case blind && i == 0:
		case m.Kind == "pods":
			for j, p := range a.fleet {
				if p.age >= a.pending+a.starting {
					v := math.Round(share*(1000+20*float64(j%5))) / 1000
					answers[i][p.name] = v
					s.Values = append(s.Values, v)
				}
			}
		default:
			v := math.Round(1000*load) / 1000
			if m.Kind == "value" {
				v = math.Round(1000*25*share) / 1000
			}
			answers[i][""], s.Value = v, &v
		}
	}
	if blind && a.Metrics[0].Kind == "pods" {
		s.Missing += s.Ready
	}
	ask.answer <- answers
	return s
}

// metricAsk waits for the values of the metrics of a series, by their numbers.
type metricAsk struct{ answer chan []map[string]float64 }

// metricServer is an API server for metrics: custom ones of pods, and external ones.
type metricServer struct {
	mutex sync.Mutex
	asks  map[string]chan metricAsk
	last  map[string][]map[string]float64
}

func (m *metricServer) ask(series string) chan metricAsk {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.asks[series] = make(chan metricAsk)
	return m.asks[series]
}

// serveMetrics starts a metrics server and registers it.
func serveMetrics(t *testing.T) *metricServer {
	m := &metricServer{asks: map[string]chan metricAsk{}, last: map[string][]map[string]float64{}}
	server := httptest.NewTLSServer(m)
	t.Cleanup(server.Close)
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	var number int
	fmt.Sscan(port, &number)
	api(t, http.MethodPost, "/api/v1/namespaces/default/services", map[string]any{"metadata": map[string]any{"name": "metrics"},
		"spec": map[string]any{"type": "ExternalName", "externalName": "localhost", "ports": []any{map[string]any{"port": number}}}}, nil)
	for _, s := range [][2]string{{"custom.metrics.k8s.io", "v1beta2"}, {"external.metrics.k8s.io", "v1beta1"}} {
		name := s[1] + "." + s[0]
		api(t, http.MethodPost, "/apis/apiregistration.k8s.io/v1/apiservices", map[string]any{"metadata": map[string]any{"name": name},
			"spec": map[string]any{"group": s[0], "version": s[1], "insecureSkipTLSVerify": true, "groupPriorityMinimum": 100, "versionPriority": 100,
				"service": map[string]any{"namespace": "default", "name": "metrics", "port": number}}}, nil)
		kubectl(t, "", "wait", "--for=condition=Available", "apiservice/"+name, "--timeout=30s")
	}
	return m
}

// ServeHTTP answers discovery, and queries of metrics called SERIES-NUMBER.
func (m *metricServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	if len(parts) < 3 {
		http.NotFound(w, r)
		return
	}
	groupVersion := parts[1] + "/" + parts[2]
	if len(parts) == 3 {
		resources := []any{map[string]any{"name": "pods/any", "namespaced": true, "kind": "MetricValueList", "verbs": []string{"get"}}}
		json.NewEncoder(w).Encode(map[string]any{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": groupVersion, "resources": resources})
		return
	}
	name := path.Base(r.URL.Path)
	series, number, _ := strings.Cut(name, "-")
	i := int(number[0] - '0')
	m.mutex.Lock()
	asks := m.asks[series]
	m.mutex.Unlock()
	if i == 0 {
		ask := metricAsk{make(chan []map[string]float64, 1)}
		select {
		case asks <- ask:
		case <-r.Context().Done():
			return
		}
		answers := <-ask.answer
		m.mutex.Lock()
		m.last[series] = answers
		m.mutex.Unlock()
	}
	m.mutex.Lock()
	values := m.last[series][i]
	m.mutex.Unlock()
	now := time.Now().UTC().Format(time.RFC3339)
	items := []any{}
	for pod, v := range values {
		quantity := fmt.Sprintf("%dm", int(math.Round(1000*v)))
		if pod == "" {
			items = append(items, map[string]any{"metricName": name, "timestamp": now, "value": quantity})
			continue
		}
		items = append(items, map[string]any{"describedObject": map[string]any{"kind": "Pod", "namespace": "default", "name": pod, "apiVersion": "v1"},
			"metric": map[string]any{"name": name}, "timestamp": now, "value": quantity})
	}
	kind := "ExternalMetricValueList"
	if strings.HasPrefix(groupVersion, "custom") {
		kind = "MetricValueList"
	}
	json.NewEncoder(w).Encode(map[string]any{"kind": kind, "apiVersion": groupVersion, "metadata": map[string]any{}, "items": items})
}

// api calls the API as the administrator.
func api(t *testing.T, method, path string, body, into any) {
	t.Helper()
	data, err := json.Marshal(body)
	if err != nil {
		t.Error(err)
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, "https://127.0.0.1:6443"+path, bytes.NewReader(data))
	if err != nil {
		t.Error(err)
		return
	}
	request.Header.Set("Authorization", "Bearer admin")
	request.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		request.Header.Set("Content-Type", "application/strategic-merge-patch+json")
	}
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		t.Error(err)
		return
	}
	defer response.Body.Close()
	said, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode >= 300 {
		err = fmt.Errorf("%s", said)
	}
	if err == nil && into != nil {
		err = json.Unmarshal(said, into)
	}
	if err != nil {
		t.Errorf("%s %s: %v", method, path, err)
	}
}
