package serve

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// unknownToken stands for all text that is not a generated word, in a tokenizer that is only used
// for counting.
const unknownToken = words + 3

// The texts of the tokens that have none in the server. That of the unknown token is one token
// wherever it stands, as words are: clients cut a text to a number of tokens and send what these
// decode to.
const (
	eosText     = "<|end_of_text|>"
	startText   = "<|start|>"
	endText     = "<|end|>"
	unknownText = " <?>"
)

// chatTemplate is that of [chatPrompt], as a Hugging Face chat template.
const chatTemplate = "{% for message in messages %}" + startText + "{{ message['role'] }}{{ message['content'] }}" + endText +
	"{% endfor %}{% if add_generation_prompt %}" + startText + "assistant{% endif %}"

// WriteTokenizer writes a folder with a Hugging Face tokenizer that cuts text into as many tokens
// as the server counts, for clients that count for themselves. The ids of generated words are the
// server's; all other text has one and the same id.
func (s *Simulator) WriteTokenizer(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("tokenizer: %w", err)
	}
	length := s.MaxModelLen
	if length == 0 {
		length = defaultModelLen
	}
	for name, content := range map[string]any{
		"tokenizer.json": hfTokenizer(),
		// Some clients ask for the model's configuration before its tokenizer.
		"config.json": map[string]any{"model_type": "llama", "vocab_size": unknownToken + 1, "max_position_embeddings": length},
		"tokenizer_config.json": map[string]any{
			"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": length, "clean_up_tokenization_spaces": false,
			"eos_token": eosText, "chat_template": chatTemplate,
		},
	} {
		text, err := json.MarshalIndent(content, "", " ")
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), append(text, '\n'), 0o644)
		}
		if err != nil {
			return fmt.Errorf("tokenizer: %w", err)
		}
	}
	return nil
}

// hfTokenizer is the content of a tokenizer.json: text is cut as [tokenize] does, and each piece is
// a word of the vocabulary or unknown.
func hfTokenizer() any {
	type object = map[string]any
	vocabulary := map[string]int32{eosText: eosToken, startText: chatStart, endText: chatEnd, unknownText: unknownToken}
	for id := range int32(words) {
		vocabulary[string(appendWord(nil, id))] = id
	}
	var special []object
	for _, text := range []string{eosText, startText, endText} {
		special = append(special, object{"id": vocabulary[text], "content": text, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true})
	}
	piece := fmt.Sprintf(`[\s\S][^ ]{0,%d}`, charsPerToken-1)
	return object{
		"version": "1.0", "truncation": nil, "padding": nil, "added_tokens": special, "normalizer": nil,
		"pre_tokenizer":  object{"type": "Split", "pattern": object{"Regex": piece}, "behavior": "Isolated", "invert": false},
		"post_processor": nil, "decoder": object{"type": "Fuse"},
		"model": object{"type": "WordLevel", "vocab": vocabulary, "unk_token": unknownText},
	}
}
