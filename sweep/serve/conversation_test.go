package serve

import (
	"fmt"
	"strings"
	"testing"
)

// TestConversation: the next turn of a chat finds its first prompt and the reply to
// it in the cache, in text as in token ids.
func TestConversation(t *testing.T) {
	r := run(t, &Simulator{Timer: steady{0.001, 0}, Config: small()})
	prompt, output := 40, 50
	ids := make([]string, prompt)
	for i := range ids {
		ids[i] = fmt.Sprint(i)
	}
	_, body := post(t, r.url+"/v1/completions", fmt.Sprintf(`{"prompt":[%s],"max_tokens":%d,"ignore_eos":true,"return_token_ids":true}`, strings.Join(ids, ","), output))
	_, rest, _ := strings.Cut(body, `"token_ids":[`)
	reply, _, _ := strings.Cut(rest, "]")
	_, body = post(t, r.url+"/v1/completions", fmt.Sprintf(`{"prompt":[%s,%s,7,7,7],"max_tokens":1}`, strings.Join(ids, ","), reply))
	// The KV of the last token of the reply was never computed.
	between(t, body, (prompt+output-1)/16*16, (prompt+output-1)/16*16)
	ask := func(messages string) string {
		_, body := post(t, r.url+"/v1/chat/completions", `{"messages":[`+messages+`],"max_tokens":40,"ignore_eos":true}`)
		return body
	}
	const first = `{"role":"user","content":"tell me a story that is long enough for some blocks"}`
	body = ask(first)
	_, rest, _ = strings.Cut(body, `"content":"`)
	said, _, _ := strings.Cut(rest, `"`)
	_, rest, _ = strings.Cut(body, `"prompt_tokens":`)
	var tokens int
	fmt.Sscan(strings.SplitN(rest, ",", 2)[0], &tokens)
	body = ask(first + `,{"role":"assistant","content":"` + said + `"},{"role":"user","content":"go on"}`)
	// Of the first prompt, all but what asks for the reply comes back, and the reply.
	between(t, body, (tokens-4+40)/16*16, (tokens+40-1)/16*16)
}

// between checks the number of cached tokens of an answer.
func between(t *testing.T, body string, low, high int) {
	t.Helper()
	_, rest, found := strings.Cut(body, `"cached_tokens":`)
	cached := -1
	fmt.Sscan(strings.SplitN(rest, "}", 2)[0], &cached)
	if !found || cached < low || cached > high {
		t.Errorf("%d cached tokens, want %d to %d: %s", cached, low, high, body)
	}
}
