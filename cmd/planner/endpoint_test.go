package main

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// seenRequest is what a server saw of a request.
type seenRequest struct {
	path, protocol, key, route string
	stream                     bool
}

// secureServer is a server with a certificate of its own that answers as OpenAI's
// do, and writes that certificate to a file.
func secureServer(t *testing.T, http2 bool) (url, authority string, seen func() []seenRequest) {
	t.Helper()
	var mu sync.Mutex
	var all []seenRequest
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		stream := strings.Contains(string(body), `"stream":true`)
		mu.Lock()
		all = append(all, seenRequest{r.URL.Path, r.Proto, r.Header.Get("Authorization"), r.Header.Get("X-Route"), stream})
		mu.Unlock()
		switch {
		case r.URL.Path == "/v1/models":
			io.WriteString(w, `{"object":"list","data":[{"id":"m","owned_by":"somebody"}]}`)
		case !strings.HasSuffix(r.URL.Path, "completions"):
			http.NotFound(w, r)
		default:
			complete(w, strings.HasSuffix(r.URL.Path, "chat/completions"), stream)
		}
	}))
	s.EnableHTTP2 = http2
	s.StartTLS()
	t.Cleanup(s.Close)
	authority = filepath.Join(t.TempDir(), "authority.pem")
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	put(t, authority, block)
	return s.URL, authority, func() []seenRequest {
		mu.Lock()
		defer mu.Unlock()
		return append([]seenRequest{}, all...)
	}
}

// complete answers with three tokens.
func complete(w http.ResponseWriter, chat, stream bool) {
	const usage = `"usage":{"prompt_tokens":12,"completion_tokens":3,"total_tokens":15}`
	if !stream {
		choice := `{"index":0,"text":" a b c","finish_reason":"length"}`
		if chat {
			choice = `{"index":0,"message":{"role":"assistant","content":" a b c"},"finish_reason":"length"}`
		}
		fmt.Fprintf(w, `{"choices":[%s],%s}`, choice, usage)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for range 3 {
		choice := `{"index":0,"text":" a"}`
		if chat {
			choice = `{"index":0,"delta":{"content":" a"}}`
		}
		fmt.Fprintf(w, "data: {\"choices\":[%s]}\n\n", choice)
		w.(http.Flusher).Flush()
	}
	fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"finish_reason\":\"length\"}]}\n\ndata: {\"choices\":[],%s}\n\ndata: [DONE]\n\n", usage)
}

// TestSecureEndpoint: TLS, HTTP/2 where it is offered, headers, the API key and
// the kind of request work from a file and from the command line, and the key is
// in the header of requests and nowhere else.
func TestSecureEndpoint(t *testing.T) {
	for http2, api := range map[bool]string{true: "completions", false: "chat"} {
		t.Run(fmt.Sprintf("http2=%v/%s", http2, api), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			url, authority, seen := secureServer(t, http2)
			file := fmt.Sprintf("[engine]\nkind = \"attach\"\nurl = %q\napi = %q\nstream = %v\napi_key_env = \"TEST_KEY\"\nheaders = { \"X-Route\" = \"a b\" }\n"+
				"[workload]\nprompt = { dist = \"fixed\", value = 12 }\noutput = { dist = \"fixed\", value = 3 }\n", url, api, http2)
			put(t, filepath.Join(dir, "c.toml"), file)
			load := []string{"--concurrency", "2", "--requests", "6", "--json"}
			flags := append(load, "--url", url+"/v1", "--api", api, "--workload", "chat", "--set", "engine.api_key_env=TEST_KEY", "--set", "engine.stream="+fmt.Sprint(http2),
				"--set", `engine.headers={"X-Route"="a b"}`, "--set", `workload.prompt={dist="fixed",value=12}`, "--set", `workload.output={dist="fixed",value=3}`)
			for _, args := range [][]string{append([]string{"bench", "c.toml"}, load...), append([]string{"bench"}, flags...)} {
				cmd := planner(t, dir, args...)
				cmd.Env = append(os.Environ(), "SSL_CERT_FILE="+authority, "TEST_KEY="+canaryKey)
				if m := measuredBy(t, cmd); m.Requests != 6 || m.Failed != 0 || m.E2E.N != 6 || (m.TTFT.N == 6) != http2 {
					t.Errorf("%v: %+v", args, m)
				}
			}
			checkSeen(t, seen(), api, http2)
			untoldIn(t, dir)
		})
	}
}

