package serve

import (
	"unicode/utf8"

	"planner/sweep/workload"
)

// The server has only a made-up vocabulary: a token of text is at most four characters long, and
// every space begins a new one. Generated text consists of words of a space and three letters, one
// token each, so that a reply that comes back in a later prompt has the tokens that it was
// generated with.
const (
	charsPerToken = 4
	// Ids below words are the generated words; other text is hashed to ids from firstHashed up to
	// vocabulary.
	words       = 26 * 26 * 26
	eosToken    = words
	chatStart   = words + 1 // begins a message of a chat; its role follows
	chatEnd     = words + 2 // ends it
	firstHashed = words + 16
	vocabulary  = 1 << 17
)

func tokenize(ids []int32, text string) []int32 {
	for len(text) > 0 {
		n := 0
		for chars := 0; chars < charsPerToken && n < len(text); chars++ {
			if chars > 0 && text[n] == ' ' {
				break
			}
			_, size := utf8.DecodeRuneInString(text[n:])
			n += size
		}
		ids = append(ids, tokenOf(text[:n]))
		text = text[n:]
	}
	return ids
}

func tokenOf(text string) int32 {
	if len(text) == charsPerToken && text[0] == ' ' {
		id := int32(0)
		for _, c := range []byte(text[1:]) {
			if c < 'a' || c > 'z' {
				id = -1
				break
			}
			id = 26*id + int32(c-'a')
		}
		if id >= 0 {
			return id
		}
	}
	h := uint64(len(text))
	for _, c := range []byte(text) {
		h = workload.Mix64(h + uint64(c))
	}
	return firstHashed + int32(h%(vocabulary-firstHashed))
}

// appendWord appends the text of a token. An id that is not a generated word's has lost its text; a
// word, which is one token too, stands in for it. Ids from eosToken to firstHashed have no text.
func appendWord(b []byte, id int32) []byte {
	if eosToken <= id && id < firstHashed {
		return b
	}
	id %= words
	return append(b, ' ', 'a'+byte(id/(26*26)), 'a'+byte(id/26%26), 'a'+byte(id%26))
}

// generated returns the k-th token that the model generates for a prompt: greedy sampling, so the
// same prompt has the same reply.
func generated(prompt uint64, k int) int32 {
	return int32(workload.Draw64(prompt, uint64(k)) % words)
}
