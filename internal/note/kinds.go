package note

// Kind is the type of a note: its name and, after a colon, its sentence, with figures in braces and their
// formatting verb.
type Kind string

// Unknown is the kind of a note of which only the sentence is known.
const Unknown Kind = "unknown: {text}"

// What a client says of itself, and a trial of its client.
const (
	ClientUnsent     Kind = "client_unsent: client: {requests%d} requests were not sent for want of open files or ports"
	ClientOffWindow  Kind = "client_off_window: client: {left%d} requests left within the window in which {due%d} were due"
	ClientBusy       Kind = "client_busy: client: it used {cpu_percent%.0f} % of its {processors%d} processors"
	ClientCollecting Kind = "client_collecting: client: garbage collection stopped it for up to {pause_ms%.2f} ms"
	ClientWaiting    Kind = "client_waiting: client: p99 of the wait for a processor is {wait_ms%.2f} ms"
	ClientStood      Kind = "client_stood_still: client: it stood still for {stood_s%.2f} s at {at_s%.1f} s"
	ClientFiles      Kind = "client_files: client: {in_flight%d} requests in flight at an open-file limit of {limit%d}"
	RequestsDropped  Kind = "requests_dropped: the client did not send {dropped%d} of {requests%d} requests"
	RequestsUnsent   Kind = "requests_unsent: the client had not sent {requests%d} requests that were due"
	SendLag          Kind = "send_lag: the client was late: p99 of the send lag {lag_ms%dur}, {allowed_ms%dur} allowed"
	LargestSendLag   Kind = "largest_send_lag: the client was late: largest send lag {lag_ms%dur}, {allowed_ms%dur} allowed"
	ArrivalsOff      Kind = "arrivals_off: {requests%d} requests were due in the window, {expected%.0f} were asked for"
	NoRequests       Kind = "no_requests: no request was due in the window"
	NotStationary    Kind = "not_stationary: not stationary: {in_flight%.4g} requests in flight, rate x mean latency is {expected%.4g}"
	TokensEstimated  Kind = "tokens_estimated: tokens: {estimated%d} of {requests%d} requests have no count by the server; each event was taken for one token"
	TokensWhole      Kind = "tokens_whole: tokens: answers came whole, so there are no inter-token times"
	TokensPerChunk   Kind = "tokens_per_chunk: tokens: {tokens%.2f} of them came in a chunk, so gaps between chunks are no inter-token times"
	TokensCoalesced  Kind = "tokens_coalesced: tokens: {coalesced_percent%.0f} % of the chunks came together with another in one read"
	TokensBunched    Kind = "tokens_bunched: tokens: in {answers_percent%.0f} % of the answers most or many came at once, as a buffer on the way gives them, so there are no times per token; a proxy that does not hold answers back (nginx: proxy_buffering off) shows them"
	FasterThanRead   Kind = "faster_than_read: tokens come every {tpot_ms%dur}, sooner than the GPU that is named can read the weights ({least_ms%dur}): the server has another model, other weights or GPUs, or guesses tokens ahead (engine.speculative)"
	TokensTooFew     Kind = "tokens_too_few: tokens: the server counts {tokens%.2f} of them for each chunk with text that it sent, so there are no times per token"
	ChunksTooMany    Kind = "chunks_too_many: tokens: in {answers_percent%.0f} % of the answers more chunks with text came than the server counts tokens: the first may be none, and the time to first token that of a placeholder"
	AnswersOfModels  Kind = "answers_of_models: the answers name several models, of which every figure is: {models}"
	Resent           Kind = "requests_resent: connections: {requests%d} requests met one that the server closed without an answer, and were sent again"
	ResentOften      Kind = "requests_resent_often: connections: {requests%d} requests met one that the server closed without an answer, and were sent again" +
		"; further ones had a connection each, and failed where that broke"
	ShorterAnswers Kind = "shorter_answers: answers: the server generated {fewer_percent%.0f} % fewer tokens than asked for, so every figure is of shorter answers than the workload's"
	TurnsUnnamed   Kind = "turns_unnamed: conversations: the engine did not name the tokens of {answers%d} answers; later turns carry others, which its prefix cache does not hold"
	PromptsOff     Kind = "prompts_off: prompts: the server counts {more_percent%+.1f} % tokens against those asked for"
	PromptsGuessed Kind = "prompts_guessed: prompts: their length is a guess of one token a word: {why}"
)

