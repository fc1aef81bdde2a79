package design

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"gonum.org/v1/gonum/stat"

	"planner/internal/config"
	"planner/internal/note"
	"planner/model"
	"planner/model/calibrate"
	"planner/sweep"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

// ProbeSpec says how much a probe measures.
type ProbeSpec struct {
	// Points is how many points constants are fitted to, Held how many they are then scored on.
	Points, Held int
	// Budget is the engine time of all trials together.
	Budget time.Duration
	// Date is recorded in the calibration.
	Date string
}

// ProbeStudy is the study of the command probe: closed loops of requests of equal length, most of
// them chosen for what the posterior of the constants leaves open, then some that are drawn at
// random, to score it on.
type ProbeStudy struct {
	ProbeSpec

	knobs   measure.Knobs
	options calibrate.FitOptions
	longest int // tokens of a request
	// least is the shortest time per token in which the weights can be read.
	least    time.Duration
	most     int // requests at once
	seed     uint64
	seen     []measure.Measurement
	used     []calibrate.LoadPoint
	slowdown float64 // how long trials take, over what was predicted
	fitted   *calibrate.File
	problem  error // of the last fit
	forecast map[int]calibrate.Forecast
	spent    time.Duration
}

// The loads of a probe have at most mostProbeSlots requests at once, of at most mostProbeTokens
// tokens, the longest of at least leastLongest. firstPrompt and secondSlots are of the first two,
// which any server carries and which show a single request and a batch.
const (
	mostProbeSlots  = 256
	mostProbeTokens = 4096
	probeOutput     = 48
	leastLongest    = 2 * probeOutput
	leastLengthened = 120
	mostPerSlot     = 24
	fewestPerSlot   = 4 // of 2 the means depend on which comes first: 110 and 143 ms a token of the same six requests
	firstPrompt     = 32
	secondSlots     = 8
)

// NewProbe prepares a probe of the first knob set of a configuration.
func NewProbe(cfg *config.Config, g sweep.Ground, spec ProbeSpec) (*ProbeStudy, error) {
	if g.Predict == nil {
		return nil, fmt.Errorf("probe: nothing can be simulated without model and hardware: give model.name (or model.config) and hardware.gpu")
	}
	runnable, rejected := cfg.Candidates()
	if len(runnable) == 0 {
		return nil, fmt.Errorf("probe: no set of knobs can run: %s", rejected[0].Reason.Text)
	}
	k := runnable[0]
	switch given := cfg.Given("max_model_len"); {
	case k.MaxModelLen >= leastLongest:
	case given:
		return nil, fmt.Errorf("knobs.max_model_len: %d, want at least %d, which a probe's requests may have", k.MaxModelLen, leastLongest)
	case k.MaxModelLen > 0:
		k.MaxModelLen = leastLongest
	}
	args := g.Predict.Args(k)
	p := &ProbeStudy{ProbeSpec: spec, knobs: k, seed: cfg.Workload.Seed, slowdown: 1, forecast: map[int]calibrate.Forecast{}}
	p.options = calibrate.FitOptions{Deployment: g.Predict.Deployment(k), Version: cmp.Or(cfg.Engine.Version, sweep.NewestKnown),
		Settings: args.EngineFeatures, Date: spec.Date}
	roofline, memory, err := g.Predict.Model(k)
	if err != nil {
		return nil, err
	}
	read := roofline.Bounds(sweep.MeanRequest(&cfg.Workload), memory).WeightSeconds
	p.least = time.Duration(read / args.Speculation.PerStep() * float64(time.Second))
	prompt, _ := cfg.Workload.MeanTokens()
	p.longest = min(max(cmp.Or(k.MaxModelLen, args.MaxModelLen, int(4*prompt)), leastLongest), mostProbeTokens)
	p.most = min(cmp.Or(k.MaxNumSeqs, mostProbeSlots), mostProbeSlots)
	return p, nil
}

