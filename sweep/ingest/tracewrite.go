package ingest

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"planner/sweep/workload"
)

// WriteTraceCSV writes rows in order of arrival as our own CSV, without text:
// arrival_s,input_tokens,output_tokens and, where prompts share beginnings,
// prefix_id,prefix_tokens. A beginning of several parts, as a trace of hashed
// blocks has, is a list of ids and one of lengths, with spaces between. Ids are
// numbers in order of appearance: nothing of what the log called them is left.
// Parts that no other request has are left out, since they mean nothing.
func WriteTraceCSV(w io.Writer, rows []workload.TraceRow) error {
	out := bufio.NewWriter(w)
	uses := map[workload.Content]int{}
	for i := range rows {
		for _, s := range rows[i].Shared {
			uses[s.Content]++
		}
	}
	shared := func(r workload.TraceRow) []workload.Segment {
		n := len(r.Shared)
		for n > 0 && uses[r.Shared[n-1].Content] < 2 {
			n--
		}
		return r.Shared[:n]
	}
	prefixes := slices.ContainsFunc(rows, func(r workload.TraceRow) bool { return len(shared(r)) > 0 })
	header := "arrival_s,input_tokens,output_tokens"
	if prefixes {
		header += ",prefix_id,prefix_tokens"
	}
	fmt.Fprintln(out, header)
	numbers := map[workload.Content]int{}
	for _, r := range rows {
		fmt.Fprintf(out, "%s,%d,%d", secondsText(r.Arrival-rows[0].Arrival), r.Prompt, r.Output)
		if prefixes {
			ids, tokens := partsText(shared(r), numbers)
			fmt.Fprintf(out, ",%s,%s", ids, tokens)
		}
		fmt.Fprintln(out)
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write trace: %w", err)
	}
	return nil
}

// partsText lists parts by their numbers and lengths.
func partsText(parts []workload.Segment, numbers map[workload.Content]int) (ids, tokens string) {
	var id, n []string
	for _, s := range parts {
		number, ok := numbers[s.Content]
		if !ok {
			number = len(numbers) + 1
			numbers[s.Content] = number
		}
		id, n = append(id, strconv.Itoa(number)), append(n, strconv.Itoa(s.Tokens))
	}
	return strings.Join(id, " "), strings.Join(n, " ")
}

// secondsText is a time in seconds, exact to the nanosecond.
func secondsText(d time.Duration) string {
	s := fmt.Sprintf("%d.%09d", d/time.Second, d%time.Second)
	return strings.TrimRight(strings.TrimRight(s, "0"), ".")
}