// What a trial shows of a server.
const (
	BoundUnseen     Kind = "bound_unseen: {bound} is undecided: no request shows it"
	BoundUnresolved Kind = "bound_unresolved: {bound} is undecided: {requests%d} requests do not resolve it"
	BoundNear       Kind = "bound_near: {bound} is undecided: {beyond%d} of {requests%d} beyond the limit leave a share of {low_percent%.2g} to {high_percent%.2g} % possible, " +
		"{allowed_percent%.4g} % allowed; about {needed%.2g} requests would decide"
	BoundTooNear Kind = "bound_too_near: {bound} is undecided: {beyond%d} of {requests%d} beyond the limit leave a share of {low_percent%.2g} to {high_percent%.2g} % possible, " +
		"{allowed_percent%.4g} % allowed; it is too near to the limit to be decided by any affordable number of requests"
	BoundMeanNear         Kind = "bound_mean_near: {bound} is undecided: the mean of {requests%d} requests lies between {low_ratio%.3g} and {high_ratio%.3g} of the limit"
	BoundMeanUnresolved   Kind = "bound_mean_unresolved: {bound} is undecided: {requests%d} requests are too few for a mean"
	BoundMeanFailed       Kind = "bound_mean_failed: {bound} is undecided: {failed%d} failed requests have no latency"
	BoundMeanOpen         Kind = "bound_mean_open: {bound} is undecided: {open%d} requests had not ended"
	BoundErrorsNear       Kind = "bound_errors_near: {bound} is undecided: {failed%d} of {requests%d} failed, {allowed_percent%.4g} % allowed: {low_percent%.2g} to {high_percent%.2g} % possible"
	ErrorsUnproven        Kind = "errors_unproven: errors: none of {requests%d} requests failed, which proves a share below {proven_percent%.3g} %, not below {allowed_percent%.3g} %"
	QuantilesUnresolved   Kind = "quantiles_unresolved: {values}"
	RequestsOpen          Kind = "requests_open: {open%d} of {requests%d} requests were still in flight at the end"
	RequestsFailed        Kind = "requests_failed: latencies are over the requests that ended well; {failed%d} of {requests%d} failed and count as beyond every limit"
	FailedWith            Kind = "failed_with: {requests%d} requests ended with {outcome}: {detail}"
	FailedOtherwise       Kind = "failed_otherwise: {kinds%d} other kinds of failure are in the records of the requests"
	ConversationsStarting Kind = "conversations_starting: {sent_per_s%.4g} requests/s were sent, {offered_per_s%.4g} offered: conversations, of {course_s%dur} or so each, were still starting, with short histories; the warm-up was {warm_up_s%dur}"
	TurnsWaited           Kind = "turns_waited: {sent_per_s%.4g} requests/s were sent, {offered_per_s%.4g} offered: turns had to wait for the ends of those before them"
	EngineEnded           Kind = "engine_ended: the engine ended"
	EngineHangs           Kind = "engine_hangs: the engine hangs"
	EngineRefuses         Kind = "engine_refuses: the engine refuses every request"
	EngineBroke           Kind = "engine_broke: the engine broke down under this load, which counts as a miss: {why}"
	TrialLimit            Kind = "trial_limit: not over after {limit_s%dur}, all that was left of the budget"
	ClearlyMissed         Kind = "clearly_missed: {bound} is missed: {beyond%d} of the last {requests%d} requests beyond the limit"
	ClearlyFailing        Kind = "clearly_failing: {failed%d} of the last {requests%d} requests failed: {how}"
	Overloaded            Kind = "overloaded: overloaded: the backlog kept growing"
)

// What the telemetry of an engine adds to a trial.
const (
	NoMetrics          Kind = "no_metrics: the engine gave no metrics: what it held back, preempted or found in its cache is not known"
	FirstModel         Kind = "first_model: the server lists {models%d} models, and was asked for the first, {model%s}; engine.served_name (of bench: --model) names another"
	AnswersAsOther     Kind = "answers_as_other: the server says that it answers as {answers%s}, asked for {asked%s}"
	CacheNotEmptied    Kind = "cache_not_emptied: the prefix cache was not emptied before the trial; what is in it shares nothing with this trial's prompts"
	CacheNotEmptiedAs  Kind = "cache_not_emptied_as: the prefix cache could not be emptied before the trial: {why}"
	EngineRepeated     Kind = "engine_repeated: repeated on a new engine: {why}"
	KernelsCompiled    Kind = "kernels_compiled: run twice on the same server, which compiled kernels the first time while requests waited"
	TrialRepeated      Kind = "trial_repeated: repeated on the same server: {why}"
	EngineStartedAgain Kind = "engine_started_again: started once more: {why}"
	FirstTokensDiffer  Kind = "first_tokens_differ: the server counts {server%d} first tokens, the client {client%.0f}: their times are not compared"
	TTFTGap            Kind = "ttft_gap: mean TTFT is {client_s%dur} to the client and {server_s%dur} to the server; the gap lies in {where}"
)

