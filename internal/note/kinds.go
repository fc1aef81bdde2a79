package note

// Kind says what a note is about.
type Kind string

// Unknown is the kind of a note of which only the sentence is known.
const Unknown Kind = "unknown"

// What a client says of itself, and a trial of its client.
const (
	ClientLate       Kind = "client_late"
	ClientUnsent     Kind = "client_unsent"
	ClientOffWindow  Kind = "client_off_window"
	ClientBusy       Kind = "client_busy"
	ClientCollecting Kind = "client_collecting"
	ClientWaiting    Kind = "client_waiting"
	ClientStood      Kind = "client_stood_still"
	ClientFiles      Kind = "client_files"
	RequestsDropped  Kind = "requests_dropped"
	RequestsUnsent   Kind = "requests_unsent"
	SendLag          Kind = "send_lag"
	LargestSendLag   Kind = "largest_send_lag"
	ArrivalsOff      Kind = "arrivals_off"
	NoRequests       Kind = "no_requests"
	NotStationary    Kind = "not_stationary"
	TokensEstimated  Kind = "tokens_estimated"
	TokensWhole      Kind = "tokens_whole"
	TokensPerChunk   Kind = "tokens_per_chunk"
	TokensCoalesced  Kind = "tokens_coalesced"
	Resent           Kind = "requests_resent"
	ResentOften      Kind = "requests_resent_often"
	ShorterAnswers   Kind = "shorter_answers"
	TurnsUnnamed     Kind = "turns_unnamed"
	PromptsOff       Kind = "prompts_off"
	PromptsGuessed   Kind = "prompts_guessed"
)

// What a trial shows of a server.
const (
	BoundUnseen           Kind = "bound_unseen"
	BoundUnresolved       Kind = "bound_unresolved"
	BoundNear             Kind = "bound_near"
	BoundTooNear          Kind = "bound_too_near"
	BoundMeanNear         Kind = "bound_mean_near"
	BoundMeanUnresolved   Kind = "bound_mean_unresolved"
	BoundMeanFailed       Kind = "bound_mean_failed"
	BoundMeanOpen         Kind = "bound_mean_open"
	BoundErrorsNear       Kind = "bound_errors_near"
	ErrorsUnproven        Kind = "errors_unproven"
	QuantilesUnresolved   Kind = "quantiles_unresolved"
	RequestsOpen          Kind = "requests_open"
	RequestsFailed        Kind = "requests_failed"
	FailedWith            Kind = "failed_with"
	FailedOtherwise       Kind = "failed_otherwise"
	ConversationsStarting Kind = "conversations_starting"
	TurnsWaited           Kind = "turns_waited"
	Overloaded            Kind = "overloaded"
)

// What the telemetry of an engine adds to a trial.
const (
	NoMetrics          Kind = "no_metrics"
	CacheNotEmptied    Kind = "cache_not_emptied"
	CacheNotEmptiedAs  Kind = "cache_not_emptied_as"
	EngineRepeated     Kind = "engine_repeated"
	EngineStartedAgain Kind = "engine_started_again"
	FirstTokensDiffer  Kind = "first_tokens_differ"
	TTFTGap            Kind = "ttft_gap"
)

// What results of other tools, and logs of traffic, leave open.
const (
	RunCancelled      Kind = "run_cancelled"
	LoopClosedBySlots Kind = "loop_closed_by_slots"
	LoopClosedByLimit Kind = "loop_closed_by_limit"
	SentAtOnce        Kind = "sent_at_once"
	Flood             Kind = "flood"
	OpenLeftOut       Kind = "open_left_out"
	EvenArrivals      Kind = "even_arrivals"
	MeanLag           Kind = "mean_lag"
	NoLoad            Kind = "no_load"
	WithoutValueAt    Kind = "without_value_at"
	WithoutValue      Kind = "without_value"
	TooFast           Kind = "too_fast"
	OfFile            Kind = "of_file"
	OpenAndClosed     Kind = "open_and_closed"
	LengthsEstimated  Kind = "lengths_estimated"
	DrawnApart        Kind = "drawn_apart"
	LinesLeftOut      Kind = "lines_left_out"
	RequestsEstimated Kind = "requests_estimated"
	ArrivalsFromEnds  Kind = "arrivals_from_ends"
	RowsReordered     Kind = "rows_reordered"
	RowsLeftOut       Kind = "rows_left_out"
	ClockSpread       Kind = "clock_spread"
	ClockTicks        Kind = "clock_ticks"
	ColumnsIgnored    Kind = "columns_ignored"
)

