package secret

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"planner/internal/evidence/must"
)

func TestNames(t *testing.T) {
	for name, want := range map[string]bool{
		"HF_TOKEN": true, "DB_PASS": true, "VLLM_API_KEY": true, "AWS_SECRET_ACCESS_KEY": true, "MYSQL_PWD": true, "token": true, "NPM_AUTH": true,
		"pwd": true, "OLDPWD": false, "TOKENIZERS_PARALLELISM": false, "MAX_TOKENS": false, "KEYBOARD": false, "PATH": false, "COMPASS": false,
	} {
		if got := Variable(name, "canary-value"); got != want {
			t.Errorf("variable %s: %v", name, got)
		}
	}
	if Variable("PWD", "/srv/models") || !Variable("PWD", "canary-value") {
		t.Error("the working directory is a secret, or a password is none")
	}
	for name, want := range map[string]bool{
		"X-Auth": true, "Authorization": true, "X-Auth-Key": true, "api-key": true, "X-API-Key": true, "Cookie": true, "X-Access-Token": true, "x_auth": true,
		"X-Author-Name": false, "X-Request-Id": false, "Accept": false, "X-Tenant": false,
	} {
		if got := Header(name, "canary-value"); got != want {
			t.Errorf("header %s: %v", name, got)
		}
	}
	for _, value := range []string{"", "true", "8", "10ms", "0.5", "{env:KEY}", "Bearer {env:KEY}", "$KEY", "auto"} {
		if Variable("X_TOKEN", value) && value != "Bearer {env:KEY}" {
			t.Errorf("%q is taken for a secret", value)
		}
	}
}

func TestArguments(t *testing.T) {
	for line, want := range map[string]string{
		"vllm serve m --api-key canary":                      "canary",
		"vllm serve m --api-key=canary --port 80":            "--api-key=canary",
		"x --token canary --hf-token canary2":                "canary canary2",
		"x --hf_token canary -token canary3":                 "canary canary3",
		"x --vllm-api-key canary":                            "canary",
		"env HF_TOKEN=canary DB_PASS=canary2 x":              "HF_TOKEN=canary DB_PASS=canary2",
		"x sk-abcdefabcdefabcdefabcd http://me:canary@host/": "sk-abcdefabcdefabcdefabcd http://me:canary@host/",
		"x --model hf-internal-testing/tiny-random-llama":    "",
		"x --token 10ms --max-tokens 5 --tokenizer abcde":    "",
		"x --api-key {env:KEY} --api-key=$KEY --password":    "",
		"x --token --verbose --bos-token canary":             "",
	} {
		args := strings.Fields(line)
		var found []string
		for i, is := range Arguments(args) {
			if is {
				found = append(found, args[i])
			}
		}
		if got := strings.Join(found, " "); got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
	for command, want := range map[string]bool{
		"exec vllm serve m --api-key canary": true, "HF_TOKEN='canary' exec vllm": true, "exec vllm --api-key \"$KEY\"": false, "exec vllm --port 80": false,
	} {
		if got := Arguments([]string{"sh", "-c", command}); slices.Contains(got, true) != want {
			t.Errorf("%s: %v", command, got)
		}
	}
}

const canary = `ca/na"ry<1>`

func TestHide(t *testing.T) {
	s := In([]string{"NAMED=" + canary, "OTHER_TOKEN=othervalue", "SHORT_TOKEN=abc", "HOME=/home/me"}, "NAMED")
	for in, want := range map[string]string{
		"say " + canary + " again":                 "say *** again",
		`{"key":"ca/na\"ry\u003c1\u003e"}`:         `{"key":"***"}`,
		`{"key":"ca\/na\"ry\u003c1\u003e"}`:        `{"key":"***"}`,
		"key=ca%2Fna%22ry%3C1%3E&":                 "key=***&",
		"ca/na&#34;ry&lt;1&gt;":                    "***",
		"cut at ca/na\"ry":                         "cut at ***",
		"cut at ca/na\"ry...":                      "cut at ***...",
		"othervalue" + canary + "othervalue":       "*********",
		"abc and /home/me stay, and so does ca/na": "abc and /home/me stay, and so does ca/na",
	} {
		if got := s.Hide(in); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
	err := s.Error(&fs.PathError{Op: "open", Path: canary, Err: fs.ErrNotExist})
	if err.Error() != "open ***: file does not exist" || !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if s.Error(nil) != nil || s.Error(fs.ErrExist) != fs.ErrExist {
		t.Error("an error without a secret is another one")
	}
}

// However writes cut a text, nothing of a secret gets through.
func FuzzWriter(f *testing.F) {
	s := In([]string{"KEY=canary-canary-1"}, "KEY")
	f.Add("log canary-canary-canary-1 and on\n", uint8(5))
	f.Add("canary-canary-1canary-canary-1", uint8(1))
	f.Add("ends in canary-ca", uint8(3))
	f.Fuzz(func(t *testing.T, text string, piece uint8) {
		var b strings.Builder
		w := s.Writer(&b)
		for rest := text; rest != ""; {
			n := min(len(rest), int(piece)+1)
			if written, err := w.Write([]byte(rest[:n])); err != nil || written != n {
				t.Fatal(written, err)
			}
			rest = rest[n:]
		}
		must.OK(w.Flush())
		if got := b.String(); strings.Contains(got, "canary-canary-1") || !strings.Contains(text, "canary") && got != text {
			t.Fatalf("%q becomes %q", text, got)
		}
	})
}

func TestExpand(t *testing.T) {
	lookup := func(name string) (string, bool) { return strings.ToLower(name), name != "MISSING" }
	if got, err := Expand("--key={env:A_KEY}x{env:B}", lookup); got != "--key=a_keyxb" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := Expand("{env:MISSING}", lookup); err == nil || err.Error() != "environment variable MISSING: nothing in it" {
		t.Error(err)
	}
	quote := func(s string) string { return "'" + s + "'" }
	for word, want := range map[string]string{"": "''", "a b": "'a b'", "{env:K}": `"$K"`, "x={env:K}y": `'x='"$K"'y'`} {
		if got := Shell(word, quote); got != want {
			t.Errorf("%q becomes %s, want %s", word, got, want)
		}
	}
}
