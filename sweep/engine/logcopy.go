package engine

import (
	"fmt"
	"io"
)

// tailKept is how much is kept of the end of a log that outgrows its limit.
const tailKept = 64 << 10

// copyLog writes what comes to the log, up to limit bytes; of the rest it keeps
// the end, and writes that when the engine is gone. It goes on reading whatever
// happens, so that a full disk or a flood of lines does not stop the engine.
func copyLog(log io.Writer, in io.Reader, limit int64) {
	buf := make([]byte, 32<<10)
	var tail []byte
	dropped := int64(0)
	for {
		n, err := in.Read(buf)
		take := min(int64(n), limit)
		if take > 0 {
			if _, err := log.Write(buf[:take]); err != nil {
				take, limit = 0, 0
			}
			limit -= take
		}
		if rest := buf[take:n]; len(rest) > 0 {
			dropped += int64(len(rest))
			tail = append(tail, rest...)
			if len(tail) > 2*tailKept {
				tail = append(tail[:0], tail[len(tail)-tailKept:]...)
			}
		}
		if err != nil {
			break
		}
	}
	if dropped == 0 {
		return
	}
	tail = tail[max(0, len(tail)-tailKept):]
	if cut := dropped - int64(len(tail)); cut > 0 {
		fmt.Fprintf(log, "\n... %d bytes of the log were not kept ...\n", cut)
	}
	_, _ = log.Write(tail)
}