// Rejected lists nothing: knobs that cannot run are not probed.
func (p *ProbeStudy) Rejected() []measure.Rejection { return nil }

// Next chooses the next load point.
func (p *ProbeStudy) Next() []measure.Trial {
	i := len(p.seen)
	failed := i > 0 && !p.seen[i-1].Ran() // with the only knobs there are
	if failed || p.problem != nil && i >= p.Points || i >= p.Points+p.Held || p.spent >= p.Budget {
		return nil
	}
	var t measure.Trial
	switch {
	case i == 0:
		t = p.lengthened(p.trial(1, firstPrompt, probeOutput, "one request at a time"))
	case i == 1:
		t = p.lengthened(p.trial(min(secondSlots, p.most), firstPrompt, probeOutput, "a batch"))
	case p.repeats(i) >= 0:
		t = p.seen[p.repeats(i)].Trial
		t.Why = "again: what the machine itself varies by"
	case i < p.Points:
		candidates := p.candidates()
		best, err := calibrate.Telling(p.used, candidates, p.constants(), p.options)
		if err != nil || best < 0 {
			best = (i * 7) % len(candidates)
		}
		t = p.lengthened(candidates[best].Trial)
		t.Why = "tells most of what is open"
	default:
		t = p.drawn(uint64(i))
	}
	t.Seed, t.Limit = p.seed+uint64(1000+i), p.Budget-p.spent
	if f, err := calibrate.Predict(&calibrate.LoadPoint{Trial: t}, p.constants(), p.options); err == nil {
		p.forecast[i+1] = f
	}
	return []measure.Trial{t}
}

// repeats returns the index of the trial that trial i repeats: the last two that constants are fitted to repeat the
// second and the first, and -1 stands for the others. Next to each other on a machine that others use, one request
// at a time differed by 1 % from itself, and the same batches by 15 from run to run.
func (p *ProbeStudy) repeats(i int) int {
	if of := p.Points - 1 - i; i > 1 && of < 2 && i < p.Points {
		return of
	}
	return -1
}

func (p *ProbeStudy) trial(slots, prompt, output int, why string) measure.Trial {
	w := &workload.Workload{Arrivals: workload.Constant, Turns: 1, Seed: p.seed, Timeout: p.Budget,
		Shapes: []workload.Shape{{Name: "probe", Weight: 1, Prompt: fixed(prompt), Output: fixed(output)}}}
	return measure.Trial{Knobs: p.knobs, Workload: w, Concurrency: slots, Requests: fewestPerSlot * slots, Staggered: true, Whole: true, Why: why}
}

// lengthened gives a trial as many requests, up to mostPerSlot each or leastLengthened in all, as its share of the budget allows.
func (p *ProbeStudy) lengthened(t measure.Trial) measure.Trial {
	share := p.Budget.Seconds() / float64(p.Points+p.Held)
	f, err := calibrate.Predict(&calibrate.LoadPoint{Trial: t}, p.constants(), p.options)
	if err == nil && f.Seconds > 0 {
		rounds := 0.8 * share / (f.Seconds * p.slowdown / 2)
		t.Requests = max(t.Requests, min(t.Concurrency*int(min(rounds, leastLengthened)), max(mostPerSlot*t.Concurrency, leastLengthened)))
	}
	return t
}

func fixed(n int) workload.Lengths { return workload.Lengths{Dist: workload.Fixed, Value: n} }

