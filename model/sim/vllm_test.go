package sim

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"planner/internal/evidence/must"
	"planner/model"
	"planner/sweep/workload"
)

var casesFlag = flag.String("cases", "", "comma-separated recordings (.jsonl or .jsonl.gz) for TestVLLMSteps instead of those in testdata")

// recording is one case that vLLM's own scheduler class ran, see
// testdata/vllm-scheduler/README.md.
type recording struct {
	VLLM   string
	Config struct {
		MaxNumSeqs              int     `json:"max_num_seqs"`
		MaxNumBatchedTokens     int     `json:"max_num_batched_tokens"`
		LongPrefill             int     `json:"long_prefill_token_threshold"`
		MaxModelLen             int     `json:"max_model_len"`
		BlockSize               int     `json:"block_size"`
		PrefixCaching           bool    `json:"prefix_caching"`
		AsyncScheduling         bool    `json:"async_scheduling"`
		ChunkedPrefill          *bool   `json:"chunked_prefill"`
		SchedulerReserveFullISL *bool   `json:"scheduler_reserve_full_isl"`
		Watermark               float64 `json:"watermark"`
		NumBlocks               int     `json:"num_blocks"`
		Inner                   bool    `json:"inner"`  // kernels write states out within a chunk
		States                  bool    `json:"states"` // layers with states beside those of attention, in an ample pool
	}
	Requests []recordedRequest
	Steps    []recordedStep
	Complete bool
}

type recordedRequest struct {
	ID        int
	Step      int
	Prompt    int
	Prefix    int
	PrefixLen int `json:"prefix_len"`
	Parent    *int
	Output    int
}

// recordedStep is what a step did, in vLLM and here.
type recordedStep struct {
	Scheduled [][2]int
	Preempted []int
	Finished  []int
	Cached    [][2]int
	Free      int
	Running   int
	Waiting   int
}

func (x *recordedStep) equal(y *recordedStep) bool {
	return x.Free == y.Free && x.Running == y.Running && x.Waiting == y.Waiting && slices.Equal(x.Scheduled, y.Scheduled) &&
		slices.Equal(x.Preempted, y.Preempted) && slices.Equal(x.Finished, y.Finished) && slices.Equal(x.Cached, y.Cached)
}

// TestVLLMSteps compares every step with recordings of vLLM's scheduler classes:
// which requests, how many tokens each, in which order, who is preempted, who
// finishes, what was cached, how many blocks are free. Each case runs twice, with
// steady sequences and without.
func TestVLLMSteps(t *testing.T) {
	files := strings.Split(*casesFlag, ",")
	if *casesFlag == "" {
		var err error
		if files, err = filepath.Glob("testdata/vllm-scheduler/*.jsonl.gz"); err != nil || len(files) == 0 {
			t.Fatalf("no recordings in testdata: %v", err)
		}
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			var cases, steps int
			var spent [2]time.Duration
			must.OK(eachRecording(file, func(rec *recording) {
				cases++
				steps += len(rec.Steps)
				for i, plain := range []bool{false, true} {
					start := time.Now()
					if err := replay(rec, plain); err != nil {
						t.Errorf("case %d (%s, step by step %v): %v", cases, rec.VLLM, plain, err)
					}
					spent[i] += time.Since(start)
				}
			}))
			if cases == 0 {
				t.Fatal("no cases")
			}
			t.Logf("%d cases, %d steps equal twice: %.2f million steps/s with steady sequences, %.2f without", cases, steps,
				float64(steps)/spent[0].Seconds()/1e6, float64(steps)/spent[1].Seconds()/1e6)
		})
	}
}

