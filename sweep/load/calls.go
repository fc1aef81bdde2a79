package load

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"planner/sweep/workload"
)

// call sends one request that is not part of the load and decodes its answer.
func (e *endpoint) call(ctx context.Context, method, path string, in []byte, out any) error {
	req, err := http.NewRequestWithContext(ctx, method, e.base+path, bytes.NewReader(in))
	if err != nil {
		return err
	}
	req.Header = e.header.Clone()
	req.Header.Set("Accept", "application/json")
	res, err := e.http.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s %s: status %d: %s", method, path, res.StatusCode, oneLine(string(b)))
	}
	if err := json.Unmarshal(b, out); err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	return nil
}

// modelList is the answer of /v1/models, as far as it matters here.
type modelList struct {
	Data []struct {
		ID    string `json:"id"`
		Owner string `json:"owned_by"`
	} `json:"data"`
}

func (e *endpoint) models(ctx context.Context) (modelList, error) {
	var list modelList
	err := e.call(ctx, http.MethodGet, "/v1/models", nil, &list)
	return list, err
}

// firstModel asks for the name of the model that is served.
func (e *endpoint) firstModel(ctx context.Context) (string, error) {
	list, err := e.models(ctx)
	if err != nil {
		return "", err
	}
	if len(list.Data) == 0 || list.Data[0].ID == "" {
		return "", errors.New("GET /v1/models: no model in the list")
	}
	return list.Data[0].ID, nil
}

// Check reports what is wrong with the client before anything is sent: an address
// that is none, an unknown dialect, a header or an API key that cannot be sent.
func (c *Client) Check() error {
	_, err := c.resolve()
	return err
}

// Dialect asks the server which engine it is, by the owner that it gives in its
// list of models, and returns the name of its dialect; "" if it gives no list, or
// an owner that is no engine's.
func (c *Client) Dialect(ctx context.Context) string {
	e, err := c.resolve()
	if err != nil {
		return ""
	}
	// A server that handles one connection at a time would wait for more on this
	// one.
	defer e.http.CloseIdleConnections()
	list, err := e.models(ctx)
	if err != nil || len(list.Data) == 0 {
		return ""
	}
	for i := range dialects {
		if owner := dialects[i].owner; owner != "" && strings.EqualFold(owner, list.Data[0].Owner) {
			return dialects[i].engine
		}
	}
	return ""
}

var errNoTokenizer = errors.New("the engine has no /tokenize")

// tokenize counts the tokens of a text with the engine's own tokenizer, without
// the special ones that begin a prompt where the engine can leave them out.
func (e *endpoint) tokenize(ctx context.Context, text string) (int, error) {
	field := e.dialect.tokenize
	if field == "" {
		return 0, errNoTokenizer
	}
	body := map[string]any{field: text}
	if field == "prompt" {
		body["model"], body["add_special_tokens"] = e.model, false
	}
	b, err := json.Marshal(body)
	if err != nil {
		return 0, err
	}
	var raw json.RawMessage
	if err := e.call(ctx, http.MethodPost, "/tokenize", b, &raw); err != nil {
		return 0, err
	}
	// vLLM and SGLang give a count and the tokens, llama-server the tokens, TGI
	// the bare list.
	var object struct {
		Count  int               `json:"count"`
		Tokens []json.RawMessage `json:"tokens"`
	}
	if json.Unmarshal(raw, &object) == nil && (object.Count > 0 || object.Tokens != nil) {
		return max(object.Count, len(object.Tokens)), nil
	}
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) == nil {
		return len(list), nil
	}
	return 0, errors.New("POST /tokenize: neither a count nor a list in the answer")
}

// measureText finds how many tokens texts of words have on this server, with
// two requests for one token each: from the prompt tokens that the server
// counts, chat template included, else from its tokenizer.
func (e *endpoint) measureText(ctx context.Context, enc *encoder) (textScale, error) {
	const short, long = 64, 320
	one := textScale{perWord: 1}
	count := func(words int) (int, error) {
		probe := *enc.prompts
		probe.text, probe.salt = one, mix(enc.prompts.salt+uint64(words))
		r := workload.Request{ID: -1, Prompt: words, Output: 1}
		whole := &encoder{prompts: &probe, chat: enc.chat, dialect: &dialect{}, before: enc.before, behind: []byte(`,"temperature":0}`)}
		var answer struct {
			Usage struct {
				Prompt int `json:"prompt_tokens"`
			} `json:"usage"`
		}
		err := e.call(ctx, http.MethodPost, strings.TrimPrefix(e.url.String(), e.base), whole.appendBody(nil, &r), &answer)
		if err != nil {
			return 0, err
		}
		if answer.Usage.Prompt > 0 {
			return answer.Usage.Prompt, nil
		}
		return e.tokenize(ctx, strings.Trim(string(probe.appendText(nil, &r, nil)), `"`))
	}
	a, err := count(short)
	if err != nil {
		return one, err
	}
	b, err := count(long)
	if err != nil {
		return one, err
	}
	perWord := float64(b-a) / (long - short)
	if perWord < 0.2 || perWord > 20 {
		return one, fmt.Errorf("%d words count %d tokens, %d words %d", short, a, long, b)
	}
	return textScale{perWord: perWord, overhead: float64(a) - short*perWord}, nil
}