// candidates returns the load points that have not been measured and take at most 1.5 times an
// equal share of the rest of the budget: for each power of two of concurrent requests, a long
// prompt and prompts in steps of a factor of 4.
func (p *ProbeStudy) candidates() []calibrate.LoadPoint {
	left := (p.Budget - p.spent).Seconds() / float64(p.Points+p.Held-len(p.seen))
	shapes := [][2]int{{p.longest - probeOutput, probeOutput / 3}}
	for prompt := firstPrompt; prompt <= p.longest/4; prompt *= 4 {
		shapes = append(shapes, [2]int{prompt, probeOutput})
	}
	var all []calibrate.LoadPoint
	for slots := 1; slots <= p.most; slots *= 2 {
		for _, shape := range shapes {
			l := calibrate.LoadPoint{Trial: p.trial(slots, shape[0], shape[1], "")}
			seen := slices.ContainsFunc(p.seen, func(m measure.Measurement) bool {
				of := m.Trial.Workload.Shapes[0]
				return m.Trial.Concurrency == slots && of.Prompt.Value == shape[0] && of.Output.Value == shape[1]
			})
			if f, err := calibrate.Predict(&l, p.constants(), p.options); !seen && err == nil && f.Seconds*p.slowdown <= 1.5*left {
				all = append(all, l)
			}
		}
	}
	if len(all) == 0 {
		all = append(all, calibrate.LoadPoint{Trial: p.trial(1, firstPrompt, probeOutput/3, "")})
	}
	return all
}

// drawn returns a load point for scoring, within the range of those that constants were fitted to.
func (p *ProbeStudy) drawn(i uint64) measure.Trial {
	rng := rand.New(rand.NewPCG(p.seed, i))
	slots, prompt := 1, firstPrompt
	for _, u := range p.used {
		slots = max(slots, u.Trial.Concurrency)
		prompt = max(prompt, u.Trial.Workload.Shapes[0].Prompt.Value)
	}
	between := func(low, high int) int {
		return int(math.Round(float64(low) * math.Pow(float64(high)/float64(low), rng.Float64())))
	}
	s, n, o := between(1, slots), between(firstPrompt, prompt), between(16, probeOutput)
	t := p.trial(s, n, o, "drawn at random, to score the fit on")
	left := (p.Budget - p.spent).Seconds() / float64(p.Points+p.Held-len(p.seen))
	for t.Concurrency > 1 {
		if f, err := calibrate.Predict(&calibrate.LoadPoint{Trial: t}, p.constants(), p.options); err != nil || f.Seconds*p.slowdown <= 2*left {
			break
		}
		t = p.trial(t.Concurrency/2, n, o, t.Why)
	}
	return p.lengthened(t)
}

func (p *ProbeStudy) constants() model.Constants {
	c := model.ConstantsFor(p.options.Deployment.Hardware, model.EngineArgs{EngineVersion: p.options.Version, EngineFeatures: p.options.Settings})
	if p.fitted != nil {
		if fitted, err := p.fitted.Apply(p.options.Deployment, p.options.Version, c); err == nil {
			return fitted
		}
	}
	return c
}

// Observe fits the constants to the measurements so far.
func (p *ProbeStudy) Observe(m measure.Measurement) {
	p.seen = append(p.seen, m)
	p.spent += m.EngineTime(0)
	if len(p.seen) == 1 {
		p.options.Version = cmp.Or(sweep.ReleaseOf(m.Server.Engine), p.options.Version)
		p.options.Settings = p.options.Settings.Following(m.Server.Engine.Kind)
		p.knobs = m.Server.Knobs(p.knobs)
		p.most = min(cmp.Or(p.knobs.MaxNumSeqs, p.most), p.most)
	}
	if len(p.seen) > p.Points {
		return
	}
	if !usable(&m) {
		return
	}
	m.Valid = true
	point := calibrate.LoadPoint{Trial: m.Trial, Measurement: m}
	if f, ok := p.forecast[len(p.seen)]; ok && f.Seconds > 0 && m.Duration > 0 {
		p.slowdown *= m.Duration.Seconds() / (f.Seconds * p.slowdown)
	}
	p.used = append(p.used, point)
	if len(p.used) < 2 {
		return
	}
	file, err := calibrate.Fit(p.used, p.options)
	if p.problem = err; err == nil {
		p.fitted, p.slowdown = &file, 1
	}
}

// mostLate is the share of the mean time to first token by which a client's p99 may be late: the
// means that constants are fitted to hardly move by it, whereas a limit might be missed.
const mostLate = 0.1

