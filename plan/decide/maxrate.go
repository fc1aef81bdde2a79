package decide

import (
	"slices"

	"planner/internal/config"
	"planner/internal/note"
	"planner/plan"
	"planner/plan/diagnose"
	"planner/plan/trust"
	"planner/search"
	"planner/sweep"
	"planner/sweep/measure"
)

// RateSearch is the study of the command search: the maximum rate of the only knob
// set of a configuration.
type RateSearch struct {
	searches

	search *search.MaxRate
}

// FoundRate is the answer of a search. Its JSON is the result's, with what the trials say of
// the server and of themselves.
type FoundRate struct {
	search.Result // by the draw of the requests alone
	// Rate is the estimate as a plan of the same instance has it: with what is not known of
	// the simulated engine's constants. Assumptions say so.
	Rate        search.Estimate
	Assumptions []string
	Background  Background
}

// foundFile is a rate in a file: null where it is not known, and undecided where a budget ended the search before any was.
type foundFile struct {
	Estimate *search.Estimate `json:"max_rate_per_s"`
	search.Result
	Warnings []string `json:"warnings"` // the notes in words
	// Drawn is the estimate by the draw of the requests alone, null where max_rate_per_s is
	// that, or not known.
	Drawn       *search.Estimate `json:"max_rate_by_requests_alone_per_s"`
	Assumptions []string         `json:"assumptions"` // what the figures rest on, in sentences
	// Diagnosis is what of the server is not as it should be.
	Diagnosis []diagnose.Finding `json:"diagnosis"`
	// Trust holds the trials against the checklist of a benchmark.
	Trust []trust.Item `json:"trust"`
}

// Written is the rate in a file, with what follows from the trials.
func (f *FoundRate) Written() any {
	w := foundFile{Result: f.Result, Warnings: f.Warnings.Texts(), Assumptions: f.Assumptions, Diagnosis: f.Background.Diagnosis, Trust: f.Background.Trust}
	switch {
	case f.Estimate.Value > 0 && f.Rate != f.Estimate:
		w.Drawn, w.Estimate = &f.Estimate, &f.Rate
	case f.Estimate.Value > 0:
		w.Estimate = &f.Estimate
	case f.Outcome == search.OutOfBudget:
		w.Outcome = search.Undecided
	}
	return w
}

// Files are what a run folder keeps of it, by name.
func (f *FoundRate) Files() map[string]any { return map[string]any{"search.json": f} }

// NewRateSearch prepares the search of a configuration's only knob set. Where that does not run, this is the answer.
func NewRateSearch(cfg *config.Config, g sweep.Ground) (*RateSearch, error) {
	all, err := searchesOf(cfg, g)
	s := &RateSearch{searches: all}
	if len(all.instances) > 0 {
		s.Stages = []func() sweep.Source{s.start, s.certify}
	}
	return s, err
}

// Narrow leaves everything: there is one part.
func (s *RateSearch) Narrow(string, bool) {}

// start begins the search, with what is predicted of the knob set.
func (s *RateSearch) start() sweep.Source {
	s.failed = predict(s.cfg, s.ground, s.instances)
	s.search = search.NewMaxRate(maxRateConfig(s.cfg, s.instances[0].priors[0]))
	if s.failed != nil {
		return nil
	}
	return s.search
}

func (s *RateSearch) certify() sweep.Source {
	r := s.search.Result()
	if s.failed != nil || r.Outcome == search.Infeasible || r.Outcome == search.Unmeasured || r.Outcome == search.Searching {
		return nil
	}
	return s.certifying(s.instances[0].priors[0], r)
}

// Best is what is known of the rate so far.
func (s *RateSearch) Best() (best search.Result, of string) {
	if s.search == nil || s.certificate != nil {
		return best, ""
	}
	return s.search.Result(), ""
}

// Answer is what is known of the maximum rate.
func (s *RateSearch) Answer() (sweep.Answer, error) {
	if len(s.instances) == 0 {
		out := s.rejected[0]
		r := search.Result{Knobs: out.Knobs, Outcome: search.Infeasible, Reason: out.Reason}
		return sweep.Answer{State: sweep.Infeasible, Value: &FoundRate{Result: r, Background: Background{Subject: subject(s.cfg, out.Knobs), Search: &r}}}, nil
	}
	if s.failed != nil || s.search == nil {
		return sweep.Answer{State: sweep.Failed}, s.failed
	}
	r := s.search.Result()
	k := s.instances[0].priors[0].Knobs
	doubt, err := s.doubtOf(k, r.Estimate)
	if err != nil {
		return sweep.Answer{State: sweep.Failed}, err
	}
	found := &FoundRate{Rate: widen(r.Estimate, doubt)}
	if len(doubt) > 0 {
		found.Assumptions = append(found.Assumptions, doubtText(doubt))
	}
	r.Warnings = brokeDown(slices.Concat(configured(s.cfg), r.Warnings, ofOtherLoad(s.Seen), uncalibrated(s.cfg, s.ground, k), s.busyFrontEnd(k, found.Rate.Value),
		s.unlimitedWait(k, found.Rate, found.Rate.Safe, "safe rate"), s.ofConversations(k, r.Estimate.Value), fewSlots(s.cfg, r.Binding, inFlightAt(s.Seen, k), r.Estimate.Value),
		note.If(!s.ground.Virtual && s.ground.Owned && r.Estimate.Value > 0, note.OneStart)), s.Seen, k, r.Binding)
	state := s.state(&r)
	if o := (plan.Offer{Rate: found.Rate}); state == sweep.Done {
		if loosen(&o, doubt); o.Loose.Text != "" {
			state, r.Warnings = sweep.Undecided, append(r.Warnings, o.Loose.Note)
		}
	}
	if !s.Ended {
		if r.Estimate.Value <= 0 {
			return sweep.Answer{}, nil
		}
		state, r.Reason = sweep.Unfinished, note.Because(note.CertificateInterrupted)
		if r.Outcome == search.Searching {
			r.Reason = note.Because(note.StillWide)
		}
	}
	if r.Certificate != nil && s.ground.Virtual {
		found.Assumptions = append(found.Assumptions, certifiedAsIs)
	}
	found.Result = r
	found.Background = Background{Subject: subject(s.cfg, k), Knobs: k, Search: &r, Trials: s.Seen}
	found.Background.Diagnosis, found.Background.Trust = s.judge(k, s.instances[0].gpu.Hardware.Name, r.Estimate.Value)
	return sweep.Answer{State: state, Value: found}, nil
}

// state is how a finished search ends, with its certificate, which it adds to the
// result.
func (s *RateSearch) state(r *search.Result) sweep.StudyState {
	certified := true
	if s.certificate != nil && s.Ended {
		c := s.certificate()
		r.Certificate = &c
		r.EngineTime += c.EngineTime
		r.Trials += c.Looks
		if certified = c.State == measure.Met; !certified {
			r.Warnings = append(r.Warnings, note.New(note.Uncertified, c.Rate, c.Reason.Text))
		}
	}
	switch {
	case r.Outcome == search.Unmeasured:
		return sweep.Failed
	case r.Outcome == search.Infeasible:
		return sweep.Infeasible
	case r.Outcome == search.OutOfBudget || !certified:
		return sweep.Undecided
	}
	return sweep.Done
}

// ofOtherLoad is what the last trial to say so says of answers that were not those
// of the workload: the rate that was found is then of another load.
func ofOtherLoad(trials []measure.Measurement) note.Notes {
	for _, m := range slices.Backward(trials) {
		if said := m.Warnings.Of(note.ShorterAnswers); len(said) > 0 {
			return said[:1]
		}
	}
	return nil
}