func eachRecording(file string, f func(*recording)) error {
	in, err := os.Open(file)
	if os.IsNotExist(err) && !filepath.IsAbs(file) {
		// Tests run in the package's folder, people type in the module's.
		in, err = os.Open(filepath.Join("..", "..", file))
	}
	if err != nil {
		return err
	}
	defer in.Close()
	var r io.Reader = bufio.NewReader(in)
	if strings.HasSuffix(file, ".gz") {
		if r, err = gzip.NewReader(r); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	d := json.NewDecoder(r)
	for {
		rec := new(recording)
		if err := d.Decode(rec); err == io.EOF {
			return nil
		} else if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		f(rec)
	}
}

// scheduler builds what the recording's configuration asks for.
func (rec *recording) scheduler() (*scheduler, error) {
	v, err := model.ParseVersion(rec.VLLM)
	if err != nil {
		return nil, err
	}
	c := &rec.Config
	rules := RulesFor(v)
	rules.Async = c.AsyncScheduling
	if c.SchedulerReserveFullISL != nil {
		rules.FullSequenceGate = *c.SchedulerReserveFullISL
	}
	return newScheduler(Config{
		Rules: rules,
		Seqs:  c.MaxNumSeqs, BatchTokens: c.MaxNumBatchedTokens, ModelLen: c.MaxModelLen,
		LongPrefill:  c.LongPrefill,
		WholePrefill: c.ChunkedPrefill != nil && !*c.ChunkedPrefill, PrefixCaching: c.PrefixCaching,
		Watermark: c.Watermark, Blocks: c.NumBlocks, Layout: model.KVLayout{BlockTokens: c.BlockSize},
		AlignedStates: c.States, InnerStates: c.Inner,
	}), nil
}

// Contents of recorded tokens: a prefix group, a request's own tokens, its output.
const (
	contentPrefix = 1 << 32 << iota
	contentOwn
	contentReply
)

// request turns recorded requests into ours. A request with a parent begins with
// the first tokens of its prompt and output.
func (rec *recording) request(i int) *workload.Request {
	r := &rec.Requests[i]
	return &workload.Request{ID: r.ID, Prompt: r.Prompt, Output: r.Output, Shared: cut(rec.beginning(i), r.PrefixLen),
		Own: workload.Content(contentOwn | r.ID), Generated: workload.Content(contentReply | r.ID)}
}

func (rec *recording) beginning(i int) []workload.Segment {
	r := &rec.Requests[i]
	if r.Parent == nil {
		if r.PrefixLen == 0 {
			return nil
		}
		return []workload.Segment{{Content: workload.Content(contentPrefix | r.Prefix), Tokens: r.PrefixLen}}
	}
	p := slices.IndexFunc(rec.Requests, func(q recordedRequest) bool { return q.ID == *r.Parent })
	q := &rec.Requests[p]
	return append(cut(rec.beginning(p), q.PrefixLen),
		workload.Segment{Content: workload.Content(contentOwn | q.ID), Tokens: q.Prompt - q.PrefixLen},
		workload.Segment{Content: workload.Content(contentReply | q.ID), Tokens: q.Output})
}

func cut(segments []workload.Segment, tokens int) []workload.Segment {
	var out []workload.Segment
	for _, s := range segments {
		s.Tokens = min(s.Tokens, tokens)
		tokens -= s.Tokens
		out = append(out, s)
	}
	return out
}

// replay runs one case through the scheduler and reports the first step that
// differs.
func replay(rec *recording, plain bool) error {
	s, err := rec.scheduler()
	if err != nil {
		return err
	}
	s.steady.off = plain
	order := make([]int, len(rec.Requests))
	requests := make([]*workload.Request, len(rec.Requests))
	for i := range order {
		order[i] = i
		requests[i] = rec.request(i)
	}
	slices.SortFunc(order, func(a, b int) int {
		x, y := &rec.Requests[a], &rec.Requests[b]
		if x.Step != y.Step {
			return x.Step - y.Step
		}
		return x.ID - y.ID
	})
	d := driver{s: s}
	for k := range rec.Steps {
		for len(order) > 0 && rec.Requests[order[0]].Step <= k {
			s.add(requests[order[0]].ID, requests[order[0]], false)
			order = order[1:]
		}
		got, want := d.step(), &rec.Steps[k]
		if rec.Config.States {
			got.Free = want.Free // blocks of states are not told apart here
		}
		if !got.equal(want) {
			return fmt.Errorf("step %d:\n got %+v\nwant %+v", k, *got, *want)
		}
	}
	if rec.Complete && (len(order) > 0 || len(s.running)+s.waiting.len() > 0) {
		return fmt.Errorf("%d requests left after the last step", len(order)+len(s.running)+s.waiting.len())
	}
	return nil
}

// driver steps a scheduler as vLLM's engine core does: with asynchronous
// scheduling the next batch is made before the output of the last one is known.
type driver struct {
	s      *scheduler
	flight []*stepBatch
	got    recordedStep
}

func (d *driver) step() *recordedStep {
	s, got := d.s, &d.got
	depth := 1
	if s.config.Rules.Async {
		depth = 2
	}
	got.Scheduled, got.Preempted, got.Finished, got.Cached = got.Scheduled[:0], got.Preempted[:0], got.Finished[:0], got.Cached[:0]
	b := s.schedule()
	for _, r := range s.running[:s.steady.members] {
		if r.steady.member {
			got.Scheduled = append(got.Scheduled, [2]int{r.id, 1})
		}
	}
	for _, it := range b.items {
		got.Scheduled = append(got.Scheduled, [2]int{it.r.id, it.tokens})
	}
	got.Preempted = append(got.Preempted, b.preempted...)
	slices.Sort(got.Preempted)
	for _, a := range b.admitted {
		if a.cached > 0 {
			got.Cached = append(got.Cached, [2]int{a.id, a.cached})
		}
	}
	slices.SortFunc(got.Cached, func(a, b [2]int) int { return a[0] - b[0] })
	empty := b.empty()
	if !empty {
		d.flight = append(d.flight, b)
	}
	if len(d.flight) > 0 && (len(d.flight) == depth || empty) {
		got.Finished = append(got.Finished, s.output(d.flight[0]).finished...)
		d.flight = d.flight[:copy(d.flight, d.flight[1:])]
	}
	got.Free, got.Running, got.Waiting = s.pool.free, len(s.running), s.waiting.len()
	return got
}