// What a search found.
const (
	Cliff         Kind = "cliff"
	NonMonotone   Kind = "non_monotone"
	FewStarts     Kind = "few_starts"
	StartsDiffer  Kind = "starts_differ"
	OneStart      Kind = "one_start"
	WindowShort   Kind = "window_short"
	CacheCollapse Kind = "cache_collapse"
	WarmUpShort   Kind = "warm_up_short"
	Uncertified   Kind = "uncertified"
)

// What a curve leaves open.
const (
	CurveInterpolates Kind = "curve_interpolates"
	CurveWithoutRates Kind = "curve_without_rates"
	OverloadInferred  Kind = "overload_inferred"
	NoSaturation      Kind = "no_saturation"
	NoCurve           Kind = "no_curve"
	NoCurveOf         Kind = "no_curve_of"
)

// What a plan rests on.
const (
	NoSamplingError        Kind = "no_sampling_error"
	NoPrice                Kind = "no_price"
	OneInstance            Kind = "one_instance"
	LossOverloads          Kind = "loss_overloads"
	MayBeCheaper           Kind = "may_be_cheaper"
	MoreGPUsSlower         Kind = "more_gpus_slower"
	MoreGPUsTalk           Kind = "more_gpus_talk"
	NotReached             Kind = "not_reached"
	Imprecise              Kind = "imprecise"
	KnobAtEnd              Kind = "knob_at_end"
	OnlyUntrusted          Kind = "only_untrusted"
	AllUntrusted           Kind = "all_untrusted"
	SomeUntrusted          Kind = "some_untrusted"
	SearchInterrupted      Kind = "search_interrupted"
	CertificateInterrupted Kind = "certificate_interrupted"
)

// What a sweep or a comparison leaves open.
const (
	MatrixOfFirst     Kind = "matrix_of_first"
	NoneTrusted       Kind = "none_trusted"
	RoundsInterrupted Kind = "rounds_interrupted"
	RequestsDiffer    Kind = "requests_differ"
	FewRounds         Kind = "few_rounds"
	FigureUnknown     Kind = "figure_unknown"
	SideFailed        Kind = "side_failed"
	SideInvalid       Kind = "side_invalid"
	SideOverloaded    Kind = "side_overloaded"
	SeedsDiffer       Kind = "seeds_differ"
	TrafficDiffers    Kind = "traffic_differs"
)

// Why knobs cannot run.
const (
	EngineFailed     Kind = "engine_failed"
	EngineCondemned  Kind = "engine_condemned"
	StepBelowSeqs    Kind = "step_below_seqs"
	DegreesNegative  Kind = "degrees_negative"
	HeadsUndivided   Kind = "heads_undivided"
	KVHeadsUndivided Kind = "kv_heads_undivided"
	TooManyStages    Kind = "too_many_stages"
	NoExperts        Kind = "no_experts"
	ExpertsUndivided Kind = "experts_undivided"
	NoMemory         Kind = "no_memory"
	EmptyPool        Kind = "empty_pool"
)

// Why a set of knobs is not the best one.
const (
	BudgetSpent    Kind = "budget_spent"
	BudgetCut      Kind = "budget_cut"
	BudgetLeft     Kind = "budget_left"
	NotTried       Kind = "not_tried"
	NotTriedAs     Kind = "not_tried_as"
	PredictedWorse Kind = "predicted_worse"
	OffTheWay      Kind = "off_the_way"
	CarriesLess    Kind = "carries_less"
	CarriesLessBy  Kind = "carries_less_by"
	AsGood         Kind = "as_good"
	SeenAsGood     Kind = "seen_as_good"
	SeenWorse      Kind = "seen_worse"
	NotBetter      Kind = "not_better"
)

