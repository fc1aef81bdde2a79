package main

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
)

// The keys that a server is given, and that nothing of planner may tell again: not even
// the beginning of one.
const (
	canaryKey   = `canary/one-abcdefghijklmnop`
	canaryOther = `canary/two-qrstuvwxyz012345`
	canaryPart  = "canary/"
)

const canaryConfig = `
[demand]
rate = 4
[slo]
ttft = { p90 = "2s" }
[engine]
kind = "attach"
url = %q
api_key_env = "SERVER_KEY"
headers = { X-Auth = "{env:OTHER_KEY}" }
[knobs]
max_model_len = 128
[workload]
arrivals = "constant"
prompt = { dist = "fixed", value = 20 }
output = { dist = "fixed", value = 4 }
timeout = "2s"
[search]
warm_up = "100ms"
trial = "400ms"
precision = 0.5
budget = "2s"
`

// echo answers with the keys that it was given in every place that a server has.
func echo(how string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		keys := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ") + " " + r.Header.Get("X-Auth")
		w.Header().Set("X-Keys", keys)
		io.Copy(io.Discard, r.Body)
		switch {
		case how == "redirects":
			http.Redirect(w, r, "http://"+r.Host+"/"+strings.ReplaceAll(keys, " ", "/")+"?key="+keys, http.StatusTemporaryRedirect)
		case how == "fails" && r.URL.Path != "/health":
			http.Error(w, strings.Repeat("x", 130)+" wrong key "+keys, http.StatusUnauthorized)
		case r.URL.Path == "/v1/models":
			fmt.Fprintf(w, `{"data":[{"id":%q,"owned_by":%q}]}`, keys, keys)
		case r.URL.Path == "/version":
			fmt.Fprintf(w, `{"version":%q}`, keys)
		case r.URL.Path == "/metrics":
			fmt.Fprintf(w, "vllm:num_requests_running{key=%q} 1\nvllm:cache_config_info{enable_prefix_caching=%q} 1\n", keys, keys)
		case strings.HasSuffix(r.URL.Path, "completions"):
			w.Header().Set("Content-Type", "text/event-stream")
			for i := range 4 {
				fmt.Fprintf(w, "data: {\"id\":%q,\"choices\":[{\"index\":0,\"text\":%q}]}\n\n", keys, keys)
				if i == 1 && time.Now().UnixNano()%3 == 0 {
					fmt.Fprintf(w, "data: {\"error\":{\"message\":\"bad key %s\"}}\n\n", keys)
				}
			}
			fmt.Fprint(w, "data: {\"choices\":[{\"index\":0,\"text\":\"\",\"finish_reason\":\"length\"}],\"usage\":{\"prompt_tokens\":20,\"completion_tokens\":4}}\n\ndata: [DONE]\n\n")
		default:
			fmt.Fprintf(w, "{%q: %q}", keys, keys)
		}
	})
}

// TestKeysAreNotTold: whatever a server says, its keys are in no file, report or message.
func TestKeysAreNotTold(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"echoes", "fails", "redirects"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(echo(how))
			t.Cleanup(server.Close)
			dir := t.TempDir()
			for _, name := range []string{"p.toml", "q.toml"} {
				put(t, filepath.Join(dir, name), fmt.Appendf(nil, canaryConfig, server.URL))
			}
			for _, args := range []string{
				"bench p.toml --rate 10 --duration 500ms --warm-up 100ms -o bench", "bench p.toml --concurrency 2 --requests 6 --json --verbose",
				"sweep p.toml --rates 10 -o sweep", "search p.toml -o search --verbose", "plan p.toml -o plan",
				"compare p.toml q.toml --rate 10 --rounds 2 --duration 500ms --warm-up 100ms -o compare", "doctor p.toml", "plan p.toml --print-config", "sweep p.toml --rates 10 --dry-run",
				"report bench", "report bench --json", "report sweep --format html", "report search --format csv", "resume bench", "resume sweep", "resume search",
				"resume plan", "report compare", "fit bench sweep --slo ttft.p90=2s --rate 4", "calibrate bench",
			} {
				cmd := planner(t, dir, strings.Fields(args)...)
				cmd.Env = append(os.Environ(), "SERVER_KEY="+canaryKey, "OTHER_KEY="+canaryOther)
				out, err := cmd.CombinedOutput()
				if untold(t, args, out); err != nil && cmd.ProcessState.ExitCode() > exitUndecided {
					t.Errorf("%s: %v: %s", args, err, out)
				}
			}
			untoldIn(t, dir)
			if _, err := os.Stat(filepath.Join(dir, "bench", "journal.jsonl")); how == "echoes" && err != nil {
				t.Error("nothing was measured:", err)
			}
		})
	}
}