// ruinous are the doubts under which the means are those of another load, or of the client.
var ruinous = []note.Kind{note.ClientUnsent, note.ClientStood, note.ClientFiles, note.RequestsDropped, note.RequestsUnsent, note.NoRequests,
	note.TokensEstimated, note.TokensWhole, note.TokensPerChunk, note.TokensBunched, note.TokensTooFew, note.ShorterAnswers, note.PromptsOff, note.RequestsFailed}

// usable reports whether the means of a trial are those of the engine.
func usable(m *measure.Measurement) bool {
	if !m.Ran() || m.Aborted.Text != "" || m.Requests == 0 || m.Failed > 0 {
		return false
	}
	return m.Valid || m.SendLag.P99 <= time.Duration(mostLate*float64(m.TTFT.Mean)) &&
		!slices.ContainsFunc(m.Warnings, func(n note.Note) bool { return slices.Contains(ruinous, n.Kind) })
}

// ProbePoint is a load point of a probe.
type ProbePoint struct {
	Trial       int    `json:"trial"`
	Concurrency int    `json:"concurrency"`
	Prompt      int    `json:"prompt_tokens"`
	Output      int    `json:"output_tokens"`
	Why         string `json:"why"`
	// Used says that the constants were fitted to it.
	Used bool `json:"used"`
	// What was predicted before it ran, with what was known then, and what was measured.
	PredictedTPOT float64 `json:"predicted_tpot_ms"`
	TPOT          float64 `json:"tpot_ms"`
	PredictedTTFT float64 `json:"predicted_ttft_ms"`
	TTFT          float64 `json:"ttft_ms"`
}

// Probed is the answer of a probe.
type Probed struct {
	Points []ProbePoint `json:"points"`
	// Calibration is nil until there are enough points to fit.
	Calibration *calibrate.File `json:"calibration"`
	// TPOTError and TTFTError are mean absolute relative errors on the points that were not used;
	// NoiseTPOT and NoiseTTFT are the mean absolute log ratios of the first two trials and their repetitions.
	TPOTError  *float64      `json:"tpot_error"`
	TTFTError  *float64      `json:"ttft_error"`
	NoiseTPOT  *float64      `json:"tpot_noise"`
	NoiseTTFT  *float64      `json:"ttft_noise"`
	EngineTime time.Duration `json:"engine_time_s"`
	// Scored is how many points the errors are averaged over.
	Scored int `json:"scored"`
	note.Warnings

	Seen []measure.Measurement `json:"-"`
}

// CalibrationFile is the name of a probe's calibration in its run folder.
const CalibrationFile = "engine.calibration"

// Files returns what a run folder keeps of the probe, by file name.
func (p *Probed) Files() map[string]any {
	files := map[string]any{"probe.json": p}
	var b bytes.Buffer
	if p.Calibration != nil && p.Calibration.Write(&b) == nil {
		files[CalibrationFile] = b.Bytes()
	}
	return files
}

// Answer returns the calibration with its scores.
func (p *ProbeStudy) Answer() (sweep.Answer, error) {
	if len(p.seen) == 0 {
		return sweep.Answer{}, nil
	}
	out := &Probed{EngineTime: p.spent, Seen: p.seen}
	a := sweep.Answer{State: sweep.Done, Value: out}
	for i := range p.seen {
		p.tell(out, i)
	}
	p.noise(out)
	if p.fitted == nil {
		a.State = sweep.Failed
		why := cmp.Or(p.problem, fmt.Errorf("%d of %d trials can be trusted", len(p.used), len(p.seen)))
		out.Warnings.Add(note.Text(why.Error()))
		return a, nil
	}
	out.Warnings.Add(note.FromTexts(p.fitted.Warnings)...)
	file := *p.fitted
	if file.Scores = p.scores(out); out.Scored == 0 && p.Held > 0 {
		a.State = sweep.Undecided // it is not known how far off the fit is
	}
	if err := file.Write(io.Discard); err != nil { // nothing could read it
		a.State = sweep.Failed
		out.Warnings.Add(note.Text(err.Error()))
		return a, nil
	}
	out.Calibration = &file
	return a, nil
}