// Why a search for the maximum rate ended.
const (
	FailsIdle    Kind = "fails_idle"
	IdleMisses   Kind = "idle_misses"
	IdleFloor    Kind = "idle_floor"
	MissedAtAll  Kind = "missed_at_all"
	AllMissed    Kind = "all_missed"
	MetAtLargest Kind = "met_at_largest"
	NarrowEnough Kind = "narrow_enough"
	InvalidInRow Kind = "invalid_in_row"
	TrialsSpent  Kind = "trials_spent"
	BudgetNoRoom Kind = "budget_no_room"
	StillWide    Kind = "still_wide"
)

// Why a rate is not certified.
const (
	NoRateToTest   Kind = "no_rate_to_test"
	MeanUncounted  Kind = "mean_uncounted"
	BeyondTooMany  Kind = "beyond_too_many"
	BudgetTooShort Kind = "budget_too_short"
	LooksUndecided Kind = "looks_undecided"
)

// Why an offer is not the plan.
const (
	Chosen        Kind = "chosen"
	EmptyInstance Kind = "empty_instance"
	NoRateKnown   Kind = "no_rate_known"
	TooManyGPUs   Kind = "too_many_gpus"
	PriceUnheld   Kind = "price_unheld"
	TooDear       Kind = "too_dear"
	Unpriced      Kind = "unpriced"
	Dearer        Kind = "dearer"
	MoreGPUs      Kind = "more_gpus"
	MoreInstances Kind = "more_instances"
	ListedLater   Kind = "listed_later"
)