// TestUnaskedKeysAreNotTold: what a server says on a connection that nobody has asked anything on is nobody's message.
func TestUnaskedKeysAreNotTold(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		c, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		const answer = `{"choices":[{"text":"a"}],"data":[{"id":"m"}],"usage":{"prompt_tokens":20,"completion_tokens":1}}`
		fmt.Fprintf(buffered, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s%s", len(answer), answer, r.Header.Get("Authorization"))
		buffered.Flush()
		time.Sleep(100 * time.Millisecond)
	}))
	t.Cleanup(server.Close)
	dir := t.TempDir()
	put(t, filepath.Join(dir, "p.toml"), fmt.Appendf(nil, canaryConfig, server.URL))
	args := "bench p.toml --concurrency 2 --requests 6"
	cmd := planner(t, dir, strings.Fields(args)...)
	cmd.Env = append(os.Environ(), "SERVER_KEY="+canaryKey, "OTHER_KEY="+canaryOther)
	out, _ := cmd.CombinedOutput()
	untold(t, args, out)
	if bytes.Contains(out, []byte("Unsolicited")) {
		t.Errorf("%s", out)
	}
	untoldIn(t, dir)
}

// TestKeysOfEnginesAreNotTold: what an engine is started with that is secret is in the
// arguments and the environment of that engine alone.
func TestKeysOfEnginesAreNotTold(t *testing.T) {
	t.Parallel()
	l := newLive(t, "", `kind = "vllm"`, `kind = "command"
api_key_env = "SERVER_KEY"
command = ["sh", "-c", "echo my key is $SERVER_KEY and $0; exec \"$@\"", "{env:OTHER_KEY}", "vllm", "serve", "fake",
	"--port", "{port}", "--max-num-seqs", "{max_num_seqs}", "--served-model-name", "fake", "--enable-prefix-caching"]`,
		unmodelled[2], unmodelled[3], "env = {", `env = { GIVEN = "{env:OTHER_KEY}",`)
	l.env = append(l.env, "SERVER_KEY="+canaryKey, "OTHER_KEY="+canaryOther)
	cmd := l.command(t, "bench", "p.toml", "--set", "knobs.max_num_seqs=16", "--rate", "10", "--duration", "1500ms", "--warm-up", "100ms", "-o", "run", "--verbose")
	guards := 0
	out, err := watched(cmd, 20*time.Millisecond, func() { guards += guardsTell(t, cmd) })
	if err != nil && cmd.ProcessState.ExitCode() != exitUndecided {
		t.Errorf("%v: %s", err, out)
	}
	if guards == 0 {
		t.Error("no guard was seen")
	}
	untold(t, "bench", []byte(out))
	untoldIn(t, l.dir)
	log := read(filepath.Join(l.dir, "run", "engine", "0001.log"))
	if !strings.Contains(log, "my key is *** and ***") {
		t.Errorf("the engine was not given its keys: %.200s", log)
	}
}

// guardsTell checks the arguments and the environment of the children of a process, which
// are guards, and counts them.
func guardsTell(t *testing.T, cmd *exec.Cmd) (guards int) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		stat, _ := os.ReadFile(path) // nothing of one that has ended
		_, rest, _ := strings.Cut(string(stat), ") ")
		if fields := strings.Fields(rest); len(fields) < 2 || fields[1] != strconv.Itoa(cmd.Process.Pid) {
			continue
		}
		told, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline"))
		if !strings.Contains(string(told), "guard") {
			continue // not yet, or a tool that is asked for GPUs
		}
		guards++
		environ, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "environ"))
		untold(t, "the guard", append(told, environ...))
	}
	return guards
}

func untold(t *testing.T, what string, text []byte) {
	t.Helper()
	if i := bytes.Index(text, []byte(canaryPart)); i >= 0 {
		t.Errorf("%s tells a key: %q", what, text[max(i-80, 0):min(i+80, len(text))])
	}
}

// untoldIn looks into all files below a folder.
func untoldIn(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if err == nil && filepath.Ext(path) == ".zst" {
			z, problem := zstd.NewReader(nil)
			if problem != nil {
				return problem
			}
			defer z.Close()
			data, err = z.DecodeAll(data, nil)
		}
		untold(t, path, data)
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
