package load

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"sync"

	"planner/sweep/workload"
)

// lowToken and highToken bound the ids of token prompts, highToken excluded: ordinary words in
// every common vocabulary. Engines fail on ids that a model does not have.
const lowToken, highToken = 1000, 30000

// prompter writes prompts of a wanted number of tokens. Token k of a segment
// depends on the segment's content and on k alone, so segments with one content
// are one text, and prompts that begin with the same segments share exactly
// these tokens. The salt belongs to a trial: its prompts have nothing in common
// with those of the trials before it, whose prefixes the server may still hold.
type prompter struct {
	salt uint64
	// vocab is the size of the model's vocabulary, 0 where it is not known.
	vocab int
	// A text of words has overhead + perWord x words tokens; overhead is what a chat template adds.
	perWord, overhead float64
	// conversations hold what the engine said in them; nil for none.
	conversations *conversations
}

// words are common English words that are one token each, leading space included, in the
// vocabularies of Llama, Qwen, Mistral, GPT and Gemma; any difference that remains is measured.
var words = [...]string{
	" the", " of", " and", " to", " in", " is", " that", " for", " was", " on", " with", " as", " by", " at", " from", " his",
	" this", " are", " be", " which", " or", " had", " not", " but", " have", " an", " they", " were", " their", " one", " all", " we",
	" can", " has", " there", " been", " if", " more", " when", " will", " would", " who", " so", " no", " out", " up", " into", " them",
	" then", " some", " could", " time", " these", " two", " may", " other", " do", " only", " its", " new", " over", " such", " any", " my",
	" now", " like", " our", " than", " first", " me", " even", " most", " made", " after", " also", " did", " many", " off", " before", " must",
	" through", " back", " years", " where", " much", " your", " way", " well", " down", " should", " because", " each", " just", " those", " people", " too",
	" little", " state", " good", " very", " make", " world", " still", " see", " own", " work", " men", " day", " get", " here", " old", " life",
	" both", " between", " being", " under", " three", " never", " know", " same", " last", " another", " while", " us", " might", " great", " go", " year",
}

// appendTokens appends the prompt of r as a JSON array of token ids.
func (p *prompter) appendTokens(b []byte, r *workload.Request) []byte {
	b = append(b, '[')
	left := r.Prompt
	for _, s := range r.Shared {
		n := min(s.Tokens, left)
		left -= n
		said := p.conversations.answer(s.Content).ids
		said = said[:min(n, len(said))]
		for _, id := range said {
			b = strconv.AppendInt(b, int64(id), 10)
			b = append(b, ',')
		}
		b = p.appendIDs(b, p.salted(s.Content), n-len(said))
	}
	b = p.appendIDs(b, p.own(r), left)
	b[len(b)-1] = ']'
	return b
}

// tokens returns the bounds of the ids: for a small vocabulary its upper half at least.
func (p *prompter) tokens() (low, high uint64) {
	high = highToken
	if p.vocab > 0 {
		high = min(high, uint64(p.vocab))
	}
	return min(lowToken, high/2), high
}

func (p *prompter) appendIDs(b []byte, content uint64, n int) []byte {
	low, high := p.tokens()
	for k := range n {
		b = strconv.AppendUint(b, low+workload.Draw64(content, uint64(k))%(high-low), 10)
		b = append(b, ',')
	}
	return b
}

// appendText appends the prompt of r as a JSON string of about as many tokens. In a chat the
// engine's own answers are messages of their own.
func (p *prompter) appendText(b []byte, r *workload.Request, chat bool) []byte {
	b = append(b, '"')
	left := max(1, int(math.Round((float64(r.Prompt)-p.overhead)/p.perWord)))
	for _, s := range r.Shared {
		n := min(left, int(math.Round(float64(s.Tokens)/p.perWord)))
		left -= n
		said := p.conversations.answer(s.Content).text
		if said == "" || n == 0 {
			b = appendWords(b, p.salted(s.Content), n)
			continue
		}
		if chat {
			b = append(b, `"},{"role":"assistant","content":"`...)
		}
		quoted, _ := json.Marshal(said) // a string always has a JSON form
		b = append(b, quoted[1:len(quoted)-1]...)
		if chat {
			b = append(b, `"},{"role":"user","content":"`...)
		}
	}
	b = appendWords(b, p.own(r), left)
	return append(b, '"')
}

func appendWords(b []byte, content uint64, n int) []byte {
	for k := range n {
		b = append(b, words[workload.Draw64(content, uint64(k))%uint64(len(words))]...)
	}
	return b
}

func (p *prompter) salted(c workload.Content) uint64 { return workload.Mix64(uint64(c) ^ p.salt) }

// own returns the content of the tokens after the shared ones.
func (p *prompter) own(r *workload.Request) uint64 {
	if r.Own != 0 {
		return p.salted(r.Own)
	}
	return workload.Mix64(workload.Mix64(uint64(r.ID)+1) + p.salt)
}

// conversations holds back the turns that wait for the end of the one before, and keeps what the
// engine answered, so that later turns carry it in their prompts as a user's client does, and find
// it in the prefix cache. If the engine does not tell the ids of what it generated, a prompt of ids
// carries others in their place.
//
// Turns are identified by their ID plus one, as in Parent. A nil pointer stands for traffic without
// conversations.
type conversations struct {
	// awaited are the turns that another one waits for.
	awaited map[int]bool

	mu      sync.Mutex
	ended   map[int]bool
	waiting map[int][]*message
	// answers holds the answers, by their content.
	answers map[workload.Content]priorAnswer
	// unnamed counts the answers without token ids.
	unnamed int
}

// priorAnswer is an answer as a later turn repeats it.
type priorAnswer struct {
	text string
	ids  []int32
}

func newConversations(schedule []workload.Request) *conversations {
	c := &conversations{awaited: map[int]bool{}, ended: map[int]bool{}, waiting: map[int][]*message{}, answers: map[workload.Content]priorAnswer{}}
	for i := range schedule {
		if p := schedule[i].Parent; p > 0 {
			c.awaited[p] = true
		}
	}
	return c
}

// hold reports whether the message must wait for parent, and keeps it if so.
func (c *conversations) hold(parent int, m *message) bool {
	if parent == 0 {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended[parent] {
		return false
	}
	c.waiting[parent] = append(c.waiting[parent], m)
	return true
}

// end notes that a turn ended, and what was answered, and returns the messages
// that waited for it.
func (c *conversations) end(r *workload.Request, answer *received) []*message {
	turn := r.ID + 1
	if !c.awaited[turn] {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.Generated != 0 {
		c.answers[r.Generated] = priorAnswer{string(answer.text), slices.Clone(answer.ids)}
		if len(answer.ids) == 0 {
			c.unnamed++
		}
	}
	c.ended[turn] = true
	released := c.waiting[turn]
	delete(c.waiting, turn)
	return released
}

// answer returns the answer with a content, empty where there is none.
func (c *conversations) answer(of workload.Content) priorAnswer {
	if c == nil {
		return priorAnswer{}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.answers[of]
}
