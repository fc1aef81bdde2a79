package serve

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"planner/sweep/workload"
)

// apiRequest is the body of a request to /v1/completions or /v1/chat/completions. It has the fields
// that mean something here; others are accepted and ignored, as sampling does not matter.
type apiRequest struct {
	Model               string          `json:"model"`
	Prompt              json.RawMessage `json:"prompt"`
	Messages            []chatMessage   `json:"messages"`
	MaxTokens           *int            `json:"max_tokens"`
	MaxCompletionTokens *int            `json:"max_completion_tokens"`
	MinTokens           int             `json:"min_tokens"`
	IgnoreEOS           bool            `json:"ignore_eos"`
	Stream              bool            `json:"stream"`
	StreamOptions       *struct {
		IncludeUsage         bool `json:"include_usage"`
		ContinuousUsageStats bool `json:"continuous_usage_stats"`
	} `json:"stream_options"`
	TokenIDs  bool   `json:"return_token_ids"`
	CacheSalt string `json:"cache_salt"`
	unserved
}

// unserved are parameters that the server accepts only with values that have no effect.
type unserved struct {
	Stop    json.RawMessage `json:"stop"`
	StopIDs []int64         `json:"stop_token_ids"`
	N       *int            `json:"n"`
	BestOf  *int            `json:"best_of"`
	Echo    bool            `json:"echo"`
}

// completion is what is to be generated for a request.
type completion struct {
	apiRequest
	chat   bool
	prompt []int32
	// hash is that of the prompt, and determines the reply.
	hash uint64
	// output is the number of tokens to generate; ends says that the last one is the
	// end-of-sequence token rather than the last that was allowed.
	output int
	ends   bool
}

// usage reports whether counts are wanted at the end of a stream, running whether in every event.
func (c *apiRequest) usage() bool   { return c.StreamOptions != nil && c.StreamOptions.IncludeUsage }
func (c *apiRequest) running() bool { return c.usage() && c.StreamOptions.ContinuousUsageStats }

func (c *completion) tokenID(k int) int32 {
	if c.ends && k == c.output-1 {
		return eosToken
	}
	return generated(c.hash, k)
}

func (c *completion) reason() string {
	if c.ends {
		return "stop"
	}
	return "length"
}

// blocks names the full blocks of the prompt and its reply, so that the engine's prefix cache can
// tell which texts begin alike: a block's name is a hash of all tokens up to its end, as in vLLM.
// Blocks under another salt of the request or of the server have other names.
func (c *completion) blocks(blockTokens int, salt uint64) []workload.Segment {
	h := workload.Mix64(salt)
	for _, b := range []byte(c.CacheSalt) {
		h = workload.Mix64(h + uint64(b))
	}
	var blocks []workload.Segment
	for k := range len(c.prompt) + c.output {
		if k < len(c.prompt) {
			h = workload.Mix64(h + uint64(c.prompt[k]))
		} else {
			h = workload.Mix64(h + uint64(c.tokenID(k-len(c.prompt))))
		}
		if (k+1)%blockTokens == 0 {
			blocks = append(blocks, workload.Segment{Content: workload.TraceContent(h), Tokens: blockTokens})
		}
	}
	return blocks
}

// completionTokens is the default of max_tokens in /v1/completions.
const completionTokens = 16

