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

// RateSearch is the study of the command search: the maximum rate of a configuration's only knob set.
type RateSearch struct {
	searches

	search *search.MaxRate
}

// FoundRate is the answer of a search. Its JSON is the result's, with the trials' findings on the server and on
// themselves.
type FoundRate struct {
	Rate *search.Estimate `json:"max_rate_per_s"`
	search.Result
	Sentences []string `json:"warnings"` // the notes in words
	// Drawn is the estimate with the uncertainty of the drawn requests alone; null if max_rate_per_s is that,
	// or unknown.
	Drawn       *search.Estimate `json:"max_rate_by_requests_alone_per_s"`
	Assumptions []string         `json:"assumptions"` // what the figures rest on, in sentences
	// Diagnosis lists what is wrong with the server.
	Diagnosis []diagnose.Finding `json:"diagnosis"`
	// Trust checks the trials against a benchmark checklist.
	Trust []trust.Item `json:"trust"`

	Seen []measure.Measurement `json:"-"`
}

// Files are what a run folder keeps of it, by name.
func (f *FoundRate) Files() map[string]any { return map[string]any{"search.json": f} }

// NewRateSearch prepares the search of a configuration's only knob set. If that cannot run, this is the answer.
func NewRateSearch(cfg *config.Config, g sweep.Ground) (*RateSearch, error) {
	all, err := searchesOf(cfg, g)
	s := &RateSearch{searches: all}
	if len(all.instances) > 0 {
		s.Stages = []func() sweep.Source{s.start, s.certify}
	}
	return s, err
}

// Narrow does nothing: there is only one part.
func (s *RateSearch) Narrow(string, bool) {}

// start begins the search, with the knob set's prediction as its prior.
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
		out := s.Unable[0]
		r := search.Result{Knobs: out.Knobs, Outcome: search.Infeasible, Reason: out.Reason}
		return sweep.Answer{State: sweep.Infeasible, Value: &FoundRate{Result: r}}, nil
	}
	if s.failed != nil || s.search == nil {
		return sweep.Answer{State: sweep.Failed}, s.failed
	}
	r := s.search.Result()
	k := s.instances[0].priors[0].Knobs
	// As a plan of the same instance has it, including the uncertainty of the simulated engine's constants.
	of := s.rated(k, r)
	if s.failed != nil {
		return sweep.Answer{State: sweep.Failed}, s.failed
	}
	rate, found := of.rate, &FoundRate{Seen: s.Seen}
	if len(of.doubt) > 0 {
		found.Assumptions = append(found.Assumptions, doubtText(of.doubt))
	}
	r.Warnings = brokeDown(slices.Concat(configured(s.cfg), r.Warnings, ofOtherLoad(s.Seen, k), uncalibrated(s.cfg, s.ground, k), s.busyFrontEnd(k, rate.Value),
		s.unlimitedWait(k, rate, rate.Safe, "safe rate"), s.ofConversations(k, r.Estimate.Value), fewSlots(s.cfg, r.Binding, inFlightAt(s.Seen, k), r.Estimate.Value),
		note.If(!s.ground.Virtual && s.ground.Owned && r.Estimate.Value > 0, note.OneStart)), s.Seen, k, r.Binding)
	state := s.state(&r)
	if o := (plan.Offer{Rate: rate}); state == sweep.Done {
		if loosen(&o, of.doubt); o.Loose.Text != "" {
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
	if r.Estimate.Value > 0 {
		found.Rate = &rate
	} else if r.Outcome == search.OutOfBudget {
		r.Outcome = search.Undecided // a budget ended the search before any rate was known
	}
	if rate != r.Estimate {
		found.Drawn = &r.Estimate
	}
	found.Result, found.Sentences = r, r.Warnings.Texts()
	found.Diagnosis, found.Trust = s.judge(k, s.instances[0].gpu.Hardware.Name, r.Estimate.Value)
	return sweep.Answer{State: state, Value: found}, nil
}

// state returns how a finished search ends. It adds the certificate to the result.
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

// ofOtherLoad returns the last warnings of trials of some knobs that answers did not have the workload's lengths, or
// were of several models or not of tokens alone: the rate is then that of something else.
func ofOtherLoad(trials []measure.Measurement, k measure.Knobs) (out note.Notes) {
	for _, kind := range []note.Kind{note.ShorterAnswers, note.AnswersOfModels, note.ChunksTooMany} {
		var last note.Notes
		for _, m := range measure.RanWith(trials, k) {
			if said := m.Warnings.Of(kind); len(said) > 0 {
				last = said[:1]
			}
		}
		out = append(out, last...)
	}
	return out
}
