package serve

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// ask is what a client wants: a checked request of /v1/completions or
// /v1/chat/completions.
type ask struct {
	chat, stream bool
	prompt       []int32
	// text is the hash of the prompt, from which its reply follows, salt what
	// separates its prefix from others.
	text, salt uint64
	// output is the number of tokens to generate; ends says that the last one
	// is the end-of-sequence token and not the last that was allowed.
	output int
	ends   bool
	// usage asks for the counts at the end of a stream, running for counts in
	// every event, ids for token ids.
	usage, running, ids bool
}

// token is the id of the k-th token of the reply.
func (a *ask) token(k int) int32 {
	if a.ends && k == a.output-1 {
		return eosToken
	}
	return generated(a.text, k)
}

// reason is why the reply ends.
func (a *ask) reason() string {
	if a.ends {
		return "stop"
	}
	return "length"
}

// fields are those of a request that mean something here; others are accepted
// and ignored, as sampling does not matter. Stop strings are among these: they
// never occur in what is generated.
type fields struct {
	Model               string          `json:"model"`
	Prompt              json.RawMessage `json:"prompt"`
	Messages            []message       `json:"messages"`
	MaxTokens           *int            `json:"max_tokens"`
	MaxCompletionTokens *int            `json:"max_completion_tokens"`
	MinTokens           int             `json:"min_tokens"`
	IgnoreEOS           bool            `json:"ignore_eos"`
	Stream              bool            `json:"stream"`
	StreamOptions       *streamOptions  `json:"stream_options"`
	N                   *int            `json:"n"`
	BestOf              *int            `json:"best_of"`
	Echo                bool            `json:"echo"`
	ReturnTokenIDs      bool            `json:"return_token_ids"`
	CacheSalt           string          `json:"cache_salt"`
}

type streamOptions struct {
	IncludeUsage         bool `json:"include_usage"`
	ContinuousUsageStats bool `json:"continuous_usage_stats"`
}

// message is one of a chat. Its content is a text, a list of parts, or nothing.
type message struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
}

// terms are what a server accepts.
type terms struct {
	model    string
	modelLen int
	// reply is behind how many tokens the model ends a reply by itself.
	reply int
}

// completionTokens is the default of max_tokens of /v1/completions.
const completionTokens = 16

// parseAsk reads and checks a request.
func (t *terms) parseAsk(body []byte, chat bool) (*ask, error) {
	var f fields
	if err := json.Unmarshal(body, &f); err != nil {
		return nil, badRequest("", "cannot read the body: %v", err)
	}
	if f.Model != "" && f.Model != t.model {
		return nil, &apiError{http.StatusNotFound, "model", fmt.Sprintf("The model `%s` does not exist.", f.Model)}
	}
	if err := f.check(); err != nil {
		return nil, err
	}
	a := &ask{chat: chat, stream: f.Stream, ids: f.ReturnTokenIDs}
	if o := f.StreamOptions; o != nil {
		a.usage = o.IncludeUsage
		a.running = o.IncludeUsage && o.ContinuousUsageStats
	}
	var err error
	if chat {
		a.prompt, err = chatPrompt(f.Messages)
	} else {
		a.prompt, err = readPrompt(f.Prompt)
	}
	if err != nil {
		return nil, err
	}
	if f.CacheSalt != "" {
		a.salt = 1
		for _, c := range []byte(f.CacheSalt) {
			a.salt = mix(a.salt + uint64(c))
		}
	}
	for _, id := range a.prompt {
		a.text = mix(a.text + uint64(id))
	}
	return a, t.size(a, &f)
}

func (f *fields) check() error {
	switch {
	case f.N != nil && *f.N != 1:
		return badRequest("n", "n=%d is not served: every request has one choice here.", *f.N)
	case f.BestOf != nil && *f.BestOf != 1:
		return badRequest("best_of", "best_of=%d is not served: every request has one choice here.", *f.BestOf)
	case f.Echo:
		return badRequest("echo", "echo is not served.")
	case f.StreamOptions != nil && !f.Stream:
		return badRequest("stream_options", "Stream options can only be defined when `stream=True`.")
	}
	return nil
}

