package serve

import (
	"cmp"
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"planner/internal/evidence/must"
)

// read is what a foreign client made of a reply.
type read struct {
	Text, Reason       string
	Events             int
	Prompt, Completion int
}

// TestOpenAIClients lets the official clients read the server. They are installed
// with "pip install openai" and "npm install openai"; PLANNER_PYTHON names another
// python3, NODE_PATH the folder node_modules.
func TestOpenAIClients(t *testing.T) {
	for _, c := range []struct {
		name          string
		probe, script []string
	}{
		{"python", []string{cmp.Or(os.Getenv("PLANNER_PYTHON"), "python3"), "-c", "import openai"}, []string{"testdata/client.py"}},
		{"node", []string{"node", "-e", "require('openai')"}, []string{"testdata/client.js"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if out, err := exec.Command(c.probe[0], c.probe[1:]...).CombinedOutput(); err != nil {
				last := strings.Split(strings.TrimSpace(string(out)), "\n")
				t.Skipf("NOT CHECKED: the OpenAI client for %s is not installed: %v: %s", c.name, err, last[len(last)-1])
			}
			r := run(t, &Simulator{Model: "m", Fixed: Fixed{TTFT: constant(5 * time.Millisecond), TPOT: constant(time.Millisecond)}})
			out, err := exec.Command(c.probe[0], append(c.script, r.url)...).CombinedOutput()
			if err != nil {
				t.Fatalf("%v:\n%s", err, out)
			}
			checkRead(t, out)
		})
	}
}

func checkRead(t *testing.T, out []byte) {
	t.Helper()
	var got struct {
		Models                          []string
		ChatStream, Stream, Chat, Whole read
		Errors                          []string
	}
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatalf("%v:\n%s", err, out)
	}
	chat := replyTo(`{"messages":[{"role":"user","content":"hello there"}],"max_tokens":6,"ignore_eos":true}`, true)
	text := replyTo(`{"prompt":[1,2,3],"max_tokens":5,"ignore_eos":true}`, false)
	want := got
	want.Models = []string{"m"}
	want.ChatStream = read{chat, "length", 7, 11, 6} // an event for the role
	want.Stream = read{text, "length", 5, 3, 5}
	want.Chat = read{Text: chat, Reason: "length", Completion: 6}
	want.Whole = read{Text: text, Reason: "length", Completion: 5}
	if !slices.Equal(got.Models, want.Models) || got.ChatStream != want.ChatStream || got.Stream != want.Stream || got.Chat != want.Chat || got.Whole != want.Whole {
		t.Errorf("read %+v\nwant %+v", got, want)
	}
	if errs := []string{"NotFoundError", "BadRequestError", "RateLimitError", "APIError"}; !slices.Equal(got.Errors, errs) {
		t.Errorf("errors %v, want %v", got.Errors, errs)
	}
}

// replyTo is the text of the reply to a request.
func replyTo(body string, chat bool) string {
	s := Simulator{Model: "m", MaxModelLen: 1000, reply: 512}
	c := must.Get(s.parseRequest([]byte(body), chat))
	var text []byte
	for k := range c.output {
		text = appendWord(text, c.tokenID(k))
	}
	return string(text)
}

// TestCurl: curl reads a stream to its end.
func TestCurl(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("NOT CHECKED: curl is not installed")
	}
	r := run(t, quick())
	out, err := exec.Command("curl", "-sSN", r.url+"/v1/completions", "-H", "Content-Type: application/json", "-d", `{"prompt":"x","max_tokens":3,"stream":true}`).CombinedOutput()
	all, done := events(t, string(out))
	if err != nil || !done || len(all) != 3 {
		t.Errorf("%v, %d events:\n%s", err, len(all), out)
	}
}
