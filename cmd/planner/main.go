// Planner answers how many GPUs, which server flags and what cost a traffic and
// a service-level objective ask for, with an interval.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// version is what --version prints; the build sets it with -ldflags
// "-X main.version=...".
var version = "0.1.0"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args, os.Stdout, os.Stderr))
}

// run is the whole program but for the process around it.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	app := newApp(stdout, stderr)
	err := app.RunContext(ctx, permute(app, args))
	code, message := exitCode(err)
	if message != "" {
		fmt.Fprintln(stderr, message)
	}
	return code
}
