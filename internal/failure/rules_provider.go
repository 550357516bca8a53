package failure

import "strings"

// What model providers and the programs that talk to them say about how much
// may be used: plans, rates, outages, the length of a conversation.
var providerRules = []rule{
	// Plans, credits, usage limits: they end at a known time or by paying.
	{QuotaExhausted, 94, "hit your limit|hit your usage limit|hit your session limit|hit your weekly limit|hit your monthly limit|hit your 5-hour limit|hit the usage limit|reached your usage limit|reached your limit|reached your specified api usage limits|usage limit reached|weekly limit reached|5-hour limit reached|session limit reached|monthly limit reached|daily limit reached|usage limit has been reached|usage limits have been reached|exceeded your usage limit|out of usage|usage cap reached", "", "", provider, nil},
	{QuotaExhausted, 93, "limit reached", "", "", provider, both(starts, then("resets", "resetting", "upgrade", "|1"))},
	{QuotaExhausted, 94, "insufficient_quota|billing_hard_limit_reached|billing_not_active|billing_error|credit balance is too low|insufficient credit|insufficient credits|have no quota|insufficient balance|insufficient_balance|insufficient funds|insufficient_funds|requires more credits|out of credits|out of extra usage|no credits remaining|run out of credits|usage_limit_reached|usage_limit_exceeded|usagelimitexceeded|usage_not_included|exceeded your monthly|lfs budget|over its data quota|exceeded its budget|monthly spend limit|monthly spending limit|spending limit|spend limit|premium request allowance|premium requests|plan limit reached|arrearage|credits exhausted|free tier limit|servicequotaexceededexception|quota_exceeded", "", "", provider | stated, without("disk quota", "per minute", "perminute")},
	{QuotaExhausted, 94, "exceeded your current quota|quota exceeded|exhausted your daily quota|exhausted your capacity|resource_exhausted|resource has been exhausted|quota will reset|quota exhausted", "", "", provider, both(longQuota, without("disk quota", "cpu"))},
	{QuotaExhausted, 90, "quota", `(?i)\bquota '?[\w.-]+'? (was |is |has been )?exceeded`, "", stated, then("exceeded")},
	{QuotaExhausted, 94, "exceeded quota", "", "", stated, with("requested:", "forbidden")},
	{QuotaExhausted, 95, "free-models-per-day|requests per day|tokens per day|perday|per-day|generaterequestsperday|daily limit|daily quota|daily request limit|daily token limit", "", "", inside | provider, with("limit", "quota", "exhausted", "exceed", "429")},

	// Rates: they end in seconds or minutes.
	{RateLimit, 92, "rate_limit_error|rate_limit_exceeded|ratelimiterror|ratelimitexceeded|ratelimitreached|too_many_requests|rate limited by|rate_limited|rate limit reached for|token rate limit|request rate limit|tokens per min|requests per min|call rate limit|your organization's rate limit|account's rate limit|perminute", "", "", provider | loud | inside | stated, without("per day", "perday", "daily", "insufficient_quota")},
	{RateLimit, 91, "exceeded your current quota|quota exceeded|exhausted your capacity|resource_exhausted|resource has been exhausted|quota will reset", "", "", provider | loud, both(shortQuota, without("disk quota"))},
	{RateLimit, 91, "exceeded retry limit", "", "", provider | loud, with("429")},

	// Outages.
	{ServiceUnavailable, 92, "overloaded_error|engine is currently overloaded|model is overloaded|model is currently overloaded|server is overloaded|servers are overloaded|temporarily overloaded|currently overloaded|service is overloaded|engine_overloaded|server_overloaded|slow_down|experiencing high demand|high demand|at capacity|internalserverexception|modelnotreadyexception|serviceunavailableexception|model_overloaded|upstream_error", "", "", provider | stated, nil},
	{ServiceUnavailable, 91, "overloaded", "", `(?i)overloaded (function|method|operator|member|constructor|virtual)|operator`, provider | stated, both(reportsError, with("api", "529", "503", "service", "model", "server", "try again"))},
	{ServiceUnavailable, 90, "api_error|server_error|internal_server_error", "", "", provider | stated, with(`"type"`, `"code"`, "'type'", "'code'", "type:", "code:")},
	{ServiceUnavailable, 90, "database system is starting up|database system is shutting down|database system is in recovery mode|loading the dataset in memory|not accepting connections|is sealed", "", "", stated, nil},
	{ServiceUnavailable, 90, "internalfailure|internalerror|internal failure|encountered an internal error", "", "", stated, with("error", "calling", "code")},
	{ServiceUnavailable, 90, "code = unavailable", "", "", 0, without("connection refused", "no such host")},
	{Timeout, 90, "code = deadlineexceeded", "", "", 0, nil},
	{ServiceUnavailable, 90, "error from server", "", "", 0, with("(serviceunavailable)", "(internalerror)")},
	{ServiceUnavailable, 91, "provider returned error|no available providers|no allowed providers", "", "", provider, nil},
	{ServiceUnavailable, 91, "api error|api_error_status|unexpected status", "", "", provider, statusBehind('5')},
	{RateLimit, 91, "api error|api_error_status|unexpected status|last status", "", "", provider, statusBehind('4', "429")},
	{Auth, 91, "api error|api_error_status|unexpected status|last status", "", "", 0, statusBehind('4', "401", "403", "407")},
	{QuotaExhausted, 91, "api error|api_error_status|unexpected status", "", "", provider, statusBehind('4', "402")},
	{Validation, 88, "api error|api_error_status|unexpected status|invalid_request_error|badrequesterror", "", "", 0, either(statusBehind('4', "400", "404", "405", "409", "413", "415", "422"), with("invalid_request_error", "badrequesterror:"))},
	{Validation, 89, "content management policy|content_filter|content_policy_violation|responsibleaipolicyviolation|usage policy|blocked by content filtering policy|safety system", "", "", stated, reportsError},
	{Validation, 91, "model_not_found|model not found|not_found_error|unknown model|invalid model|unsupported model|is not a valid model|no such model|no endpoints found|deploymentnotfound|model provider|model identifier is invalid|model is not supported|modelnotfounderror", "", "", setup | stated, without("module", "no module", "metadata")},
	{Validation, 90, "the model|model ", `(?i)\bmodels?\b.{0,80}(not found|not exist|not supported|not available|is not a valid)`, "", setup | stated, without("module", "import", "cannot find", "table")},

	// Length of the conversation.
	{ContextLength, 96, "prompt is too long|context_length_exceeded|context_length|prompt_too_long|input is too long|input_too_large|input_too_long|request_too_large|reduce the length of the messages|max_tokens_exceeded|input tokens exceed|input length and|exceeds the maximum number of tokens|exceeds the context|exceeded model token limit|string_above_max_length|contextoverflow|contextwindowexceedederror|model_max_prompt_tokens_exceeded|prompt token count|maximum prompt length", "", "", provider | inside | stated, without("contextwindow\":", "context_length\":", "context_length:", "context_length=")},
	{ContextLength, 95, "maximum context length|max context length|context window|context length|context limit|input token count|token limit|token count", "", "", provider | stated, with("exceed", "too long", "too large", "too big", "out of room", "overflow", "exhaust", "larger", "is full", "ran out", "maximum context length is")},
	{ContextLength, 88, "request entity too large|payload too large|request too large|content too large", "", "", stated, with("413", "model", "token", "request too large")},
}

