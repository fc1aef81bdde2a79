package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
)

// known is an instance whose truth is stored with it.
type known struct {
	draft

	Truth truth
}

// readKnown reads a list of such instances.
func readKnown(file string) (all []known, err error) {
	data, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(data, &all)
	}
	return all, err
}

// writeKnown writes a list of such instances, one a line.
func writeKnown(file string, all []known) error {
	var lines [][]byte
	for i := range all {
		line, err := json.Marshal(&all[i])
		if err != nil {
			return err
		}
		lines = append(lines, line)
	}
	return os.WriteFile(file, fmt.Appendf(nil, "[\n%s\n]\n", bytes.Join(lines, []byte(",\n"))), 0o600)
}

// truths keeps truths between runs, in a file if it has a name.
type truths struct {
	sync.Mutex

	file string
	of   map[string]truth
}

func (t *truths) read() error {
	data, err := os.ReadFile(t.file)
	if t.file == "" || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(data, &t.of)
}

// get is the truth of an instance, computed where it is not known yet.
func (t *truths) get(in *instance) (truth, error) {
	t.Lock()
	known, ok := t.of[in.draft.key()]
	t.Unlock()
	if ok {
		return known, nil
	}
	found := in.truth()
	t.Lock()
	defer t.Unlock()
	t.of[in.draft.key()] = found
	if t.file == "" {
		return found, nil
	}
	data, err := json.MarshalIndent(t.of, "", "\t")
	if err != nil {
		return found, err
	}
	return found, os.WriteFile(t.file, data, 0o600)
}
