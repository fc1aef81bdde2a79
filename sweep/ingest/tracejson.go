package ingest

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"planner/sweep/workload"
)

// jsonRow holds the keys of all traces in lines of JSON; nil for one that is
// not there.
type jsonRow struct {
	ArrivalS     *float64        `json:"arrival_s"`
	InputTokens  *int            `json:"input_tokens"`
	OutputTokens *int            `json:"output_tokens"`
	PrefixID     json.RawMessage `json:"prefix_id"`
	PrefixTokens *int            `json:"prefix_tokens"`
	Timestamp    *float64        `json:"timestamp"`
	InputLength  *int            `json:"input_length"`
	OutputLength *int            `json:"output_length"`
	HashIDs      []uint64        `json:"hash_ids"`
	ChatID       json.RawMessage `json:"chat_id"`
}

// The sizes of the blocks whose hashes traces list, in tokens.
const (
	mooncakeBlock = 512
	qwenBlock     = 16
)

// readJSON reads a log of one JSON object a line.
func (t *Trace) readJSON(l *lines, first, format string) error {
	var f TraceFormat
	for line, ok := first, true; ok; line, ok = l.next() {
		var j jsonRow
		if err := json.Unmarshal([]byte(line), &j); err != nil {
			return l.problem(jsonField(err), "%v", jsonCause(err))
		}
		if f.row == nil {
			var err error
			if f, err = chooseJSON(&j, format); err != nil {
				return l.problem("", "%v", err)
			}
			t.Format = f.Name
		}
		row, err := f.row(&j)
		if err != nil {
			return l.problem("", "%v", err)
		}
		t.add(row)
	}
	return nil
}

// jsonField is the key that a decoding error is about, if it is about one.
func jsonField(err error) string {
	var typed *json.UnmarshalTypeError
	if errors.As(err, &typed) {
		return typed.Field
	}
	return ""
}

func jsonCause(err error) string {
	var typed *json.UnmarshalTypeError
	if errors.As(err, &typed) {
		return fmt.Sprintf("a %s, not a %v", typed.Value, typed.Type)
	}
	return err.Error()
}

// chooseJSON finds the format from the first line. Timestamps without hashes
// are milliseconds in one kind of trace and seconds in another, and nothing in
// the file tells: that must be said.
func chooseJSON(j *jsonRow, format string) (TraceFormat, error) {
	formats := TraceFormats()
	if format != "" {
		f, err := named(format, formats)
		if err == nil && f.row == nil {
			err = fmt.Errorf("lines of JSON are not %s: %s", format, f.Reads)
		}
		return f, err
	}
	for _, f := range formats {
		if f.json != nil && f.json(j) {
			return f, nil
		}
	}
	if j.Timestamp != nil && j.InputLength != nil && j.OutputLength != nil {
		return TraceFormat{}, errors.New("timestamp may be in seconds or in milliseconds and nothing here tells: name the format, guidellm (seconds) or mooncake (milliseconds)")
	}
	return TraceFormat{}, errors.New("no known trace has these keys; our own are arrival_s, input_tokens, output_tokens[, prefix_id, prefix_tokens]")
}

func isOwnJSON(j *jsonRow) bool {
	return j.ArrivalS != nil && j.InputTokens != nil && j.OutputTokens != nil
}

// isQwen wants the chat, or blocks whose number fits 16 tokens and not 512.
func isQwen(j *jsonRow) bool {
	return j.lengths() && (j.ChatID != nil || (j.blocks(qwenBlock) && !j.blocks(mooncakeBlock)))
}

func isMooncake(j *jsonRow) bool { return j.lengths() && j.blocks(mooncakeBlock) }

func (j *jsonRow) lengths() bool {
	return j.Timestamp != nil && j.InputLength != nil && j.OutputLength != nil
}

// blocks reports whether the hashes are those of blocks of so many tokens.
func (j *jsonRow) blocks(size int) bool {
	return len(j.HashIDs) > 0 && j.InputLength != nil && len(j.HashIDs) == (*j.InputLength+size-1)/size
}

func ownJSON(j *jsonRow) (workload.TraceRow, error) {
	if !isOwnJSON(j) {
		return workload.TraceRow{}, errors.New("arrival_s, input_tokens or output_tokens is missing")
	}
	row, err := newRow(*j.ArrivalS, time.Second, *j.InputTokens, *j.OutputTokens)
	if err != nil || len(j.PrefixID) == 0 || string(j.PrefixID) == "null" {
		return row, err
	}
	if j.PrefixTokens == nil || *j.PrefixTokens < 0 || *j.PrefixTokens > row.Prompt {
		return row, fmt.Errorf("prefix_id without prefix_tokens between 0 and the %d of the whole prompt", row.Prompt)
	}
	if *j.PrefixTokens > 0 {
		row.Shared = []workload.Segment{{Content: workload.TraceContent(hashName(string(j.PrefixID))), Tokens: *j.PrefixTokens}}
	}
	return row, nil
}

func mooncakeRow(j *jsonRow) (workload.TraceRow, error) {
	return j.blockRow(time.Millisecond, mooncakeBlock)
}

func qwenRow(j *jsonRow) (workload.TraceRow, error) { return j.blockRow(time.Second, qwenBlock) }

func guideRow(j *jsonRow) (workload.TraceRow, error) { return j.blockRow(time.Second, 0) }

// blockRow makes a row of a timestamp and hashed blocks. Two prompts whose
// hashes begin alike begin with the same text.
func (j *jsonRow) blockRow(unit time.Duration, block int) (workload.TraceRow, error) {
	if !j.lengths() {
		return workload.TraceRow{}, errors.New("timestamp, input_length or output_length is missing")
	}
	row, err := newRow(*j.Timestamp, unit, *j.InputLength, *j.OutputLength)
	if err != nil || block == 0 || len(j.HashIDs) == 0 {
		return row, err
	}
	if !j.blocks(block) {
		return row, fmt.Errorf("%d hash_ids for %d tokens: blocks are not of %d tokens", len(j.HashIDs), row.Prompt, block)
	}
	left := row.Prompt
	for _, id := range j.HashIDs {
		n := min(left, block)
		row.Shared = append(row.Shared, workload.Segment{Content: workload.TraceContent(id), Tokens: n})
		left -= n
	}
	return row, nil
}

func newRow(at float64, unit time.Duration, input, output int) (workload.TraceRow, error) {
	if input < 0 || output < 0 || input > mostTokens || output > mostTokens {
		return workload.TraceRow{}, fmt.Errorf("lengths of %d and %d tokens", input, output)
	}
	d, err := arrival(at, unit)
	return workload.TraceRow{Arrival: d, Prompt: input, Output: output}, err
}
