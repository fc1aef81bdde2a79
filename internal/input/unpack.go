package input

import (
	"bufio"
	"compress/gzip"
	"io"

	"github.com/klauspost/compress/zstd"
)

// mostWindow is the largest window of a Zstandard decoder, in bytes.
const mostWindow = 16 << 20

// Unpack passes on the contents of r, decompressed if it is gzip or Zstandard.
func Unpack(r io.Reader) (io.Reader, error) {
	in := bufio.NewReader(r)
	magic, _ := in.Peek(4)
	switch {
	case len(magic) > 1 && string(magic[:2]) == "\x1f\x8b":
		return gzip.NewReader(in)
	case string(magic) == "\x28\xb5\x2f\xfd":
		return zstd.NewReader(in, zstd.WithDecoderMaxWindow(mostWindow), zstd.WithDecoderConcurrency(1))
	}
	return in, nil
}
