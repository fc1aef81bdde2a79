package load

import (
	"strings"

	"planner/sweep/measure"
)

// fault is a server that misbehaves, with what must be reported of it. Requests ask for 4 tokens.
type fault struct {
	name    string
	server  handler
	outcome measure.Outcome
	// detail is the detail of its outcome, or how that begins if it ends in "..."; "" for anything.
	detail string
	// output is how many tokens came, -1 for any number.
	output int
}

// faults are what a server may do with a request that it has read.
var faults = []fault{
	{"good", say(streamHead, tokensOf(4), ending(8, 4)), measure.OK, "", 4},
	{"good without [DONE]", say(streamHead, tokensOf(4), chunked(finishEvent()), lastChunk), measure.OK, "", 4},
	{"good without a finish reason", say(streamHead, tokensOf(4), chunked(doneEvent), lastChunk), measure.OK, "", 4},
	{"good in one event per line end", say(streamHead, chunked(strings.ReplaceAll(tokenEvent(" w", 8, 4)+finishEvent()+doneEvent, "\n", "\r\n")), lastChunk), measure.OK, "", 4},
	{"good until the connection closes", say("HTTP/1.0 200 OK\r\nContent-Type: text/event-stream\r\n\r\n" + tokenEvent("a", 8, 4) + finishEvent() + doneEvent), measure.OK, "", 4},
	{"good behind an interim answer", say("HTTP/1.1 100 Continue\r\n\r\n", streamHead, tokensOf(4), ending(8, 4)), measure.OK, "", 4},
	{"good, cut behind [DONE]", say(streamHead, tokensOf(4), chunked(finishEvent()), chunked(doneEvent)), measure.OK, "", 4},
	{"good, and open behind [DONE]", stall(streamHead, tokensOf(4), chunked(finishEvent()), chunked(doneEvent)), measure.OK, "", 4},
	{"good, and pinging behind [DONE]", drip(streamHead+tokensOf(4)+chunked(doneEvent), chunked(": ping\n\n")), measure.OK, "", 4},
	{"good with extensions and trailers", say(streamHead, strings.Replace(tokensOf(4), "\r\n", ";x=y\r\n", 1), chunked(finishEvent()), "0\r\nX: y\r\n\r\n"), measure.OK, "", 4},

	{"good in one write", say(streamHead + tokensOf(4) + ending(8, 4)), measure.OK, "", 4},
	{"good behind a long line in the head", say("HTTP/1.1 200 OK\r\nX: "+strings.Repeat("y", 500_000)+"\r\n"+strings.TrimPrefix(streamHead, "HTTP/1.1 200 OK\r\n"), tokensOf(4), ending(8, 4)), measure.OK, "", 4},
	{"good without usage", say(streamHead, strings.Repeat(chunked(`data: {"choices":[{"text":" w"}]}`+"\n\n"), 4), chunked(finishEvent()), chunked(doneEvent), lastChunk), measure.OK, "", 4},
	{"good in broken UTF-8", say(streamHead, strings.Repeat(chunked("data: {\"choices\":[{\"text\":\"\xf0\x9f\"}]}\n\n"), 4), ending(8, 4)), measure.OK, "", 4},
	{"good behind comments", say(streamHead, strings.Repeat(chunked(": ping\n\n"), 50), tokensOf(4), ending(8, 4)), measure.OK, "", 4},
	{"good with more behind its end", say(streamHead, tokensOf(4), ending(8, 4), "HTTP/1.1 200 OK\r\n\r\n"), measure.OK, "", 4},
	{"good, with a count of none", say(streamHead, chunked(`data: {"choices":[{"text":"a"}]}`+"\n\n"), chunked(`data: {"choices":[{"text":"b"}]}`+"\n\n"), ending(8, 0)), measure.OK, "", 2},

	{"503", say(whole("503 Service Unavailable", "application/json", `{"error":{"message":"queue full"}}`)), measure.HTTPStatus, "503: queue full", 0},
	{"429 without a body", say("HTTP/1.1 429 Too Many\r\nContent-Length: 0\r\n\r\n"), measure.HTTPStatus, "429", 0},
	{"204", say("HTTP/1.1 204 No Content\r\n\r\n"), measure.HTTPStatus, "204", 0},
	{"307", say("HTTP/1.1 307 Elsewhere\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n"), measure.HTTPStatus, "307, a redirect to /x", 0},
	{"301 to another server", say("HTTP/1.1 301 Moved\r\nLocation: https://u:p@elsewhere.example/v1?key=secret\r\nContent-Length: 0\r\n\r\n"), measure.HTTPStatus, "301, a redirect to https://elsewhere.example/v1", 0},
	{"302 to nowhere", say("HTTP/1.1 302 Found\r\nContent-Length: 0\r\n\r\n"), measure.HTTPStatus, "302", 0},
	{"401", say(whole("401 Unauthorized", "application/json", `{"error":"invalid key"}`)), measure.HTTPStatus, "401: invalid key", 0},
	{"403 without a length", say("HTTP/1.1 403 Forbidden\r\nConnection: close\r\n\r\nno\r\n\r\nentry"), measure.HTTPStatus, "403: no entry", 0},
	{"404", say(whole("404 Not Found", "application/json", `{"detail":"Not Found"}`)), measure.HTTPStatus, "404: Not Found", 0},
	{"422", say(whole("422 No", "application/json", `{"detail":[{"loc":["body","prompt"],"msg":"field required"}]}`)), measure.HTTPStatus, "422: field required", 0},
	{"429", say(whole("429 Too Many Requests", "text/plain", "rate limit\x1b[2J\x00")), measure.HTTPStatus, "429: rate limit [2J", 0},
	{"500 with a page", say(whole("500 Oops", "text/html", "<html><h1>Oops</h1></html>")), measure.HTTPStatus, "500: <html><h1>Oops</h1></html>", 0},
	{"502 without end", flood("HTTP/1.1 502 Bad Gateway\r\n\r\n", strings.Repeat("x", 10_000)), measure.HTTPStatus, "502: xxx...", 0},
	{"101", say("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n"), measure.HTTPStatus, "101", 0},
	{"closed at once", say(), measure.Reset, "", 0},
	{"reset at once", reset(), measure.Reset, "", 0},
	{"reset in the stream", reset(streamHead, tokensOf(2)), measure.Reset, "", 2},
	{"silent", stall(), measure.Timeout, "", 0},
	{"silent behind the head", stall(streamHead), measure.Timeout, "", 0},
	{"stalled stream", stall(streamHead, tokensOf(2)), measure.Timeout, "", 2},
	{"cut stream", say(streamHead, tokensOf(2)), measure.Truncated, "", 2},
	{"cut chunk", say(streamHead, tokensOf(2), "ff\r\ndata: {"), measure.Truncated, "", 2},
	{"ended without a finish", say(streamHead, tokensOf(2), lastChunk), measure.Truncated, "", 2},
	{"cut head", say("HTTP/1.1 200 OK\r\nContent-"), measure.Truncated, "", 0},
	{"cut body of a length", say("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 9999\r\n\r\n" + tokenEvent("a", 8, 4) + finishEvent()), measure.Truncated, "", 4},
	{"empty stream", say(streamHead, lastChunk), measure.Empty, "an answer without a token", 0},
	{"only [DONE]", say(streamHead, chunked(doneEvent), lastChunk), measure.Empty, "an answer without a token", 0},
	{"only a role", say(streamHead, chunked(`data: {"choices":[{"delta":{"role":"assistant","content":""}}]}`+"\n\n"), chunked(finishEvent()), chunked(doneEvent), lastChunk), measure.Empty, `{"choices":[{"delta":{"role":"assistant","content":""}}]}`, 0},
	{"only usage", say(streamHead, ending(8, 4)), measure.Empty, "an answer without a token", 4},
	{"empty body", say(whole("200 OK", "application/json", "")), measure.Empty, "no body", 0},
	{"error event", say(streamHead, tokensOf(2), chunked("event: error\ndata: out of memory\n\n"), lastChunk), measure.StreamError, "out of memory", 2},
	{"error in the stream", say(streamHead, tokensOf(1), chunked(`data: {"error":{"message":"gone","code":500}}`+"\n\n"), chunked(doneEvent), lastChunk), measure.StreamError, "gone", 1},
	{"error as the answer", say(whole("200 OK", "application/json", `{"error":"no"}`)), measure.StreamError, "no", 0},
	{"error of a choice", say(streamHead, tokensOf(4), chunked(`data: {"choices":[{"error":{"message":"worker died"}}]}`+"\n\n"), ending(8, 4)), measure.StreamError, "worker died", 4},
	{"error that calls itself one", say(streamHead, tokensOf(4), chunked(`data: {"object":"error","message":"gone","code":500}`+"\n\n"), chunked(doneEvent), lastChunk), measure.StreamError, "gone", 4},
	{"error of a type", say(streamHead, tokensOf(4), chunked(`data: {"type":"error","error":{"message":"overloaded"}}`+"\n\n"), chunked(doneEvent), lastChunk), measure.StreamError, "overloaded", 4},
	{"detail", say(streamHead, tokensOf(4), chunked(`data: {"detail":"gone"}`+"\n\n"), ending(8, 4)), measure.StreamError, "gone", 4},
	{"errors", say(streamHead, tokensOf(4), chunked(`data: {"errors":["gone"]}`+"\n\n"), ending(8, 4)), measure.StreamError, "gone", 4},
	{"error event in JSON", say(streamHead, tokensOf(4), chunked("event: error\ndata: {\"error\":{\"message\":\"gone\"}}\n\n"), ending(8, 4)), measure.StreamError, "gone", 4},
	{"error event without data", say(streamHead, tokensOf(4), chunked("event: error\n\n"), ending(8, 4)), measure.StreamError, "error event without a message", 4},
	{"long error", say(streamHead, chunked(`data: {"error":"`+strings.Repeat("long ", 20_000)+`"}`+"\n\n"), lastChunk), measure.StreamError, "long long...", 0},
	{"ended by error", say(streamHead, tokensOf(4), chunked(strings.Replace(finishEvent(), "length", "error", 1)), chunked(usageEvent(8, 4)), chunked(doneEvent), lastChunk), measure.StreamError, "finish reason error", 4},
	{"ended by abort", say(streamHead, tokensOf(4), chunked(strings.Replace(finishEvent(), "length", "abort", 1)), chunked(usageEvent(8, 4)), chunked(doneEvent), lastChunk), measure.StreamError, "finish reason abort", 4},
	{"ended by a filter", say(streamHead, tokensOf(4), chunked(strings.Replace(finishEvent(), "length", "content_filter", 1)), chunked(usageEvent(8, 4)), chunked(doneEvent), lastChunk), measure.StreamError, "finish reason content_filter", 4},
	{"event of another kind, then the end", say(streamHead, tokensOf(2), chunked("event: exception\ndata: {\"code\":7,\"reason\":\"worker lost\"}\n\n"), lastChunk), measure.Truncated, `{"code":7,"reason":"worker lost"}`, 2},
	{"words of a proxy in the stream", say(streamHead, tokensOf(2), chunked(`{"error":"upstream gone"}`), lastChunk), measure.Truncated, "upstream gone", 2},
	{"events without choices", say(streamHead, strings.Repeat(chunked("data: {\"response\":\"a\"}\n\n"), 4), chunked(doneEvent), lastChunk), measure.Empty, `{"response":"a"}`, 0},
	{"deltas that say nothing", say(streamHead, strings.Repeat(chunked(`data: {"choices":[{"delta":{"content":null}}]}`+"\n\n"), 4), ending(8, 0)), measure.Empty, `{"choices":[{"delta":{"content":null}}]}`, 0},
	{"detail as the answer", say(whole("200 OK", "application/json", `{"detail":"no"}`)), measure.StreamError, "no", 0},
	{"page as the answer", say(whole("200 OK", "text/html", "<html>Sign in</html>")), measure.Malformed, "text/html instead of a stream: <html>Sign in</html>", 0},
	{"stream called a text", say(whole("200 OK", "text/plain", tokenEvent("a", 8, 4)+doneEvent)), measure.Malformed, "text/plain instead of a stream: data: {...", 0},
	{"length too short", say("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 400\r\n\r\n" + tokenEvent("a", 8, 1) + tokenEvent("a", 8, 2)), measure.Malformed, "", 1},
	{"tokens that drip", drip(streamHead+tokensOf(1), chunked(": \n\n")), measure.Timeout, "", 1},
	{"events without end", flood(streamHead, strings.Repeat(chunked("data: {\"choices\":[]}\n\n"), 100)), measure.Timeout, "", 0},
	{"answer without end", flood("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n[", strings.Repeat("0,", 10_000)), measure.Malformed, "answer longer than 256 KiB", 0},
	{"answer of too many values", say(whole("200 OK", "application/json", `{"a":[`+strings.Repeat("0,", 100_000)+"0]}")), measure.Malformed, "more than 4120 values in a JSON text", 0},
	{"event of too many values", say(streamHead, chunked("data: {\"a\":["+strings.Repeat("0,", 100_000)+"0]}\n\n"), lastChunk), measure.Malformed, "", 0},
	{"deep event", say(streamHead, chunked("data: "+strings.Repeat("[", 1000)+"\n\n"), lastChunk), measure.Malformed, "", 0},
	{"event of many lines", say(streamHead, chunked(strings.Repeat("data: "+strings.Repeat("x", 1000)+"\n", 2000)), lastChunk), measure.Malformed, "", 0},
	{"NULs", say(streamHead, chunked("data: \x00\x00\x00\n\n"), ending(8, 4)), measure.Malformed, "", 0},
	{"count below none", say(streamHead, chunked(`data: {"choices":[{"text":""}],"usage":{"completion_tokens":-4}}`+"\n\n"), chunked(doneEvent), lastChunk), measure.Empty, "an answer without a token", 0},
	{"count beyond all", say(streamHead, tokensOf(4), ending(8, 1<<40)), measure.WrongLength, "", -1},
	{"no stream though asked", say(whole("200 OK", "application/json", `{"choices":[{"text":"a"}]}`)), measure.Malformed, "no stream, though asked for", 0},
	{"malformed event", say(streamHead, tokensOf(1), chunked("data: {\"choices\":[\n\n"), ending(8, 4)), measure.Malformed, "", 1},
	{"text for an event", say(streamHead, chunked("data: hello\n\n"), ending(8, 4)), measure.Malformed, "not JSON: hello", 0},
	{"not HTTP", say("SSH-2.0-OpenSSH_9.6\r\n\r\n"), measure.Malformed, "", 0},
	{"no number for a status", say("HTTP/1.1 abc OK\r\n\r\n"), measure.Malformed, "", 0},
	{"bad length", say("HTTP/1.1 200 OK\r\nContent-Length: -4\r\n\r\n"), measure.Malformed, "", 0},
	{"bad chunk size", say(streamHead, "xyz\r\n"), measure.Malformed, "", 0},
	{"chunk without its end", say(streamHead, "3\r\nabcdef\r\n"), measure.Malformed, "", 0},
	{"endless head", say("HTTP/1.1 200 OK\r\n" + strings.Repeat("X: "+strings.Repeat("y", 100)+"\r\n", 12_000)), measure.Malformed, "", 0},
	{"endless line in the head", flood("HTTP/1.1 200 OK\r\nX: ", strings.Repeat("y", 10_000)), measure.Malformed, "", 0},
	{"endless interim answers", flood("", strings.Repeat("HTTP/1.1 100 Continue\r\n\r\n", 1000)), measure.Malformed, "", 0},
	{"head that drips", drip("HTTP/1.1 200 OK\r\nX: ", "y"), measure.Timeout, "", 0},
	{"two lengths", say("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello"), measure.Malformed, "", 0},
	{"HTTP/2 unasked", say("\x00\x00\x12\x04\x00\x00\x00\x00\x00\r\n\r\n"), measure.Malformed, "", 0},
	{"endless line between chunks", flood(streamHead, strings.Repeat("0", 20_000)), measure.Malformed, "", 0},
	{"endless event", say("HTTP/1.1 200 OK\r\nContent-Type: " + eventStream + "\r\n\r\ndata: " + strings.Repeat("x", 2<<20)), measure.Malformed, "event longer than 256 KiB", 0},
	{"too few tokens", say(streamHead, tokensOf(3), ending(8, 3)), measure.WrongLength, "3 tokens for 4", 3},
	{"too many tokens", say(streamHead, tokensOf(5), ending(8, 5)), measure.WrongLength, "5 tokens for 4", 5},
	{"more tokens counted than came", say(streamHead, tokensOf(4), ending(8, 12)), measure.WrongLength, "12 tokens for 4 by the server's count, in 4 events", 12},
	{"compressed", say("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: gzip\r\n\r\n\x1f\x8b"), measure.Malformed, `content-encoding "gzip", which was not asked for`, 0},
	{"tokens without end", say(streamHead, tokensOf(1500)), measure.WrongLength, "more than 1016 tokens for 4", -1},
}
