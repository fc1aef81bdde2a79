package serve_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"planner/sweep/serve"
)

// A server with a first token after 20 ms and one every 2 ms from then on, its
// log, and what the log says of a request.
func Example() {
	var log bytes.Buffer
	ttft, _ := serve.ParseDistribution("20ms")
	tpot, _ := serve.ParseDistribution("2ms")
	server := &serve.Simulator{Addr: "127.0.0.1:0", Fixed: serve.Fixed{TTFT: ttft, TPOT: tpot}, Log: &log}
	if err := server.Listen(); err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	stopped := make(chan error)
	go func() { stopped <- server.Serve(ctx) }()

	answer, err := http.Post(server.URL()+"/v1/completions", "application/json", strings.NewReader(`{"prompt":[1,2,3],"max_tokens":4,"stream":true}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	stream, _ := io.ReadAll(answer.Body)
	answer.Body.Close()
	fmt.Println(bytes.Count(stream, []byte(`"text":`)), "tokens read")

	stop()
	fmt.Println(<-stopped)
	var began serve.LogStart
	var r serve.Emission
	lines := json.NewDecoder(&log)
	if err := errors.Join(lines.Decode(&began), lines.Decode(&r)); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("first due", r.Due[0]-r.Arrived, "after the arrival, last", r.Due[3]-r.Arrived)
	// Output:
	// 4 tokens read
	// <nil>
	// first due 20ms after the arrival, last 26ms
}