// checkSeen checks what the server saw of two runs.
func checkSeen(t *testing.T, all []seenRequest, api string, http2 bool) {
	t.Helper()
	protocol, path := "HTTP/1.1", "/v1/completions"
	if http2 {
		protocol = "HTTP/2.0"
	}
	if api == "chat" {
		path = "/v1/chat/completions"
	}
	load := 0
	for _, r := range all {
		if r.protocol != protocol || r.key != "Bearer "+canaryKey || r.route != "a b" {
			t.Errorf("the server saw %+v", r)
		}
		if r.path == path && r.stream == http2 {
			load++
		}
	}
	// A request that is not streamed looks as those by which texts are measured.
	if load < 12 || http2 && load > 12 {
		t.Errorf("%d requests of %s, want 12: %+v", load, path, all)
	}
}

// TestEndpointRefusals: what cannot work is said before anything is sent or
// written; a certificate that nobody vouches for is no usage error.
func TestEndpointRefusals(t *testing.T) {
	url, _, _ := secureServer(t, true)
	bench := "bench --workload chat --concurrency 1 --requests 1 --url " + url
	for want, c := range map[string]struct {
		code int
		args string
	}{
		"NOT_SET_KEY: no API key":   {2, bench + " --set engine.api_key_env=NOT_SET_KEY"},
		"TO_START_KEY: no API key":  {2, "search --model llama-3.1-8b --gpu B200 --workload chat --slo ttft.p99=1s --set engine.kind=vllm --set engine.api_key_env=TO_START_KEY"},
		"unknown engine dialect":    {2, bench + " --dialect llvm"},
		"signed by unknown authori": {1, bench},
	} {
		dir := t.TempDir()
		out, err := planner(t, dir, strings.Fields(c.args)...).CombinedOutput()
		if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("exit status %d", c.code)) || !strings.Contains(string(out), want) {
			t.Errorf("%v: %v, want exit code %d and %q\n%s", c.args, err, c.code, want, out)
		}
		if runFolder(t, dir) != "" && c.code == 2 {
			t.Errorf("%v: a run folder was made", c.args)
		}
	}
}

// TestVocabularyOfModel: prompts of token ids hold none that the configured model has not.
func TestVocabularyOfModel(t *testing.T) {
	t.Parallel()
	var most atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct{ Prompt []int64 }
		if json.NewDecoder(r.Body).Decode(&body) == nil {
			most.Store(max(most.Load(), slices.Max(append(body.Prompt, 0))))
		}
		complete(w, false, true)
	}))
	defer s.Close()
	dir := t.TempDir()
	shape := `{"architectures":["LlamaForCausalLM"],"model_type":"llama","torch_dtype":"bfloat16","hidden_size":256,"intermediate_size":688,"num_hidden_layers":4,
"num_attention_heads":4,"num_key_value_heads":4,"vocab_size":2048,"max_position_embeddings":4096}`
	file := fmt.Sprintf("[model]\nconfig = \"config.json\"\n[engine]\nkind = \"attach\"\nurl = %q\n"+
		"[workload]\nprompt = { dist = \"fixed\", value = 200 }\noutput = { dist = \"fixed\", value = 3 }\n", s.URL)
	for name, text := range map[string]string{"config.json": shape, "c.toml": file} {
		put(t, filepath.Join(dir, name), text)
	}
	m := measuredBy(t, planner(t, dir, "bench", "c.toml", "--model", "m", "--dialect", "vllm", "--concurrency", "2", "--requests", "6", "--json"))
	if m.Failed > 0 || most.Load() < 1500 || most.Load() >= 2048 {
		t.Errorf("%d failed, ids up to %d of a vocabulary of 2048", m.Failed, most.Load())
	}
}
