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
	NoMetrics        Kind = "no_metrics"
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
}
