package ingest

import (
	"slices"
	"strings"
	"time"
)

// role is what a key of a request log stands for.
type role int

const (
	noRole role = iota
	startRole
	endRole
	durationRole
	promptRole
	cachedRole
	outputRole
	totalRole
	statusRole
	errorRole
	sessionRole
	promptText
	outputText
	roles // how many there are
)

// logKeys are the names under which gateways, proxies and tracing libraries log
// a request, most telling first, in lower case and without separators: those of
// the OpenAI, Anthropic and Gemini usage objects, of OpenTelemetry's gen_ai
// attributes, of LiteLLM, and of common web servers.
var logKeys = [roles][]string{
	startRole: {"arrival", "arrivaltime", "receivedat", "requestreceivedat", "starttime", "startedat", "starttimestamp", "requeststarttime",
		"requesttimestamp", "createdat", "created", "timestamp", "time", "ts", "datetime", "date", "eventtime", "timeiso8601", "timelocal"},
	endRole: {"endtime", "endedat", "completedat", "finishedat", "endtimestamp", "responsetimestamp", "loggedat"},
	durationRole: {"duration", "requestduration", "totalduration", "latency", "elapsed", "elapsedtime", "totaltime", "responsetime", "requesttime",
		"upstreamresponsetime"},
	promptRole: {"prompttokens", "inputtokens", "prompttokencount", "inputtokencount", "numprompttokens", "numinputtokens", "nprompttokens",
		"ninputtokens", "requesttokens", "contexttokens", "tokensin", "tokensprompt", "inputlength", "promptlength"},
	// Anthropic counts what was found in or written to a cache beside the input.
	cachedRole: {"cachereadinputtokens", "cachecreationinputtokens"},
	outputRole: {"completiontokens", "outputtokens", "candidatestokencount", "completiontokencount", "outputtokencount", "numcompletiontokens",
		"numoutputtokens", "numgenerationtokens", "noutputtokens", "generatedtokens", "responsetokens", "tokensout", "tokenscompletion", "outputlength"},
	totalRole:   {"totaltokens", "totaltokencount"},
	statusRole:  {"status", "statuscode", "httpstatus", "httpstatuscode", "responsestatus", "responsestatuscode", "responsecode"},
	errorRole:   {"error", "exception", "errormessage", "errortype"},
	sessionRole: {"sessionid", "conversationid", "chatid", "threadid", "session", "conversation"},
	promptText:  {"messages", "prompt", "input", "prompttext", "inputtext", "contents", "system", "systemprompt"},
	outputText:  {"completion", "response", "choices", "candidates", "output", "outputtext", "responsetext", "generatedtext", "answer"},
}

// textKeys hold the text within a structured prompt or answer.
var textKeys = []string{"content", "text", "parts", "message", "delta", "reasoningcontent", "arguments", "function", "toolcalls"}

// unitSuffixes end the keys of times and durations that say their unit.
var unitSuffixes = []struct {
	suffix string
	unit   time.Duration
}{
	{"unixnano", time.Nanosecond}, {"nanoseconds", time.Nanosecond}, {"nanos", time.Nanosecond}, {"ns", time.Nanosecond},
	{"microseconds", time.Microsecond}, {"micros", time.Microsecond}, {"us", time.Microsecond},
	{"milliseconds", time.Millisecond}, {"millis", time.Millisecond}, {"ms", time.Millisecond},
	{"seconds", time.Second}, {"secs", time.Second}, {"sec", time.Second}, {"s", time.Second},
}

// inSeconds are the durations that web servers log in seconds.
var inSeconds = []string{"requesttime", "upstreamresponsetime"}

// logKey is a key with what it stands for. A lower rank is more telling. Unit is
// 0 where the key does not say it.
type logKey struct {
	role role
	rank int
	unit time.Duration
}

// classify finds out what a key stands for.
func classify(key string) logKey {
	name := plainKey(key)
	for r := startRole; r < roles; r++ {
		if i := slices.Index(logKeys[r], name); i >= 0 {
			k := logKey{role: r, rank: i}
			if r == durationRole && slices.Contains(inSeconds, name) {
				k.unit = time.Second
			}
			return k
		}
	}
	for _, u := range unitSuffixes {
		base, ok := strings.CutSuffix(name, u.suffix)
		if !ok {
			continue
		}
		for _, r := range []role{startRole, endRole, durationRole} {
			if i := slices.Index(logKeys[r], base); i >= 0 {
				return logKey{r, i, u.unit}
			}
		}
	}
	return logKey{}
}

// plainKey is a key in lower case without separators; of a dotted one, such as
// gen_ai.usage.input_tokens, the last part.
func plainKey(key string) string {
	if i := strings.LastIndexByte(key, '.'); i >= 0 {
		key = key[i+1:]
	}
	return strings.Map(func(r rune) rune {
		switch r {
		case '_', '-', '@', ' ', '$':
			return -1
		}
		return r
	}, strings.ToLower(key))
}