func (s *Simulator) parseRequest(body []byte, chat bool) (*completion, error) {
	c := &completion{chat: chat}
	if err := json.Unmarshal(body, &c.apiRequest); err != nil {
		return nil, badRequest("", "cannot read the body: %v", err)
	}
	if c.Model != "" && c.Model != s.Model {
		return nil, noModel(c.Model)
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	var err error
	if chat {
		c.prompt, err = chatPrompt(c.Messages)
	} else {
		c.prompt, err = readPrompt(c.Prompt)
	}
	if err != nil {
		return nil, err
	}
	c.Prompt, c.Messages = nil, nil // they are as large as the body
	for _, id := range c.prompt {
		c.hash = workload.Mix64(c.hash + uint64(id))
	}
	return c, s.limit(c)
}

func (c *apiRequest) check() error {
	stop, err := stopTexts(c.Stop)
	switch {
	case err != nil:
		return badRequest("stop", "cannot read where to stop: %v", err)
	case c.N != nil && *c.N != 1:
		return badRequest("n", "n=%d is not served: every request has one choice here.", *c.N)
	case c.BestOf != nil && *c.BestOf != 1:
		return badRequest("best_of", "best_of=%d is not served: every request has one choice here.", *c.BestOf)
	case c.Echo:
		return badRequest("echo", "echo is not served.")
	case slices.ContainsFunc(stop, mayOccur):
		return badRequest("stop", "stop=%q is not served: replies are made-up words of small letters, and are not searched for one that may be among them.", stop)
	case slices.ContainsFunc(c.StopIDs, func(id int64) bool { return 0 <= id && id < words }):
		return badRequest("stop_token_ids", "stop_token_ids=%d is not served: replies are not searched for tokens that may be among them.", c.StopIDs)
	case c.StreamOptions != nil && !c.Stream:
		return badRequest("stream_options", "Stream options can only be defined when `stream=True`.")
	}
	return nil
}

// stopTexts returns where a reply is to end: one text, a list of texts, or none.
func stopTexts(raw json.RawMessage) (texts []string, err error) {
	if one := readText(raw); one != "" {
		return []string{one}, nil
	}
	if len(raw) > 0 && raw[0] != '"' {
		err = json.Unmarshal(raw, &texts)
	}
	return texts, err
}

// mayOccur reports whether generated text may contain stop: it consists of words of a space and
// three lower-case letters, and stop may begin anywhere in one.
func mayOccur(stop string) bool {
	for begin := range charsPerToken {
		fits := true
		for i, c := range []byte(stop) {
			space := (begin+i)%charsPerToken == 0
			fits = fits && (space && c == ' ' || !space && 'a' <= c && c <= 'z')
		}
		if fits {
			return true
		}
	}
	return false
}

// limit decides the length of the reply, and refuses what exceeds the longest context in vLLM's
// words.
func (s *Simulator) limit(c *completion) error {
	room := s.MaxModelLen - len(c.prompt)
	limit := room
	if !c.chat {
		limit = min(limit, completionTokens)
	}
	asked := 0
	if most := cmp.Or(c.MaxCompletionTokens, c.MaxTokens); most != nil {
		asked = *most
		limit = asked
		if asked < 1 {
			return badRequest("max_tokens", "max_tokens must be at least 1, got %d.", asked)
		}
	}
	if room < max(asked, 1) {
		return badRequest("input_tokens", "This model's maximum context length is %d tokens. However, you requested %d output tokens and your prompt contains at least %d input tokens, "+
			"for a total of at least %d tokens. Please reduce the length of the input prompt or the number of requested output tokens. (parameter=input_tokens, value=%d)",
			s.MaxModelLen, asked, len(c.prompt), asked+len(c.prompt), len(c.prompt))
	}
	if c.MinTokens < 0 || c.MinTokens > limit {
		return badRequest("min_tokens", "min_tokens must be from 0 to max_tokens=%d, got %d.", limit, c.MinTokens)
	}
	c.output = limit
	if natural := max(s.reply, c.MinTokens+1); !c.IgnoreEOS && natural < limit {
		c.output, c.ends = natural, true
	}
	return nil
}

// readPrompt reads a text, a list of token ids, or a list that holds one of these.
func readPrompt(raw json.RawMessage) ([]int32, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, badRequest("prompt", "prompt is missing.")
	}
	switch {
	case raw[0] == '[' && startsNumber(raw[1:]):
		return parseIDs(raw)
	case raw[0] == '[':
		var list []json.RawMessage
		_ = json.Unmarshal(raw, &list) // it is a list, since the body is valid
		if len(list) > 1 {
			return nil, badRequest("prompt", "a list of %d prompts is not served: send one prompt in each request.", len(list))
		}
		if len(list) == 1 && (list[0][0] == '"' || list[0][0] == '[') {
			return readPrompt(list[0])
		}
	case raw[0] != '"':
		return nil, badRequest("prompt", "prompt must be a text or a list of token ids.")
	}
	ids := tokenize(nil, readText(raw))
	if len(ids) == 0 {
		return nil, badRequest("prompt", "prompt must have at least one token.")
	}
	return ids, nil
}

// readText returns the text of a JSON string; "" for anything else.
func readText(raw json.RawMessage) (text string) {
	_ = json.Unmarshal(raw, &text)
	return text
}

func startsNumber(raw []byte) bool {
	s := strings.TrimLeft(string(raw[:min(len(raw), 16)]), " \t\r\n")
	return s != "" && (s[0] == '-' || '0' <= s[0] && s[0] <= '9')
}

// maxTokenID bounds token ids. Any id that a real vocabulary may have is accepted.
const maxTokenID = 1 << 30

// parseIDs reads a list of token ids, which is known to be valid JSON.
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

// chatMessage is a message of a chat. Its content is a text, a list of parts, or nothing.
type chatMessage struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
}

// chatPrompt renders a chat as tokens: each message between two markers, and then what begins the
// reply.
func chatPrompt(messages []chatMessage) ([]int32, error) {
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
		ids = append(tokenize(append(ids, chatStart), m.Role+text), chatEnd)
	}
	return tokenize(append(ids, chatStart), "assistant"), nil
}

func (m *chatMessage) text() (string, error) {
	if len(m.Content) == 0 || string(m.Content) == "null" {
		return "", nil
	}
	if m.Content[0] == '"' {
		return readText(m.Content), nil
	}
	var parts []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	if err := json.Unmarshal(m.Content, &parts); err != nil {
		return "", badRequest("messages", "content must be a text or a list of parts: %v", err)
	}
	text := ""
	for _, p := range parts {
		if p.Type != "text" {
			return "", badRequest("messages", "content of the type %q is not served: only text is.", p.Type)
		}
		text += p.Text
	}
	return text, nil
}
