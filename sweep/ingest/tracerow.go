package ingest

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"planner/sweep/workload"
)

// row makes a row of a request. Estimated says that a length is estimated from text.
func (e *entry) row(m mapping) (row workload.TraceRow, estimated bool, problem *FileError) {
	if row.Arrival, problem = e.arrival(m); problem != nil {
		return row, false, problem
	}
	var prompt, output bool
	if row.Prompt, prompt, problem = e.tokens(m["prompt"]); problem != nil {
		return row, false, problem
	}
	if row.Output, output, problem = e.tokens(m["output"]); problem != nil {
		return row, false, problem
	}
	row.Shared, problem = e.shared(m, row.Prompt)
	return row, prompt || output, problem
}

// arrival is when the request arrived, if need be by its end and duration.
func (e *entry) arrival(m mapping) (time.Duration, *FileError) {
	if m["arrival"].names != nil {
		return e.time(m["arrival"], date)
	}
	end, problem := e.time(m["end"], date)
	if problem != nil {
		return 0, problem
	}
	took, problem := e.time(m["duration"], time.ParseDuration)
	return end - max(took, 0), problem
}

// shared are the leading parts of a prompt that others may have too: those that the log
// names, or those of hashed blocks. Two prompts whose hashes begin alike begin with the same text.
func (e *entry) shared(m mapping, prompt int) ([]workload.Segment, *FileError) {
	if ids := e.source(m["prefix"]); ids != "" {
		return prefixParts(ids, e.source(m["prefix_tokens"]), prompt)
	}
	if len(m["blocks"].names) == 0 || e.object == nil {
		return nil, nil
	}
	ids := find(e.object, m["blocks"].names[0]).GetArray()
	size, _ := strconv.Atoi(m["blocks"].unit)
	if len(ids) > 0 && len(ids) != (prompt+size-1)/size {
		return nil, &FileError{What: fmt.Sprintf("%d %s for %d tokens: blocks are not of %d tokens", len(ids), m["blocks"], prompt, size)}
	}
	var parts []workload.Segment
	for i, id := range ids {
		content := workload.NamedContent(id.String())
		if n, err := id.Uint64(); err == nil {
			content = workload.TraceContent(n)
		}
		parts = append(parts, workload.Segment{Content: content, Tokens: min(size, prompt-i*size)})
	}
	return parts, nil
}

// prefixParts reads the shared beginning of a prompt: an id and its tokens, or as
// many ids as tokens, with spaces between.
func prefixParts(ids, lengths string, prompt int) ([]workload.Segment, *FileError) {
	wrong := func(format string, a ...any) *FileError {
		return &FileError{Field: "prefix_tokens", What: fmt.Sprintf(format, a...)}
	}
	names, counts := strings.Fields(ids), strings.Fields(lengths)
	if len(counts) <= 1 {
		names, counts = []string{ids}, []string{lengths}
	}
	if len(names) != len(counts) {
		return nil, wrong("%d lengths for %d ids", len(counts), len(names))
	}
	var parts []workload.Segment
	sum := 0
	for i, name := range names {
		n, err := strconv.Atoi(counts[i])
		if err != nil || n < 0 || n > maxTokens {
			return nil, wrong("%q is no number of tokens", shorten(counts[i], 40))
		}
		if sum += n; sum > prompt {
			return nil, wrong("%d are more than the %d of the whole prompt", sum, prompt)
		}
		if n > 0 {
			parts = append(parts, workload.Segment{Content: workload.NamedContent(name), Tokens: n})
		}
	}
	return parts, nil
}