// sentences holds what each kind says. A figure stands in braces with the verb that
// writes it.
var sentences = map[Kind]string{
	Unknown: "{text}",

	ClientLate:       "client: requests left late: p99 of the send lag is {lag_ms%.2f} ms, allowed {allowed_ms%.2f} ms",
	ClientUnsent:     "client: {requests%d} requests were not sent for want of open files or ports",
	ClientOffWindow:  "client: {left%d} requests left within the window in which {due%d} were due",
	ClientBusy:       "client: it used {cpu_percent%.0f} % of its {processors%d} processors",
	ClientCollecting: "client: garbage collection stopped it for up to {pause_ms%.2f} ms",
	ClientWaiting:    "client: p99 of the wait for a processor is {wait_ms%.2f} ms",
	ClientStood:      "client: it stood still for {stood_s%.2f} s at {at_s%.1f} s",
	ClientFiles:      "client: {in_flight%d} requests in flight at an open-file limit of {limit%d}",
	RequestsDropped:  "the client did not send {dropped%d} of {requests%d} requests",
	RequestsUnsent:   "the client had not sent {requests%d} requests that were due",
	SendLag:          "the client was late: p99 of the send lag {lag_ms%dur}, {allowed_ms%dur} allowed",
	LargestSendLag:   "the client was late: largest send lag {lag_ms%dur}, {allowed_ms%dur} allowed",
	ArrivalsOff:      "{requests%d} requests were due in the window, {expected%.0f} were asked for",
	NoRequests:       "no request was due in the window",
	NotStationary:    "not stationary: {in_flight%.4g} requests in flight, rate x mean latency is {expected%.4g}",
	TokensEstimated:  "tokens: {estimated%d} of {requests%d} requests have no count by the server; each event was taken for one token",
	TokensWhole:      "tokens: answers came whole, so there are no inter-token times",
	TokensPerChunk:   "tokens: {tokens%.2f} of them came in a chunk, so gaps between chunks are no inter-token times",
	TokensCoalesced:  "tokens: {coalesced_percent%.0f} % of the chunks came together with another in one read",
	Resent:           "connections: {requests%d} requests met one that the server closed without an answer, and were sent again",
	ResentOften: "connections: {requests%d} requests met one that the server closed without an answer, and were sent again" +
		"; further ones had a connection each, and failed where that broke",
	ShorterAnswers: "answers: the server generated {fewer_percent%.0f} % fewer tokens than asked for, so every figure is of shorter answers than the workload's",
	TurnsUnnamed:   "conversations: the engine did not name the tokens of {answers%d} answers; later turns carry others, which its prefix cache does not hold",
	PromptsOff:     "prompts: the server counts {more_percent%+.1f} % tokens against those asked for",
	PromptsGuessed: "prompts: their length is a guess of one token a word: {why}",
	NoMetrics:      "the engine gave no metrics: what it held back, preempted or found in its cache is not known",

	BoundUnseen:     "{bound} is undecided: no request shows it",
	BoundUnresolved: "{bound} is undecided: {requests%d} requests do not resolve it",
	BoundNear: "{bound} is undecided: {beyond%d} of {requests%d} beyond the limit leave a share of {low_percent%.2g} to {high_percent%.2g} % possible, " +
		"{allowed_percent%.4g} % allowed; about {needed%.2g} requests would decide",
	BoundTooNear: "{bound} is undecided: {beyond%d} of {requests%d} beyond the limit leave a share of {low_percent%.2g} to {high_percent%.2g} % possible, " +
		"{allowed_percent%.4g} % allowed; it is too near to the limit to be decided by any affordable number of requests",
	BoundMeanNear:         "{bound} is undecided: the mean of {requests%d} requests lies between {low_ratio%.3g} and {high_ratio%.3g} of the limit",
	BoundMeanUnresolved:   "{bound} is undecided: {requests%d} requests are too few for a mean",
	BoundMeanFailed:       "{bound} is undecided: {failed%d} failed requests have no latency",
	BoundMeanOpen:         "{bound} is undecided: {open%d} requests had not ended",
	BoundErrorsNear:       "{bound} is undecided: {failed%d} of {requests%d} failed, {allowed_percent%.4g} % allowed: {low_percent%.2g} to {high_percent%.2g} % possible",
	ErrorsUnproven:        "errors: none of {requests%d} requests failed, which proves a share below {proven_percent%.2g} %, not below {allowed_percent%.2g} %",
	QuantilesUnresolved:   "{values}",
	RequestsOpen:          "{open%d} of {requests%d} requests were still in flight at the end",
	RequestsFailed:        "latencies are over the requests that ended well; {failed%d} of {requests%d} failed and count as beyond every limit",
	FailedWith:            "{requests%d} requests ended with {outcome}: {detail}",
	FailedOtherwise:       "{kinds%d} other kinds of failure are in the records of the requests",
	ConversationsStarting: "{sent_per_s%.4g} requests/s were sent, {offered_per_s%.4g} offered: conversations, of {course_s%dur} or so each, were still starting, with short histories; the warm-up was {warm_up_s%dur}",
	TurnsWaited:           "{sent_per_s%.4g} requests/s were sent, {offered_per_s%.4g} offered: turns had to wait for the ends of those before them",
	Overloaded:            "overloaded: the backlog kept growing",

	CacheNotEmptied:    "the prefix cache was not emptied before the trial; what is in it shares nothing with this trial's prompts",
	CacheNotEmptiedAs:  "the prefix cache could not be emptied before the trial: {why}",
	EngineRepeated:     "repeated on a new engine: {why}",
	EngineStartedAgain: "started once more: {why}",
	FirstTokensDiffer:  "the server counts {server%d} first tokens, the client {client%.0f}: their times are not compared",
	TTFTGap:            "mean TTFT is {client_s%dur} to the client and {server_s%dur} to the server; the gap lies in {where}",

	RunCancelled:      "the run was cancelled",
	LoopClosedBySlots: "a rate behind a limit of concurrency is a closed loop: arrivals that find no slot are skipped",
	LoopClosedByLimit: "a rate of {rate_per_s%g}/s behind a limit of {limit%d} in flight is a closed loop: requests waited in the client",
	SentAtOnce:        "all {requests%d} requests were sent at once: latencies are those of a burst",
	Flood:             "as many requests as possible at once: latencies are those of a flood",
	OpenLeftOut:       "requests in flight at the end are left out: overload looks better than it is",
	EvenArrivals:      "evenly spaced arrivals: tails are shorter than under Poisson ones",
	MeanLag:           "requests left {lag_ms%dur} late in the mean: the client was the limit, and its latencies leave that out",
	NoLoad:            "neither the offered rate nor the concurrency is known",
	WithoutValueAt:    "load point {point%d}, line {line%d}: {figures} null or NaN in the file: left out, and whatever it would have shown is not known",
	WithoutValue:      "{figures} null or NaN in the file: left out, and whatever it would have shown is not known",
	TooFast:           "every time to first token and of a whole request is below 1 ms: are these seconds where milliseconds are expected?",
	OfFile:            "{file} ({format}): {text}",
	OpenAndClosed:     "{open%d} load points are of an open and {closed%d} of a closed loop: they are not on one curve",
	LengthsEstimated:  "lengths are estimated at {characters%.1f} characters a token: give token counts where you have them",
	DrawnApart:        "prompts and outputs are drawn apart from each other: that long questions get long answers is lost",
	LinesLeftOut:      "{lines%d} lines are no requests (without a time or a length) and are left out",
	RequestsEstimated: "the lengths of {estimated%d} of {requests%d} requests are estimated at {characters%.0f} characters a token: the log holds their text and no counts",
	ArrivalsFromEnds:  "arrivals are the logged ends less the durations",
	RowsReordered:     "rows were not in order of arrival; they are now",
	RowsLeftOut:       "{rows%d} rows without a prompt or an output are left out: requests that failed",
	ClockSpread:       "the clock of the log ticks every {tick_s%dur} and {sharing_percent%.0f} % of the requests share a tick: arrivals are drawn uniformly within it (seed {seed})",
	ClockTicks:        "the clock of the log ticks every {tick_s%dur} and {sharing_percent%.0f} % of the requests share a tick: they are sent at the same instant, as no user sent them",
	ColumnsIgnored:    "columns that are not read: {columns}",

	Cliff:        "cliff: {bound} goes from well met to far missed within {within_percent%.0f} % of the rate",
	NonMonotone:  "non-monotone: no single curve describes all trials of {bound}; the interval holds the answers from all trials and from those near the limit",
	FewStarts:    "the maximum rate was measured well on {starts%d} starts of the engine, too few to tell what it differs by from start to start; that is not in the interval",
	StartsDiffer: "from start to start of the engine the maximum rate differs by {sigma_percent%.2g} % (standard deviation over {starts%d} starts); interval and safe rate allow for it",
	OneStart:     "the engine was started for this search alone: what the maximum rate differs by from start to start is not in the interval",
	WindowShort: "trials were fixed at {window_s%dur}, shorter than the {wanted_s%dur} that the search would choose at this rate: a queue that takes longer to build up " +
		"is not seen, and the interval does not contain that",
	CacheCollapse: "collapse: at rates that hold, the prefix cache has {met_percent%.0f} % of the prompt tokens, beyond them down to {missed_percent%.0f} %: it loses " +
		"histories before their next turn, which makes requests longer and the loss larger. An engine that has fallen into this, as a burst can make it, stays " +
		"in it until the load is far below the maximum rate",
	WarmUpShort: "the warm-up of {warm_up_s%dur} is shorter than the {wanted_s%dur} after which conversations are steady: trials count at the rate that was sent, with " +
		"histories shorter than they will be",
	Uncertified: "{rate_per_s%.4g} requests/s are not certified: {why}",

	CurveInterpolates: "{rates%d} rates in a steady state: too few to fit a form ({needed%d} are needed), the curve only interpolates",
	CurveWithoutRates: "{points%d} points without a completed rate: nothing says whether the server kept up; they are fitted as if it did",
	OverloadInferred:  "overload is told from latencies alone; the completed rate (achieved_per_s) would settle it",
	NoSaturation:      "the latency does not bend up to {highest_per_s%.4g} requests/s: the saturation rate is not known from it",
	NoCurve:           "no curve is drawn: {why}",
	NoCurveOf:         "no curve of {metric}: {why}",

	NoSamplingError: "no requests beyond these limits were counted, so there is no sampling error to state: the fleet is sized by the crossing itself, and its interval is " +
		"the spread of the fitted forms",
	NoPrice:        "no price is known for {gpu}: costs are not given",
	OneInstance:    "one instance: its loss is the loss of the service",
	LossOverloads:  "the loss of one instance leaves the others at {load_percent%.0f} % of their safe rate",
	MayBeCheaper:   "undecided: {gpus} of {gpu} may do it for less: {why}",
	MoreGPUsSlower: "{gpus%d} GPUs carry less than {fewer%d} ({rate_per_s%.3g} against {fewer_per_s%.3g} requests/s)",
	MoreGPUsTalk: "{gpus%d} GPUs carry less than {fewer%d} ({rate_per_s%.3g} against {fewer_per_s%.3g} requests/s): communication between GPUs takes " +
		"{communication_percent%.0f} % of the step time instead of {before_percent%.0f} %",
	NotReached: "no rate measured is beyond the limits: the maximum rate of one instance is not known, the fleet is sized by the highest rate measured and may be " +
		"larger than needed; trials at higher rates would tell",
	Imprecise:              "precision: the maximum rate is known to {low_percent%+.0f} to {high_percent%+.0f} %, and +-{asked_percent%.3g} % were asked for{why}",
	KnobAtEnd:              "{knob} is {value}, the {end} value tried, and {inner} carries less: {further} values may carry more; try knobs.{knob} = [{try}]",
	OnlyUntrusted:          "the only trial of the chosen settings could not be trusted{first}: the rate is a guess",
	AllUntrusted:           "none of the {trials%d} trials of the chosen settings could be trusted{first}: the rate is a guess",
	SomeUntrusted:          "{untrusted%d} of the {trials%d} trials of the chosen settings could not be trusted{first}",
	SearchInterrupted:      "interrupted: the search had not ended, and other knob sets may be better",
	CertificateInterrupted: "interrupted: the rate is not certified yet",

	MatrixOfFirst:     "the matrix runs on the first of {sets%d} sets of knobs",
	NoneTrusted:       "no trial can be trusted: nothing is shown of the engine; `planner doctor` checks the machine",
	RoundsInterrupted: "interrupted after {rounds%d} of {planned%d} rounds",
	RequestsDiffer:    "the two configurations make different requests of one seed: differences are of the traffic as well",
	FewRounds:         "{rounds%d} rounds are few for a test; 8 and more are better",
	FigureUnknown:     "{figure}: not known in any pair; a p99 takes 1,200 requests",
	SideFailed:        "{side}: {failed%d} of {requests%d} requests failed; latencies are over the others",
	SideInvalid:       "{side}: {invalid%d} of {trials%d} trials are not valid; their pairs do not count",
	SideOverloaded:    "{side}: {overloaded%d} of {trials%d} trials were overloaded: their latencies depend on how long was measured",
	SeedsDiffer:       "{other%d} of {pairs%d} pairs had other requests (another seed): chance makes their differences larger",
	TrafficDiffers:    "the two runs are of different traffic: what differs may be its doing and not the engine's",

	EngineFailed:     "engine failed ({class}){cause%s}",
	EngineCondemned:  "not started, as it needs no less than what failed already: {cause%s}",
	StepBelowSeqs:    "max_num_batched_tokens {tokens%d} is below max_num_seqs {seqs%d}",
	DegreesNegative:  "parallel degrees {tensor%d}, {pipeline%d}, {data%d} (tensor, pipeline, data) must not be negative",
	HeadsUndivided:   "tensor_parallel {degree%d} does not divide the {heads%d} attention heads of {model}",
	KVHeadsUndivided: "tensor_parallel {degree%d} neither divides the {heads%d} KV heads of {model} nor is a multiple of them",
	TooManyStages:    "pipeline_parallel {degree%d} exceeds the {layers%d} layers of {model}",
	NoExperts:        "expert_parallel: {model} has no experts",
	ExpertsUndivided: "expert_parallel: {gpus%d} GPUs do not divide the {experts%d} experts of {model}",
	NoMemory:         "{model} does not fit on {gpu} with tensor_parallel {degree%d}: {arithmetic%s}, but one request of {tokens%d} tokens takes {needed%d}; {advice%s}",
	EmptyPool:        "simulate engine: a pool of {blocks%d} KV blocks holds no request",

	BudgetSpent:    "the budget is spent",
	BudgetCut:      "the budget is spent before a knob set was searched to its end",
	BudgetLeft:     "the budget is spent and {sets%d} knob sets were not tried; of the last one that was: {why%s}",
	NotTried:       "not tried",
	NotTriedAs:     "not tried: {why%s}",
	PredictedWorse: "not tried: predicted {worse_percent%.0f} % below the best set",
	OffTheWay:      "not tried: differs in more than one knob from the sets on the way",
	CarriesLess:    "carries {carries%s}, the best set {best%s}",
	CarriesLessBy:  "carries {carries%s}, the best set {best%s}; on the same requests the best set carries some {gain_percent%.0f} % more",
	AsGood:         "as good as the best set within {within_percent%.0f} %",
	SeenAsGood:     "as good as the best set: at {rate_per_s%.4g} requests/s, on the same requests: {seen%s}, the best set {best%s}",
	SeenWorse:      "at {rate_per_s%.4g} requests/s, on the same requests: {seen%s}, the best set {best%s}",
	NotBetter:      "carries {carries%s}, and the engine's own settings {standard%s}: not shown to be better",

	FailsIdle:   "more requests fail than are allowed, even one at a time on an idle engine",
	IdleMisses:  "an idle engine misses {bound}",
	IdleFloor:   "{bound} of an idle engine: the {statistic} is {idle_ms%dur}, the limit {limit_ms%dur}; no rate meets a limit below that",
	MissedAtAll: "the objective is missed at every rate, down to {rate_per_s%.3g}/s, where requests hardly ever meet",
	AllMissed: "{why%s}; every rate that was tried missed the objective, down to {lowest_per_s%.3g}/s: " +
		"the maximum rate is below {high_per_s%.3g}/s with {confidence_percent%.0f} % confidence",
	MetAtLargest: "the objective is met at {rate_per_s%.4g}/s, the largest rate that is tried",
	NarrowEnough: "the interval is narrower than +-{precision_percent%.3g} %",
	InvalidInRow: "{trials%d} trials in a row could not be trusted",
	TrialsSpent:  "{trials%d} trials",
	BudgetNoRoom: "the budget of {budget_s%dur} engine time has no room for another trial",
	StillWide:    "interrupted: the interval is not as narrow as asked yet",

	NoRateToTest:   "the search found no rate to test",
	MeanUncounted:  "{bound} bounds a mean, of which no count of requests tells",
	BeyondTooMany:  "after {looks%d} look of {window_s%dur} so many requests are beyond the limit that it would take {needed_s%dur} more without any",
	BudgetTooShort: "the budget has {left_s%dur} left, and without any request beyond the limit it would take {needed_s%dur}",
	LooksUndecided: "after {looks%d} looks the requests do not tell the rate from one that just misses the objective{doubt%s}",

	Chosen:        "chosen",
	EmptyInstance: "an instance of {gpus%d} GPUs",
	NoRateKnown:   "no rate is known that meets the objective: {why%s}",
	TooManyGPUs:   "{gpus%d} GPUs are more than max_gpus = {most%d}",
	PriceUnheld:   "no price is known for {gpu}, so max_usd_per_hour = {most_usd%.6g} cannot be held",
	TooDear:       "{usd_per_hour%.2f} USD per hour are more than max_usd_per_hour = {most_usd%.6g}",
	Unpriced:      "no price is known",
	Dearer:        "costs {more_percent%.1f} % more per hour",
	MoreGPUs:      "needs {gpus%d} GPUs more",
	MoreInstances: "needs {instances%d} instances more",
	ListedLater:   "as good: listed later",
}
