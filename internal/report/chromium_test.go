//go:build browser

package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"planner/internal/evidence/must"
)

// chromium is a headless browser with one page, driven over a pair of pipes by the
// DevTools protocol: messages of JSON that end with a zero byte.
type chromium struct {
	t       *testing.T
	to      io.Writer
	said    chan message
	session string
	id      int
	// complaints are the errors and warnings of the page, requests the addresses that it
	// asked for.
	complaints, requests []string
}

type message struct {
	ID     int             `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

// browse starts a browser; the test is skipped where none is installed.
func browse(t *testing.T) *chromium {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("SKIPPED: no chromium is installed (Debian: apt-get install chromium): the page is not tried in a browser")
	}
	in, out := must2(os.Pipe()), must2(os.Pipe())
	cmd := exec.Command(path, "--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--user-data-dir="+t.TempDir(), "about:blank")
	cmd.ExtraFiles = []*os.File{in[0], out[1]}
	must.OK(cmd.Start())
	c := &chromium{t: t, to: in[1], said: make(chan message, 1000)}
	in[0].Close()
	out[1].Close()
	go c.listen(out[0])
	t.Cleanup(func() {
		c.session = ""
		c.call("Browser.close", nil)
		if err := cmd.Wait(); err != nil {
			t.Log(err)
		}
	})
	var target struct{ TargetID, SessionID string }
	c.ask("Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	c.ask("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &target)
	c.session = target.SessionID
	for _, domain := range []string{"Page", "Runtime", "Log", "Network"} {
		c.call(domain+".enable", nil)
	}
	return c
}

func must2[T any](a, b T, err error) [2]T {
	if err != nil {
		panic(err)
	}
	return [2]T{a, b}
}

func (c *chromium) listen(from io.Reader) {
	defer close(c.said)
	var buffer bytes.Buffer
	chunk := make([]byte, 1<<16)
	for {
		n, err := from.Read(chunk)
		buffer.Write(chunk[:n])
		for bytes.IndexByte(buffer.Bytes(), 0) >= 0 {
			line, _ := buffer.ReadBytes(0)
			var m message
			if json.Unmarshal(line[:len(line)-1], &m) == nil {
				c.said <- m
			}
		}
		if err != nil {
			return
		}
	}
}

// call sends a command and returns its result.
func (c *chromium) call(method string, params any) json.RawMessage {
	c.t.Helper()
	c.id++
	m := map[string]any{"id": c.id, "method": method}
	if params != nil {
		m["params"] = params
	}
	if c.session != "" {
		m["sessionId"] = c.session
	}
	data := must.Get(json.Marshal(m))
	must.Get(c.to.Write(append(data, 0)))
	return c.await(func(m message) bool { return m.ID == c.id }).Result
}

func (c *chromium) ask(method string, params, result any) {
	c.t.Helper()
	if err := json.Unmarshal(c.call(method, params), result); err != nil {
		c.t.Fatalf("%s: %v", method, err)
	}
}

// await reads messages up to one, and notes what the page complains of.
func (c *chromium) await(this func(message) bool) message {
	c.t.Helper()
	limit := time.After(30 * time.Second)
	for {
		select {
		case m, open := <-c.said:
			switch {
			case !open:
				c.t.Fatal("the browser ended")
			case m.Error != nil:
				c.t.Fatalf("the browser: %s", m.Error)
			case m.Method == "Runtime.consoleAPICalled", m.Method == "Runtime.exceptionThrown", m.Method == "Log.entryAdded":
				c.complaints = append(c.complaints, string(m.Params))
			case m.Method == "Network.requestWillBeSent":
				var sent struct{ Request struct{ URL string } }
				must.OK(json.Unmarshal(m.Params, &sent))
				c.requests = append(c.requests, sent.Request.URL)
			}
			if this(m) {
				return m
			}
		case <-limit:
			c.t.Fatal("the browser does not answer")
		}
	}
}

// open shows a file at a width, in a colour scheme.
func (c *chromium) open(path string, width int, scheme string) {
	c.t.Helper()
	c.complaints, c.requests = nil, nil
	c.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600})
	c.call("Emulation.setEmulatedMedia", map[string]any{"features": []any{map[string]any{"name": "prefers-color-scheme", "value": scheme}}})
	c.call("Page.navigate", map[string]any{"url": "file://" + path})
	c.await(func(m message) bool { return m.Method == "Page.loadEventFired" })
}

// eval runs a script in the page, whose result is a value or a promise of one.
func eval[T any](c *chromium, script string) T {
	c.t.Helper()
	var out struct {
		Result           struct{ Value T }
		ExceptionDetails json.RawMessage
	}
	c.ask("Runtime.evaluate", map[string]any{"expression": script, "returnByValue": true, "awaitPromise": true}, &out)
	if out.ExceptionDetails != nil {
		c.t.Fatalf("%s: %s", script, out.ExceptionDetails)
	}
	return out.Result.Value
}

// press presses a key.
func (c *chromium) press(key string) {
	c.t.Helper()
	for _, kind := range []string{"keyDown", "keyUp"} {
		c.call("Input.dispatchKeyEvent", map[string]any{"type": kind, "key": key, "code": key})
	}
}

// picture keeps a picture of the page under a name where PLANNER_PICTURES names a folder.
func (c *chromium) picture(name string) {
	c.t.Helper()
	folder := os.Getenv("PLANNER_PICTURES")
	if folder == "" {
		return
	}
	var shot struct{ Data []byte }
	c.ask("Page.captureScreenshot", map[string]any{"captureBeyondViewport": true}, &shot)
	must.OK(os.WriteFile(fmt.Sprintf("%s/%s.png", folder, name), shot.Data, 0o600))
}

// sheets is on how many sheets of A4 the page prints.
func (c *chromium) sheets() int {
	c.t.Helper()
	var pdf struct{ Data []byte }
	c.ask("Page.printToPDF", map[string]any{"preferCSSPageSize": true}, &pdf)
	text := strings.ReplaceAll(string(pdf.Data), "/Type /Pages", "")
	if folder := os.Getenv("PLANNER_PICTURES"); folder != "" {
		must.OK(os.WriteFile(folder+"/page.pdf", pdf.Data, 0o600))
	}
	return strings.Count(text, "/Type /Page")
}