// What results of other tools, and logs of traffic, leave open.
const (
	RunCancelled      Kind = "run_cancelled: the run was cancelled"
	LoopClosedBySlots Kind = "loop_closed_by_slots: a rate behind a limit of concurrency is a closed loop: arrivals that find no slot are skipped"
	LoopClosedByLimit Kind = "loop_closed_by_limit: a rate of {rate_per_s%g}/s behind a limit of {limit%d} in flight is a closed loop: requests waited in the client"
	SentAtOnce        Kind = "sent_at_once: all {requests%d} requests were sent at once: latencies are those of a burst"
	Flood             Kind = "flood: as many requests as possible at once: latencies are those of a flood"
	OpenLeftOut       Kind = "open_left_out: requests in flight at the end are left out: overload looks better than it is"
	EvenArrivals      Kind = "even_arrivals: evenly spaced arrivals: tails are shorter than under Poisson ones"
	MeanLag           Kind = "mean_lag: requests left {lag_ms%dur} late in the mean: the client was the limit, and its latencies leave that out"
	NoLoad            Kind = "no_load: neither the offered rate nor the concurrency is known"
	FailuresUnknown   Kind = "failures_unknown: the file does not tell how many requests failed"
	DrainUnclear      Kind = "drain_unclear: the run went on for {drain_s%dur} behind its last arrival, and half of the requests took {median_s%dur} at most: some answers are far longer than most, " +
		"or the server fell behind at the end; a longer run tells which"
	RateRamped        Kind = "rate_ramped: the rate rose from {from_per_s%g}/s to {to_per_s%g}/s: the figures are of no one load"
	ToolInvalid       Kind = "tool_invalid: the tool itself calls the run invalid by its own rules"
	TTFTAboveE2E      Kind = "ttft_above_e2e: the mean TTFT of {ttft_ms%dur} is above that of the whole request, {e2e_ms%dur}: units or files are mixed up"
	NotRead           Kind = "not_read: {file}: not read: {why}"
	WithoutValueAt    Kind = "without_value_at: load point {point%d}, line {line%d}: {figures} null, NaN or 0 in the file: left out, and whatever it would have shown is not known"
	WithoutValue      Kind = "without_value: {figures} null, NaN or 0 in the file: left out, and whatever it would have shown is not known"
	TooFast           Kind = "too_fast: every time to first token and of a whole request is below 1 ms: are these seconds where milliseconds are expected?"
	OfFile            Kind = "of_file: {file} ({format}): {text}"
	ModelsDiffer      Kind = "models_differ: the results are of different models: {models}: they are not on one curve"
	OpenAndClosed     Kind = "open_and_closed: {open%d} load points are of an open and {closed%d} of a closed loop: they are not on one curve"
	LengthsEstimated  Kind = "lengths_estimated: lengths are estimated at {characters%.1f} characters a token: give token counts where you have them"
	DrawnApart        Kind = "drawn_apart: prompts and outputs are drawn apart from each other: that long questions get long answers is lost"
	LinesLeftOut      Kind = "lines_left_out: {lines%d} lines are no requests (without a time or a length) and are left out"
	RequestsEstimated Kind = "requests_estimated: the lengths of {estimated%d} of {requests%d} requests are estimated at {characters%.0f} characters a token: the log holds their text and no counts"
	ArrivalsFromEnds  Kind = "arrivals_from_ends: arrivals are the logged ends less the durations"
	RowsReordered     Kind = "rows_reordered: rows were not in order of arrival; they are now"
	RowsLeftOut       Kind = "rows_left_out: {rows%d} rows without a prompt or an output are left out: requests that failed"
	ClockSpread       Kind = "clock_spread: the clock of the log ticks every {tick_s%dur} and {sharing_percent%.0f} % of the requests share a tick: arrivals are drawn uniformly within it (seed {seed})"
	ClockTicks        Kind = "clock_ticks: the clock of the log ticks every {tick_s%dur} and {sharing_percent%.0f} % of the requests share a tick: they are sent at the same instant, as no user sent them"
	RowsTwice         Kind = "rows_twice: {rows%d} requests stand in the file twice, with the same times: each is counted once"
	ColumnsIgnored    Kind = "columns_ignored: columns that are not read: {columns}"
)

// What a search found.
const (
	Cliff     Kind = "cliff: cliff: {bound} goes from well met to far missed within {within_percent%.0f} % of the rate: the server has a cliff there, or was not the same in all trials"
	Collapses Kind = "collapses: collapse: pressed beyond its limits the server completes at most {pressed_per_s%.3g} requests/s, though it carried {carried_per_s%.3g}: a backlog that has once formed stays " +
		"until the load is far below the maximum rate, and trials below the limit do not show how often one forms; the safe rate is what it completes then"
	OffCurve     Kind = "off_curve: no curve goes well through what the trials show of {bound}: the limits are missed from {missed_per_s%.3g} requests/s on, and the answer is what trials that met and missed enclose"
	TrialsDiffer Kind = "trials_differ: from trial to trial the speed of the server differs by about {sigma_percent%.2g} % (standard deviation); interval and safe rate allow for it"
	OneStart     Kind = "one_start: the engine was started once for this search: what the maximum rate differs by from start to start is not in the interval"
	WindowShort  Kind = "window_short: trials were fixed at {window_s%dur}, shorter than the {wanted_s%dur} that the search would choose at this rate: a queue that takes longer to build up " +
		"is not seen, and the interval does not contain that"
	CacheCollapse Kind = "cache_collapse: collapse: at rates that hold, the prefix cache has {met_percent%.0f} % of the prompt tokens, beyond them down to {missed_percent%.0f} %: it loses " +
		"histories before their next turn, which makes requests longer and the loss larger. An engine that has fallen into this, as a burst can make it, stays " +
		"in it until the load is far below the maximum rate"
	WarmUpShort Kind = "warm_up_short: the warm-up of {warm_up_s%dur} is shorter than the {wanted_s%dur} after which conversations are steady: trials count at the rate that was sent, with " +
		"histories shorter than they will be"
	NoWaitLimit Kind = "no_wait_limit: nothing limits how long requests wait: in the trial nearest to the {load%s}, at {rate_per_s%.3g} requests/s, {statistic%s} is {latency_ms%dur}; " +
		"a limit on ttft or e2e would bound it"
	Uncertified Kind = "uncertified: {rate_per_s%.4g} requests/s are not certified: {why}"
)