func (p *ProbeStudy) tell(out *Probed, i int) {
	m := &p.seen[i]
	if !m.Ran() || m.Trial.Workload == nil {
		out.Warnings.Add(note.Text(fmt.Sprintf("trial %d: %s", i+1, cmp.Or(m.Rejected.Text, "its traffic is not recorded"))))
		return
	}
	shape := m.Trial.Workload.Shapes[0]
	f := p.forecast[i+1]
	point := ProbePoint{
		Trial: i + 1, Concurrency: m.Trial.Concurrency, Prompt: shape.Prompt.Value, Output: shape.Output.Value, Why: m.Trial.Why,
		Used:          slices.ContainsFunc(p.used, func(u calibrate.LoadPoint) bool { return u.Trial.Number == m.Trial.Number }),
		PredictedTPOT: 1e3 * f.TPOT, TPOT: 1e3 * m.TPOT.Mean.Seconds(), PredictedTTFT: 1e3 * f.TTFT, TTFT: 1e3 * m.TTFT.Mean.Seconds(),
	}
	out.Points = append(out.Points, point)
	if tpot := m.TPOT.Mean; tpot > 0 && tpot < p.least && !out.Notes.Has(note.FasterThanRead) {
		out.Warnings.Add(note.New(note.FasterThanRead, tpot.Round(10*time.Microsecond), p.least.Round(10*time.Microsecond)))
	}
	if !usable(m) {
		why := cmp.Or(m.Complaint(), m.Aborted.Text)
		if why == "" && len(m.Warnings) > 0 {
			why = m.Warnings[0].String()
		}
		out.Warnings.Add(note.Text(fmt.Sprintf("trial %d cannot be trusted: %s", i+1, why)))
	}
}

// noise compares the trials that were repeated.
func (p *ProbeStudy) noise(out *Probed) {
	var tpot, ttft []float64
	for i, b := range out.Points {
		k := p.repeats(i)
		if k < 0 {
			continue
		}
		if a := out.Points[k]; a.TPOT > 0 && b.TPOT > 0 && a.TTFT > 0 && b.TTFT > 0 {
			tpot, ttft = append(tpot, math.Abs(math.Log(b.TPOT/a.TPOT))), append(ttft, math.Abs(math.Log(b.TTFT/a.TTFT)))
		}
	}
	if len(tpot) > 0 {
		out.NoiseTPOT, out.NoiseTTFT = new(stat.Mean(tpot, nil)), new(stat.Mean(ttft, nil))
	}
}

// scores returns the predictions for the points held out of the fit, and sets their mean errors.
func (p *ProbeStudy) scores(out *Probed) []calibrate.Score {
	var scores []calibrate.Score
	var tpot, ttft []float64
	for _, x := range out.Points {
		if x.Used || !usable(&p.seen[x.Trial-1]) || x.Trial <= p.Points || !(x.PredictedTPOT > 0 && x.TPOT > 0 && x.TTFT > 0) {
			continue
		}
		s := calibrate.Score{Date: p.Date, Concurrency: x.Concurrency, Prompt: x.Prompt, Output: x.Output}
		s.Figure, s.Predicted, s.Measured = "tpot.mean", x.PredictedTPOT, x.TPOT
		scores, tpot = append(scores, s), append(tpot, math.Abs(s.Error()))
		s.Figure, s.Predicted, s.Measured = "ttft.mean", x.PredictedTTFT, x.TTFT
		scores, ttft = append(scores, s), append(ttft, math.Abs(s.Error()))
	}
	if out.Scored = len(tpot); out.Scored > 0 {
		out.TPOTError, out.TTFTError = new(stat.Mean(tpot, nil)), new(stat.Mean(ttft, nil))
	}
	return scores
}