// size decides how long the reply becomes, and refuses what exceeds the longest
// context in vLLM's words.
func (t *terms) size(a *ask, f *fields) error {
	room := t.modelLen - len(a.prompt)
	limit := room
	if !a.chat {
		limit = min(limit, completionTokens)
	}
	asked := 0
	if most := firstOf(f.MaxCompletionTokens, f.MaxTokens); most != nil {
		asked = *most
		limit = asked
		if asked < 1 {
			return badRequest("max_tokens", "max_tokens must be at least 1, got %d.", asked)
		}
	}
	if room < max(asked, 1) {
		return badRequest("input_tokens", "This model's maximum context length is %d tokens. However, you requested %d output tokens and your prompt contains at least %d input tokens, "+
			"for a total of at least %d tokens. Please reduce the length of the input prompt or the number of requested output tokens. (parameter=input_tokens, value=%d)",
			t.modelLen, asked, len(a.prompt), asked+len(a.prompt), len(a.prompt))
	}
	if f.MinTokens < 0 || f.MinTokens > limit {
		return badRequest("min_tokens", "min_tokens must be from 0 to max_tokens=%d, got %d.", limit, f.MinTokens)
	}
	a.output = limit
	if natural := max(t.reply, f.MinTokens+1); !f.IgnoreEOS && natural < limit {
		a.output, a.ends = natural, true
	}
	return nil
}

func firstOf(values ...*int) *int {
	for _, v := range values {
		if v != nil {
			return v
		}
	}
	return nil
}

// readPrompt reads a text, a list of token ids, or a list of one of these.
func readPrompt(raw json.RawMessage) ([]int32, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, badRequest("prompt", "prompt is missing.")
	}
	var ids []int32
	switch {
	case raw[0] == '"':
		var text string
		if err := json.Unmarshal(raw, &text); err != nil {
			return nil, badRequest("prompt", "cannot read prompt: %v", err)
		}
		ids = tokenize(nil, text)
	case raw[0] == '[' && startsNumber(raw[1:]):
		return parseIDs(raw)
	case raw[0] == '[':
		var list []json.RawMessage
		if err := json.Unmarshal(raw, &list); err != nil {
			return nil, badRequest("prompt", "cannot read prompt: %v", err)
		}
		if len(list) > 1 {
			return nil, badRequest("prompt", "a list of %d prompts is not served: send one prompt in each request.", len(list))
		}
		if len(list) == 1 && len(list[0]) > 0 && (list[0][0] == '"' || list[0][0] == '[') {
			return readPrompt(list[0])
		}
	default:
		return nil, badRequest("prompt", "prompt must be a text or a list of token ids.")
	}
	if len(ids) == 0 {
		return nil, badRequest("prompt", "prompt must have at least one token.")
	}
	return ids, nil
}

func startsNumber(raw []byte) bool {
	s := strings.TrimLeft(string(raw[:min(len(raw), 16)]), " \t\r\n")
	return s != "" && (s[0] == '-' || '0' <= s[0] && s[0] <= '9')
}

// maxTokenID bounds token ids. Any that a real vocabulary may have is accepted.
const maxTokenID = 1 << 30

// parseIDs reads a JSON list of token ids, which is known to be valid JSON.
func parseIDs(raw []byte) ([]int32, error) {
	ids := make([]int32, 0, len(raw)/5)
	value, digits := 0, false
	for _, c := range raw[1:] {
		switch {
		case '0' <= c && c <= '9':
			if value = 10*value + int(c-'0'); value > maxTokenID {
				return nil, badRequest("prompt", "token id %d... is out of vocabulary", value)
			}
			digits = true
		case c == ',' || c == ']':
			if !digits {
				return nil, badRequest("prompt", "prompt must be a list of token ids.")
			}
			ids = append(ids, int32(value))
			value, digits = 0, false
		case c == ' ' || c == '\t' || c == '\r' || c == '\n':
		default:
			return nil, badRequest("prompt", "prompt must be a list of token ids that are not negative.")
		}
	}
	return ids, nil
}

// chatPrompt renders a chat as tokens: each message between two marks, and what
// begins the reply.
func chatPrompt(messages []message) ([]int32, error) {
	if len(messages) == 0 {
		return nil, badRequest("messages", "messages must have at least one message.")
	}
	var ids []int32
	for i := range messages {
		m := &messages[i]
		text, err := m.text()
		if err != nil {
			return nil, err
		}
		ids = append(ids, chatStart)
		ids = tokenize(ids, m.Role)
		ids = append(tokenize(ids, text), chatEnd)
	}
	return tokenize(append(ids, chatStart), "assistant"), nil
}

func (m *message) text() (string, error) {
	if len(m.Content) == 0 || string(m.Content) == "null" {
		return "", nil
	}
	var text string
	if m.Content[0] == '"' {
		if err := json.Unmarshal(m.Content, &text); err != nil {
			return "", badRequest("messages", "cannot read content: %v", err)
		}
		return text, nil
	}
	var parts []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	if err := json.Unmarshal(m.Content, &parts); err != nil {
		return "", badRequest("messages", "content must be a text or a list of parts: %v", err)
	}
	for _, p := range parts {
		if p.Type != "text" {
			return "", badRequest("messages", "content of the type %q is not served: only text is.", p.Type)
		}
		text += p.Text
	}
	return text, nil
}