// What a curve leaves open.
const (
	CurveInterpolates Kind = "curve_interpolates: {rates%d} rates in a steady state: too few to fit a form ({needed%d} are needed), the curve only interpolates"
	CurveWithoutRates Kind = "curve_without_rates: {points%d} points without a completed rate: nothing says whether the server kept up; they are fitted as if it did"
	OverloadInferred  Kind = "overload_inferred: overload is told from latencies alone; the completed rate (achieved_per_s) would settle it"
	NoSaturation      Kind = "no_saturation: the latency does not bend up to {highest_per_s%.4g} requests/s: the saturation rate is not known from it"
	NoCurve           Kind = "no_curve: no curve is drawn: {why}"
	NoCurveOf         Kind = "no_curve_of: no curve of {metric}: {why}"
)

// What a plan rests on.
const (
	NoSamplingError Kind = "no_sampling_error: no requests beyond these limits were counted, so there is no sampling error to state: the interval is the spread of the forms of the curve, and the " +
		"fleet is sized by its low end"
	CountsRead Kind = "counts_read: no requests beyond these limits were counted: how many they were is read from the quantiles, between which latencies are taken for exponential, and how they " +
		"clump is taken from queues"
	TraceRatesUnknown Kind = "trace_rates_unknown: the results do not say how busy the busiest hour of their trace is: rates are its mean, and the demand is taken for one"
	NoPrice           Kind = "no_price: no price is known for {gpu}: costs are not given"
	OneInstance       Kind = "one_instance: one instance: its loss is the loss of the service"
	LossOverloads     Kind = "loss_overloads: the loss of one instance leaves the others at {load_percent%.0f} % of their safe rate"
	DraftHurts        Kind = "draft_hurts: speculative decoding slows the planned load: {rate_per_s%.3g} requests/s on an instance, and it pays up to about {pays_per_s%.2g}"
	FewSlots          Kind = "few_slots: at the maximum rate {in_flight%.1f} requests are in flight, and in {taken_percent%.2g} % of the time they use all {slots%d} slots for the {adapters%d} adapters: requests wait for a slot; a larger engine.lora.slots may carry more"
	MayBeCheaper      Kind = "may_be_cheaper: undecided: {gpus} of {gpu} may do it for less: {why}"
	MoreGPUsSlower    Kind = "more_gpus_slower: {gpus%d} GPUs carry less than {fewer%d} ({rate_per_s%.3g} against {fewer_per_s%.3g} requests/s)"
	MoreGPUsTalk      Kind = "more_gpus_talk: {gpus%d} GPUs carry less than {fewer%d} ({rate_per_s%.3g} against {fewer_per_s%.3g} requests/s): communication between GPUs takes " +
		"{communication_percent%.0f} % of the step time instead of {before_percent%.0f} %"
	NotReached Kind = "not_reached: no rate measured is beyond the limits: the maximum rate of one instance is not known, the fleet is sized by the highest rate measured and may be " +
		"larger than needed; trials at higher rates would tell"
	MovedFar               Kind = "moved_far: one instance misses the limits even at {percent%.0f} % of its rate"
	NotModelled            Kind = "not_modelled: not modelled by the simulated engine, whose rates are of an engine without: {features%s}"
	Uncalibrated           Kind = "uncalibrated: constants: no served run of {what%s} is among those that the constants were calibrated on, so all times may be a further {percent%.0f} % off (90 %)"
	BusyFrontEnd           Kind = "busy_front_end: at its maximum rate each process of one instance's API server is taken to be busy for {busy_percent%.0f} % of the time with {requests_per_s%.3g} requests/s, {prompt_tokens_per_s%.0f} tokens/s of prompts and {tokens_per_s%.0f} of answers (hosts differ by a factor of 2 and more): knobs.extra_args = [\"\", \"--api-server-count 4\"] tries more of them"
	SlowExchange           Kind = "slow_exchange: in short simulated runs {backend} carries {gain_percent%.0f} % more than the engine's default way to the experts, where its kernels are installed: engine.all2all_backend = \"{backend}\" plans with it"
	SlowExperts            Kind = "slow_experts: in short simulated runs {backend}'s kernels for 4-bit experts carry {gain_percent%.0f} % more than the engine's default ones: engine.moe_backend = \"{backend}\" plans with them (VLLM_USE_FLASHINFER_MOE_INT4=1)"
	BeyondModel            Kind = "beyond_model: requests would grow to {tokens%d} tokens, the model's own limit is {limit%d}"
	Imprecise              Kind = "imprecise: precision: the maximum rate is known to {low_percent%+.0f} to {high_percent%+.0f} %, and +-{asked_percent%.3g} % were asked for{why}"
	KnobAtEnd              Kind = "knob_at_end: {knob} is {value}, the {end} value tried, and {inner} carries less: {further} values may carry more; try knobs.{knob} = [{try}]"
	OnlyUntrusted          Kind = "only_untrusted: the only trial of the chosen settings could not be trusted{first}: the rate is a guess"
	AllUntrusted           Kind = "all_untrusted: none of the {trials%d} trials of the chosen settings could be trusted{first}: the rate is a guess"
	BrokeDown              Kind = "broke_down: the engine broke down in {broken%d} of the {trials%d} trials of the chosen settings, which were repeated; first: {why}"
	RepeatsDisagree        Kind = "repeats_disagree: {bound} is on both sides of its limit in measurements at {rate_per_s%.4g} requests/s, {low_ms%dur} to {high_ms%dur}: the safe rate is at most the highest measured below"
	LimitedByFailures      Kind = "limited_by_failures: what limits the rate is requests that fail, which need be no question of speed: at {rate_per_s%.3g} requests/s {failed%d} of {requests%d}; {how%s}"
	EngineLost             Kind = "engine_lost: the engine failed in the end, and the rate rests on what was measured before: {why}"
	BreaksDown             Kind = "breaks_down: the engine broke down under {rate_per_s%.3g} requests/s, which counts as a miss: {why}"
	SomeUntrusted          Kind = "some_untrusted: {untrusted%d} of the {trials%d} trials of the chosen settings could not be trusted{first}"
	SearchInterrupted      Kind = "search_interrupted: interrupted: the search had not ended, and other knob sets may be better"
	CertificateInterrupted Kind = "certificate_interrupted: interrupted: the rate is not certified yet"
)

