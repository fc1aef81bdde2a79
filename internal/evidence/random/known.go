package main

import (
	"encoding/json"
	"errors"
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

// store keeps what is known between runs, in a file if it has a name.
type store struct {
	sync.Mutex

	file string
	of   map[string]known
}

func readStore(file string) (*store, error) {
	s := &store{file: file, of: map[string]known{}}
	data, err := os.ReadFile(file)
	switch {
	case file == "" || errors.Is(err, fs.ErrNotExist):
		return s, nil
	case err != nil:
		return nil, err
	}
	return s, json.Unmarshal(data, &s.of)
}

// get is an instance with its truth, drawn and found where it is not known yet.
func (s *store) get(key, dir string, draw func() draft) (*instance, truth, error) {
	s.Lock()
	k, ok := s.of[key]
	s.Unlock()
	if !ok {
		k.draft = draw()
	}
	in, err := k.instance(dir)
	if err != nil || ok {
		return in, k.Truth, err
	}
	k.Truth = in.truth()
	return in, k.Truth, s.put(key, k)
}

func (s *store) put(key string, k known) error {
	s.Lock()
	defer s.Unlock()
	s.of[key] = k
	if s.file == "" {
		return nil
	}
	data, err := json.Marshal(s.of)
	if err != nil {
		return err
	}
	return os.WriteFile(s.file, data, 0o600)
}
