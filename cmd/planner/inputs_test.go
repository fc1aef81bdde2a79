package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"planner/internal/evidence/must"
	"planner/sweep"

	"github.com/klauspost/compress/zstd"
)

// TestInputsAreBounded: whatever a file holds, it is read within half a gigabyte of memory
// or refused with a reason.
func TestInputsAreBounded(t *testing.T) {
	t.Parallel()
	dir := runsIn(t)
	must.OK(os.CopyFS(filepath.Join(dir, "run"), os.DirFS(finished().folder)))
	for name, data := range hostileFiles() {
		put(t, filepath.Join(dir, name), data)
	}
	for args, want := range map[string]string{
		"estimate nested.toml":    "nested.toml:1: holds more than 64 tables, lists or keys within each other",
		"estimate dotted.toml":    "within each other",
		"estimate crossed.toml":   "crossed.toml:2: knobs.max_num_seqs: has 60000 values, want at most 10000",
		"estimate /dev/zero":      "larger than 1 MiB",
		"trace /dev/zero":         "longer than 16777216 bytes",
		"fit /dev/zero":           "larger than 32 MiB",
		"fit values.json":         "more than 700000 values",
		"import points.csv -o in": "more than 20000 load points",
		"calibrate run":           "more than 1000000",
		"report journal":          "more than 50000 lines",
		"resume journal":          "more than 50000 lines",
		"report stored":           "more than 4000000 values",
	} {
		t.Run(args, func(t *testing.T) {
			run := filepath.Join(dir, "run")
			switch args {
			case "calibrate run":
				bomb(run)
			case "report journal", "resume journal", "report stored":
				run = filepath.Join(dir, strings.Fields(args)[1])
				copyRun(t, filepath.Join(dir, "run"), run)
			}
			words := append(strings.Fields(args), map[string][]string{"calibrate": {"--engine-version", "0.11.0"}, "fit": {"--slo", "ttft.p99=1s", "--rate", "1"}}[strings.Fields(args)[0]]...)
			out, peak := peakOf(t, planner(t, dir, words...))
			if !strings.Contains(out, want) {
				t.Errorf("%.600s, want %q", out, want)
			}
			if peak > 512<<10 {
				t.Errorf("it took %d KiB of memory", peak)
			}
		})
	}
}

// peakOf runs a command and returns what it printed and the most memory that it took, in
// KiB: 0 where the system does not tell.
func peakOf(t *testing.T, cmd *exec.Cmd) (printed string, peak int) {
	printed, err := watched(cmd, 5*time.Millisecond, func() {
		status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid)) // none once it has ended
		if _, line, ok := strings.Cut(string(status), "VmHWM:"); ok {
			var now int
			fmt.Sscan(line, &now)
			peak = max(peak, now)
		}
	})
	if err == nil {
		t.Error("it was accepted")
	}
	return printed, peak
}

// watched runs a command, looks at it again and again until it has ended, and returns what it printed.
func watched(cmd *exec.Cmd, every time.Duration, look func()) (printed string, err error) {
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	must.OK(cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		look()
		select {
		case err := <-ended:
			return out.String(), err
		case <-time.After(every):
		}
	}
}

// hostileFiles are small files that ask for much memory.
func hostileFiles() map[string][]byte {
	numbers := func(from, to int) string {
		var b strings.Builder
		for i := from; i < to; i++ {
			fmt.Fprintf(&b, "%d,", i)
		}
		return b.String()
	}
	return map[string][]byte{
		"nested.toml":  []byte("x = " + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000)),
		"dotted.toml":  []byte("[x" + strings.Repeat(".a", 100_000) + "]\n"),
		"crossed.toml": []byte("[knobs]\nmax_num_seqs = [" + numbers(1, 60_001) + "]\nmax_num_batched_tokens = [" + numbers(60_000, 70_000) + "]\n"),
		"values.json":  []byte(`{"request_throughput": 1, "duration": 1, "completed": 1, "itls": [` + strings.Repeat("0,", 1_000_000) + "0]}"),
		"points.csv":   []byte("rate_per_s,ttft_p50_ms\n" + strings.Repeat("1,2\n", 30_000)),
	}
}

// bomb gives the trials of a run records that unpack to two million.
func bomb(folder string) {
	var b bytes.Buffer
	z := must.Get(zstd.NewWriter(&b))
	lines := bytes.Repeat([]byte("{}\n"), 1_000_000)
	for range 2 {
		must.Get(z.Write(lines))
	}
	must.OK(z.Close())
	for trial := range 40 {
		must.OK(sweep.Folder{Path: folder}.Write(sweep.RecordsName(trial+1), b.Bytes()))
	}
}

// copyRun copies a run; in the copy the journal, or the stored answer, asks for too much.
func copyRun(t *testing.T, from, to string) {
	os.RemoveAll(to)
	must.OK(os.CopyFS(to, os.DirFS(from)))
	name, data := storedFile, bytes.Repeat([]byte("{},"), 5_000_000)
	if filepath.Base(to) == "journal" {
		name, data = "journal.jsonl", bytes.Repeat([]byte("{}\n"), 400_000)
		os.Remove(filepath.Join(to, storedFile))
	}
	put(t, filepath.Join(to, name), data)
}

// TestSecondSignalEndsReading: a command that waits for a pipe to which nobody writes ends
// at the second Ctrl-C.
func TestSecondSignalEndsReading(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skip(err)
	}
	cmd := planner(t, dir, "trace", "pipe")
	must.OK(cmd.Start())
	w := must.Get(os.OpenFile(pipe, os.O_WRONLY, 0)) // returns once planner reads
	defer w.Close()
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	limit := time.After(20 * time.Second)
	for {
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Log(err) // it has just ended
		}
		select {
		case <-ended:
			if code := cmd.ProcessState.ExitCode(); code != exitInterrupted {
				t.Errorf("exit code %d", code)
			}
			return
		case <-limit:
			cmd.Process.Kill()
			t.Fatal("it still reads")
		case <-time.After(100 * time.Millisecond):
		}
	}
}
