package sweep

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"

	"planner/sweep/measure"
)

// RecordsName is the file of a trial's records in a run folder.
func RecordsName(trial int) string { return "records/" + fileName(trial) + ".jsonl.zst" }

// WriteRecords puts the records of a trial into the run folder: one line of JSON
// a request, compressed with Zstandard.
func (f Folder) WriteRecords(trial int, records []measure.Record) error {
	var b bytes.Buffer
	z, err := zstd.NewWriter(&b)
	if err != nil {
		return fmt.Errorf("write records: %w", err)
	}
	lines := json.NewEncoder(z)
	for i := range records {
		if err := lines.Encode(&records[i]); err != nil {
			return fmt.Errorf("write records: %w", err)
		}
	}
	if err := z.Close(); err != nil {
		return fmt.Errorf("write records: %w", err)
	}
	return f.Write(RecordsName(trial), b.Bytes())
}

// Limits of the files of records that are read: a small file may unpack to a large one.
const (
	mostRecords = 1_000_000
	mostWindow  = 16 << 20
)

// ReadRecords reads what WriteRecords wrote.
func ReadRecords(r io.Reader) ([]measure.Record, error) {
	z, err := zstd.NewReader(r, zstd.WithDecoderMaxWindow(mostWindow), zstd.WithDecoderConcurrency(1))
	if err != nil {
		return nil, fmt.Errorf("read records: %w", err)
	}
	defer z.Close()
	var records []measure.Record
	lines := bufio.NewScanner(z)
	for lines.Scan() {
		var rec measure.Record
		if err := json.Unmarshal(lines.Bytes(), &rec); err != nil {
			return nil, fmt.Errorf("read record %d: %w", len(records)+1, err)
		}
		if len(records) == mostRecords {
			return nil, fmt.Errorf("read records: more than %d, which is the most that is read of a trial", mostRecords)
		}
		records = append(records, rec)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read record %d: %w", len(records)+1, err)
	}
	return records, nil
}