// What a sweep or a comparison leaves open.
const (
	MatrixOfFirst     Kind = "matrix_of_first: the matrix runs on the first of {sets%d} sets of knobs"
	NoneTrusted       Kind = "none_trusted: no trial can be trusted: nothing is shown of the engine; `planner doctor` checks the machine"
	RoundsInterrupted Kind = "rounds_interrupted: interrupted after {rounds%d} of {planned%d} rounds"
	RequestsDiffer    Kind = "requests_differ: the two configurations make different requests of one seed: differences are of the traffic as well"
	FewRounds         Kind = "few_rounds: {rounds%d} rounds are few for a test; 8 and more are better"
	FigureUnknown     Kind = "figure_unknown: {figure}: not known in any pair; a p99 takes 1,200 requests"
	SideDown          Kind = "side_down: {side} does not run, and {rounds%d} of {planned%d} rounds are complete: {why}"
	SideFailed        Kind = "side_failed: {side}: {failed%d} of {requests%d} requests failed, first: {how}; latencies are over the others"
	SideInvalid       Kind = "side_invalid: {side}: {invalid%d} of {trials%d} trials are not valid: nothing is decided by their pairs"
	SideBehind        Kind = "side_behind: {side}: the backlog grew in {behind%d} of {trials%d} trials, and that of the other side did not: requests/s of these is judged by itself"
	SideOverloaded    Kind = "side_overloaded: {side}: {overloaded%d} of {trials%d} trials were overloaded: their latencies depend on how long was measured"
	RateTooHigh       Kind = "rate_too_high: a backlog grew, with {completed_percent%.0f} % of {rate_per_s%.4g} requests/s completed: latencies are comparable at a rate that both sides carry, such as --rate {try_per_s%g}"
	SeedsDiffer       Kind = "seeds_differ: {other%d} of {pairs%d} pairs had other requests (another seed): chance makes their differences larger"
	ServersDiffer     Kind = "servers_differ: the two runs are of different servers: {differ}"
	TrafficDiffers    Kind = "traffic_differs: the two runs are of different traffic: what differs may be its doing and not the engine's"
)

