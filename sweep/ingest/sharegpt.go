package ingest

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"unicode/utf8"

	"planner/sweep/workload"
)

// CharsPerToken turns text into tokens where no tokenizer is at hand: English
// prose runs at about four characters a token under the vocabularies of 2023
// and later. Code and other languages run lower.
const CharsPerToken = 4.0

// ShareGPT holds the lengths of a ShareGPT file: those of the first question
// and its answer in every conversation. There are no arrivals in such files.
type ShareGPT struct {
	Prompt, Output workload.Lengths
	// Conversations counts those read, Skipped those without a question and an
	// answer.
	Conversations, Skipped int
	Warnings               []string
}

type shareGPTConversation struct {
	Conversations []struct {
		Value *string `json:"value"`
	} `json:"conversations"`
}

// ReadShareGPT reads the lengths of a ShareGPT file: a JSON array of
// {"conversations":[{"from":..,"value":..},..]}. Lengths are estimates, by
// CharsPerToken; no text is kept.
func ReadShareGPT(name string, r io.Reader) (*ShareGPT, error) {
	d := json.NewDecoder(r)
	if first, err := d.Token(); err != nil || first != json.Delim('[') {
		return nil, &FileError{File: name, What: "not a JSON array of conversations"}
	}
	var s ShareGPT
	var prompts, outputs []int
	for d.More() {
		var c shareGPTConversation
		if err := d.Decode(&c); err != nil {
			return nil, &FileError{File: name, What: fmt.Sprintf("conversation %d (byte %d): %v", s.Conversations+1, d.InputOffset(), err)}
		}
		s.Conversations++
		if len(c.Conversations) < 2 || blank(c.Conversations[0].Value) || blank(c.Conversations[1].Value) {
			s.Skipped++
			continue
		}
		prompts = append(prompts, estimateTokens(*c.Conversations[0].Value))
		outputs = append(outputs, estimateTokens(*c.Conversations[1].Value))
	}
	if _, err := d.Token(); err != nil {
		return nil, &FileError{File: name, What: fmt.Sprintf("byte %d: %v", d.InputOffset(), err)}
	}
	if len(prompts) == 0 {
		return nil, &FileError{File: name, What: fmt.Sprintf("none of %d conversations holds a question and an answer", s.Conversations)}
	}
	slices.Sort(prompts)
	slices.Sort(outputs)
	s.Prompt = workload.Lengths{Dist: workload.Empirical, Samples: prompts, File: name}
	s.Output = workload.Lengths{Dist: workload.Empirical, Samples: outputs, File: name}
	s.Warnings = []string{
		fmt.Sprintf("lengths are estimated at %.1f characters a token: give token counts where you have them", CharsPerToken),
		"prompts and outputs are drawn apart from each other: that long questions get long answers is lost",
	}
	return &s, nil
}

func blank(s *string) bool { return s == nil || *s == "" }

func estimateTokens(text string) int {
	return max(1, int(float64(utf8.RuneCountInString(text))/CharsPerToken+0.5))
}
