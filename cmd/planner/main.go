// Planner answers how many GPUs, which server flags and what cost a traffic and
// a service-level objective ask for, with an interval.
package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"planner/internal/printable"
	"planner/sweep/engine"
)

// version is what --version prints; the build sets it with -ldflags
// "-X main.version=...".
var version = "0.1.0"

func main() {
	if code, ran := engine.Guard(os.Args); ran {
		os.Exit(code)
	}
	beFrugal()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	signals := &interrupts{exit: os.Exit}
	signals.watch(cancel)
	os.Exit(execute(ctx, os.Args, os.Stdout, os.Stderr, signals))
}

// execute is the whole program but for the process around it.
func execute(ctx context.Context, args []string, stdout, stderr io.Writer, signals *interrupts) int {
	app := newApp(stdout, stderr, signals)
	err := app.RunContext(ctx, permute(app, args))
	code, message := exitCode(err)
	if message != "" {
		fmt.Fprintln(printable.Writer(stderr), message)
	}
	return code
}