// Why knobs cannot run.
const (
	EngineFailed     Kind = "engine_failed: engine failed ({class}){cause%s}"
	EngineAlike      Kind = "engine_alike: not started, as {starts%d} starts before it failed alike and none served: {cause%s}"
	EngineCondemned  Kind = "engine_condemned: not started, as it needs no less than what failed already: {cause%s}"
	NotPlaced        Kind = "not_placed: not run by {launcher}: {cause%s}"
	TooWide          Kind = "too_wide: an instance of {gpus%d} GPUs is wider than a node of {node%d}, and no link between nodes of {gpu} is known; internode_gbs_per_direction in a catalog of your own gives it, hardware.node_gpus another width"
	StepBelowSeqs    Kind = "step_below_seqs: max_num_batched_tokens {tokens%d} is below max_num_seqs {seqs%d}"
	DegreesNegative  Kind = "degrees_negative: parallel degrees {tensor%d}, {pipeline%d}, {data%d} (tensor, pipeline, data) must not be negative"
	HeadsUndivided   Kind = "heads_undivided: tensor_parallel {degree%d} does not divide the {heads%d} attention heads of {model}"
	KVHeadsUndivided Kind = "kv_heads_undivided: tensor_parallel {degree%d} neither divides the {heads%d} KV heads of {model} nor is a multiple of them"
	StatesUndivided  Kind = "states_undivided: tensor_parallel {degree%d} does not divide the {heads%d} heads of the states of {model}"
	WidthUndivided   Kind = "width_undivided: {gpus%d} GPUs do not divide the {width%d} {what%s} of {model}: want another tensor_parallel"
	BlocksCut        Kind = "blocks_cut: {gpus%d} GPUs cut the {width%d} columns of an MLP or expert of {model} within its fp8 blocks of 128, which vLLM refuses; fewer GPUs or expert_parallel keep them whole"
	NoKernels        Kind = "no_kernels: vLLM has no kernels on {gpu} for {what%s}"
	TooManyStages    Kind = "too_many_stages: pipeline_parallel {degree%d} exceeds the {layers%d} layers of {model}"
	NoExperts        Kind = "no_experts: expert_parallel: {model} has no experts"
	ExpertsAlone     Kind = "experts_alone: expert_parallel on one GPU is the same as without"
	ExchangeUnknown  Kind = "exchange_unknown: vLLM 0.{release%d} has no {backend}: leave it out for the release's own"
	ExchangeUnwired  Kind = "exchange_unwired: {backend} needs NVLink, and {gpu} has none: want allgather_reducescatter"
	ExchangeOneNode  Kind = "exchange_one_node: {backend} reaches only GPUs that one NVLink joins, and an instance spans {nodes%d} nodes"
	OverlapUnknown   Kind = "overlap_unknown: vLLM 0.{release%d} overlaps no batches with all2all_backend {backend}: want 0.11 or later, and deepep_low_latency or deepep_high_throughput"
	ExpertsUndivided Kind = "experts_undivided: expert_parallel: {gpus%d} GPUs do not divide the {experts%d} experts of {model}"
	NoMemory         Kind = "no_memory: {model} does not fit on {gpu} with tensor_parallel {degree%d}: {arithmetic%s}, but one request of {tokens%d} tokens takes {needed%d}; {advice%s}"
	PoolTooLarge     Kind = "pool_too_large: {model} on {gpu} has no room for kv_blocks = {blocks%d}, {pool%.1f} GiB beside {weights%.1f} GiB of weights in {memory%.1f} GiB: want at most {most%d}, or none for what vLLM would take"
	EmptyPool        Kind = "empty_pool: simulate engine: a pool of {blocks%d} KV blocks holds no request"
)

// Why a set of knobs is not the best one.
const (
	BudgetSpent       Kind = "budget_spent: the budget is spent"
	BudgetCut         Kind = "budget_cut: the budget is spent before a knob set was searched to its end"
	BudgetLeft        Kind = "budget_left: the budget is spent and {sets%d} knob sets were not tried; of the last one that was: {why%s}"
	NotTried          Kind = "not_tried: not tried"
	NotTriedBehind    Kind = "not_tried_behind: not tried: {sets%d} sets before it ended without a rate, the first because {why%s}"
	PredictedWorse    Kind = "predicted_worse: not tried: predicted {worse_percent%.0f} % below the best set"
	OffTheWay         Kind = "off_the_way: not tried: differs in more than one knob from the sets on the way"
	CarriesLess       Kind = "carries_less: carries {carries%s}, the best set {best%s}"
	CarriesLessBy     Kind = "carries_less_by: carries {carries%s}, the best set {best%s}; on the same requests the best set carries some {gain_percent%.0f} % more"
	AsGood            Kind = "as_good: as good as the best set within {within_percent%.0f} %"
	SeenAsGood        Kind = "seen_as_good: not told apart from the best set: at {rate_per_s%.4g} requests/s, on the same requests: {seen%s}, the best set {best%s}"
	SeenWorse         Kind = "seen_worse: at {rate_per_s%.4g} requests/s, on the same requests: {seen%s}, the best set {best%s}"
	DearerKind        Kind = "dearer_kind: not searched in full: by a short search an instance carries about {rate_per_s%.3g} requests/s, for the same load it costs {more_percent%more}, beside {best%s}"
	CheaperUnsearched Kind = "cheaper_unsearched: {kind%s} was left out by a short search, for another demand or other prices; for these it costs about {less_percent%.0f} % less than the cheapest that was searched in full: plan again"
	KindIdle          Kind = "kind_carries_nothing: not searched in full: a short search found no rate that it carries; the best of this GPU is {best%s}"
	CompletesLess     Kind = "completes_less: overloaded, it completes {completes_per_s%.3g} requests/s, and the best set {best_per_s%.3g}"
	NotBetter         Kind = "not_better: carries {carries%s}, and the engine's own settings {standard%s}: not shown to be better"
	LessSafe          Kind = "less_safe: likely {carries_per_s%.3g} requests/s, but safe only {safe_per_s%.3g}, as what is not known of the engine's constants moves its rate far; the set chosen for such instances is safe at {chosen_per_s%.3g}"
)

