package engine

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// stranger reports whether a port is held by a process that is not below root.
// Where the process table does not tell, it is not.
func stranger(root, port int) bool {
	sockets := map[string]bool{}
	for _, path := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		table, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		for _, inode := range listeners(table, port) {
			sockets["socket:["+inode+"]"] = true
		}
	}
	if len(sockets) == 0 {
		return false
	}
	for _, p := range descendants(root) {
		fds, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", p.pid))
		if err != nil || len(fds) == 0 && !p.dead {
			return false // another user's: its files cannot be seen
		}
		for _, fd := range fds {
			if target, err := os.Readlink(fd); err == nil && sockets[target] {
				return false
			}
		}
	}
	return true
}

// listeners are the inodes of the sockets that listen on a port, of a table in
// the format of /proc/net/tcp: "0: 0100007F:1F90 00000000:0000 0A ... inode".
func listeners(table []byte, port int) []string {
	const listening, inode = "0A", 9
	var out []string
	for line := range bytes.Lines(table) {
		f := strings.Fields(string(line))
		if len(f) <= inode || f[3] != listening {
			continue
		}
		_, hex, _ := strings.Cut(f[1], ":")
		if n, err := strconv.ParseInt(hex, 16, 32); err == nil && int(n) == port {
			out = append(out, f[inode])
		}
	}
	return out
}
