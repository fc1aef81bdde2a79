package engine

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
)

// proc is one entry of the process table.
type proc struct {
	pid, parent, group int
	name               string
	// dead: it has ended and waits for its parent to ask how.
	dead bool
}

// processTable reads /proc; it is empty where there is none.
func processTable() []proc {
	paths, _ := filepath.Glob("/proc/[0-9]*/stat")
	var out []proc
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			continue // it ended meanwhile
		}
		if p, ok := parseStat(data); ok {
			out = append(out, p)
		}
	}
	return out
}

// parseStat reads a line of /proc/PID/stat, whose second field is a name in
// parentheses that may hold anything.
func parseStat(line []byte) (proc, bool) {
	open, end := bytes.IndexByte(line, '('), bytes.LastIndexByte(line, ')')
	if open < 1 || end < open {
		return proc{}, false
	}
	fields := bytes.Fields(line[end+1:])
	if len(fields) < 3 {
		return proc{}, false
	}
	p := proc{name: string(line[open+1 : end]), dead: string(fields[0]) == "Z"}
	numbers := []*int{&p.pid, &p.parent, &p.group}
	for i, text := range [][]byte{bytes.TrimSpace(line[:open]), fields[1], fields[2]} {
		n, err := strconv.Atoi(string(text))
		if err != nil {
			return proc{}, false
		}
		*numbers[i] = n
	}
	return p, true
}

// descendants are the processes below root.
func descendants(root int) []proc { return below(processTable(), root) }

func below(table []proc, root int) []proc {
	children := map[int][]proc{}
	for _, p := range table {
		children[p.parent] = append(children[p.parent], p)
	}
	var out []proc
	seen := map[int]bool{root: true}
	for queue := []int{root}; len(queue) > 0; queue = queue[1:] {
		for _, p := range children[queue[0]] {
			if !seen[p.pid] {
				seen[p.pid] = true
				out = append(out, p)
				queue = append(queue, p.pid)
			}
		}
	}
	return out
}