// Why a search for the maximum rate ended.
const (
	FailsIdle   Kind = "fails_idle: more requests fail than are allowed, even one at a time on an idle engine: {failed%d} of {requests%d}, of which {how%s}"
	IdleMisses  Kind = "idle_misses: an idle engine misses {bound}: {beyond%d} of {requests%d}, one at a time, are beyond its limit"
	IdleFloor   Kind = "idle_floor: {bound} of an idle engine: the {statistic} is {idle_ms%dur}, the limit {limit_ms%dur}; no rate meets a limit below that"
	MissedAtAll Kind = "missed_at_all: the objective is missed at every rate, down to {rate_per_s%.3g}/s, where requests hardly ever meet{failing%s}"
	AllMissed   Kind = "all_missed: {why%s}; no trial that can be trusted met the objective, down to {lowest_per_s%.3g}/s{seen%s}: " +
		"the maximum rate is below {high_per_s%.3g}/s with {confidence_percent%.0f} % confidence"
	NoneMet      Kind = "none_met: {why%s}; no trial that can be trusted met the objective, down to {lowest_per_s%.3g}/s{seen%s}; which rate does is not known"
	NoneMeasured Kind = "none_measured: {why%s}; no trial was as long as its quantiles need, and no rate is answered by shorter ones"
	NoneMissed   Kind = "none_missed: {why%s}; every trial that can be trusted met the objective, up to {highest_per_s%.3g}/s; how much more is met is not known"
	MetAtLargest Kind = "met_at_largest: the objective is met at {rate_per_s%.4g}/s, the largest rate that is tried"
	NarrowEnough Kind = "narrow_enough: the interval is narrower than +-{precision_percent%.3g} %"
	InvalidInRow Kind = "invalid_in_row: {trials%d} trials in a row could not be trusted: {doubts%s}"
	InvalidTime  Kind = "invalid_time: {invalid%d} of {trials%d} trials, {wasted_s%dur} of the budget of {budget_s%dur}, could not be trusted: {doubts%s}"
	TrialsSpent  Kind = "trials_spent: {trials%d} trials, as many as an engine in virtual time gets by itself; with a search.budget a search goes on"
	BudgetNoRoom Kind = "budget_no_room: the budget of {budget_s%dur} engine time has no room for another trial"
	StillWide    Kind = "still_wide: interrupted: the interval is not as narrow as asked yet"
)

// Why a rate is not certified.
const (
	NoRateToTest   Kind = "no_rate_to_test: the search found no rate to test"
	MeanUncounted  Kind = "mean_uncounted: {bound} bounds a mean, of which no count of requests tells"
	BeyondTooMany  Kind = "beyond_too_many: after {looks%d} look of {window_s%dur} so many requests are beyond the limit that it would take {needed_s%dur} more without any"
	BudgetTooShort Kind = "budget_too_short: the budget has {left_s%dur} left, and without any request beyond the limit it would take {needed_s%dur}"
	LooksUndecided Kind = "looks_undecided: after {looks%d} looks the requests do not tell the rate from one that just misses the objective{doubt%s}"
)

// Why an offer is not the plan.
const (
	Chosen        Kind = "chosen: chosen"
	EmptyInstance Kind = "empty_instance: an instance of {gpus%d} GPUs"
	NoRateKnown   Kind = "no_rate_known: no rate is known that meets the objective: {why%s}"
	RateLoose     Kind = "rate_loose: {rate_per_s%.3g} requests/s ({low_per_s%.3g} to {high_per_s%.3g}) are too little known to size a fleet by: {why%s}; a larger search.budget narrows it"
	RateDoubted   Kind = "rate_doubted: {rate_per_s%.3g} requests/s ({low_per_s%.3g} to {high_per_s%.3g}) are too little known to size a fleet by: with {n%d} of {of%d} sets of the engine's constants that are as plausible as these no rate meets the limits, " +
		"which would have to be {longer_percent%.0f} % longer at least"
	RateWide           Kind = "rate_wide: {rate_per_s%.3g} requests/s ({low_per_s%.3g} to {high_per_s%.3g}) are too little known to size a fleet by: so much hangs on what is not known of the engine's constants"
	EvenAtHigh         Kind = "even_at_high: even by {high_per_s%.3g} requests/s, the high end of its interval: {why%s}"
	TailBeyondDeadline Kind = "tail_beyond_deadline: one request takes {latency_ms%dur} (p99 of E2E), and the deadline is {deadline_ms%dur}"
	TooManyGPUs        Kind = "too_many_gpus: {gpus%d} GPUs are more than max_gpus = {most%d}"
	PriceUnheld        Kind = "price_unheld: no price is known for {gpu}, so max_usd_per_hour = {most_usd%.6g} cannot be held"
	TooDear            Kind = "too_dear: {usd_per_hour%.2f} USD per hour are more than max_usd_per_hour = {most_usd%.6g}"
	Unpriced           Kind = "unpriced: no price is known; at {break_even_usd_per_gpu_hour%.4g} USD per GPU and hour it costs what the chosen one does"
	BesideFree         Kind = "beside_free: costs {usd%.4g} USD, and the chosen one nothing"
	Dearer             Kind = "dearer: costs {more_percent%more} per hour"
	PoolMissing        Kind = "pool_missing: a class has no plan of its own: {why%s}"
	PoolsNeither       Kind = "pools_neither: nor do pools for each class: {why%s}"
	DearerJob          Kind = "dearer_job: costs {more_percent%more} for the job"
	MoreGPUs           Kind = "more_gpus: needs {gpus%d} GPUs more"
	MoreInstances      Kind = "more_instances: needs {instances%d} instances more"
	ListedLater        Kind = "listed_later: as good: listed later"
)