// longQuota holds where a quota is used up for longer than minutes: by the day
// or the month, or for good.
func longQuota(p spot) bool {
	if holdsAny(p.small, []string{"perday", "per day", "per_day", "daily", "permonth", "per month", "monthly", "insufficient_quota"}) {
		return true
	}
	if shortQuota(p) {
		return false
	}
	if holdsAny(p.small, []string{"current quota", "plan and billing", "quota exceeded", "quota exhausted"}) {
		return true
	}
	d, known := waitIn(p.l)
	return known && d > longestRate
}

// shortQuota holds where a quota is one by the minute, or comes back within
// minutes: providers use the same words for both.
func shortQuota(p spot) bool {
	if holdsAny(p.small, []string{"perday", "per day", "per_day", "daily", "permonth", "monthly", "insufficient_quota"}) {
		return false
	}
	if holdsAny(p.small, []string{"perminute", "per minute", "per_minute", "permin", "per min", "persecond", "per second"}) {
		return true
	}
	d, known := waitIn(nearby(p))
	if known {
		return d <= longestRate
	}
	return !holdsAny(p.small, []string{"current quota", "plan and billing", "quota exceeded", "quota exhausted", "quota will reset"})
}

// nearby is the line and the few below it: a body of JSON may be printed over
// several.
func nearby(p spot) string {
	s := p.l
	for i := p.line + 1; i < p.h.t.len() && i < p.line+40 && len(s) < 2000; i++ {
		s += "\n" + p.h.t.line(i)
	}
	return s
}

// statusBehind makes a condition: the phrase is followed by a status of HTTP
// that begins with the digit, one of those named if any are.
func statusBehind(digit byte, named ...string) func(spot) bool {
	return func(p spot) bool {
		s := p.after()
		for i := 8; i < len(s) && i < 40; i++ {
			if !isDigit(s[i]) {
				continue
			}
			if s[i] != digit || i+3 > len(s) || !isDigit(s[i+1]) || !isDigit(s[i+2]) || i+3 < len(s) && wordByte(s[i+3]) {
				return false
			}
			return len(named) == 0 || has(strings.Join(named, " "), s[i:i+3])
		}
		return false
	}
}