// kinds are all kinds, for reading notes by name.
var kinds = []Kind{
	Unknown, ClientUnsent, ClientOffWindow, ClientBusy, ClientCollecting, ClientWaiting, ClientStood, ClientFiles,
	RequestsDropped, RequestsUnsent, SendLag, LargestSendLag, ArrivalsOff, NoRequests, NotStationary, TokensEstimated, TokensWhole,
	TokensPerChunk, TokensCoalesced, TokensBunched, FasterThanRead, TokensTooFew, ChunksTooMany, AnswersOfModels, Resent, ResentOften, ShorterAnswers, TurnsUnnamed, PromptsOff, PromptsGuessed, BoundUnseen,
	BoundUnresolved, BoundNear, BoundTooNear, BoundMeanNear, BoundMeanUnresolved, BoundMeanFailed, BoundMeanOpen, BoundErrorsNear,
	ErrorsUnproven, QuantilesUnresolved, RequestsOpen, RequestsFailed, FailedWith, FailedOtherwise, ConversationsStarting,
	TurnsWaited, EngineEnded, EngineHangs, EngineRefuses, EngineBroke, TrialLimit, ClearlyMissed, ClearlyFailing, Overloaded, NoMetrics, FirstModel, AnswersAsOther, CacheNotEmptied, CacheNotEmptiedAs, EngineRepeated, KernelsCompiled, TrialRepeated,
	EngineStartedAgain, FirstTokensDiffer, TTFTGap, RunCancelled, LoopClosedBySlots, LoopClosedByLimit, SentAtOnce, Flood,
	OpenLeftOut, EvenArrivals, MeanLag, NoLoad, FailuresUnknown, DrainUnclear, RateRamped, ToolInvalid, TTFTAboveE2E, NotRead, WithoutValueAt,
	WithoutValue, TooFast, OfFile, ModelsDiffer, OpenAndClosed, LengthsEstimated,
	DrawnApart, LinesLeftOut, RequestsEstimated, ArrivalsFromEnds, RowsReordered, RowsLeftOut, ClockSpread, ClockTicks,
	RowsTwice, ColumnsIgnored, Cliff, Collapses, OffCurve, TrialsDiffer, OneStart, WindowShort, CacheCollapse, WarmUpShort, NoWaitLimit, Uncertified,
	CurveInterpolates, CurveWithoutRates, OverloadInferred, NoSaturation, NoCurve, NoCurveOf, NoSamplingError, CountsRead, TraceRatesUnknown, NoPrice, OneInstance,
	LossOverloads, DraftHurts, FewSlots, MayBeCheaper, MoreGPUsSlower, MoreGPUsTalk, NotReached, MovedFar, NotModelled, Uncalibrated, BusyFrontEnd, SlowExchange, SlowExperts, BeyondModel, Imprecise, KnobAtEnd, OnlyUntrusted, AllUntrusted, BrokeDown, EngineLost, BreaksDown, SomeUntrusted, SearchInterrupted, CertificateInterrupted, MatrixOfFirst, NoneTrusted, RoundsInterrupted, RequestsDiffer, RepeatsDisagree, LimitedByFailures,
	FewRounds, FigureUnknown, SideDown, SideFailed, SideInvalid, SideBehind, SideOverloaded, RateTooHigh, SeedsDiffer, ServersDiffer, TrafficDiffers, EngineFailed, EngineAlike, EngineCondemned,
	NotPlaced, TooWide, StepBelowSeqs, DegreesNegative, HeadsUndivided, KVHeadsUndivided, StatesUndivided, WidthUndivided, BlocksCut, NoKernels, TooManyStages, NoExperts, ExpertsAlone, ExpertsUndivided, ExchangeUnknown, ExchangeUnwired, ExchangeOneNode, OverlapUnknown, NoMemory, PoolTooLarge,
	EmptyPool, BudgetSpent, BudgetCut, BudgetLeft, NotTried, NotTriedBehind, PredictedWorse, OffTheWay, CarriesLess, CarriesLessBy,
	AsGood, SeenAsGood, SeenWorse, DearerKind, CheaperUnsearched, KindIdle, CompletesLess, NotBetter, LessSafe, FailsIdle, IdleMisses, IdleFloor, MissedAtAll, AllMissed, NoneMet, NoneMeasured, NoneMissed, MetAtLargest, NarrowEnough,
	InvalidInRow, InvalidTime, TrialsSpent, BudgetNoRoom, StillWide, NoRateToTest, MeanUncounted, BeyondTooMany, BudgetTooShort, LooksUndecided,
	Chosen, EmptyInstance, NoRateKnown, RateLoose, RateDoubted, RateWide, EvenAtHigh, TailBeyondDeadline, TooManyGPUs, PriceUnheld, TooDear, Unpriced, BesideFree, Dearer, DearerJob, PoolMissing, PoolsNeither, MoreGPUs, MoreInstances, ListedLater,
}
