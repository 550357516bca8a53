package failure

// Statuses of HTTP, in a context that only HTTP has.
var statusRules = []rule{
	{Auth, 76, "401|403|407", "", "", stated, both(answered, without("rate limit", "rate-limit"))},
	{QuotaExhausted, 76, "402|payment required", "", "", stated, either(answered, reason)},
	{RateLimit, 77, "429|too many requests", "", "", loud | stated, either(answered, both(reason, with("too many requests")))},
	{ServiceUnavailable, 76, "500|501|502|503|504|520|521|522|523|524|525|529|530", "", "", stated, answered},
	{ServiceUnavailable, 75, "service unavailable|service temporarily unavailable|bad gateway|gateway time-out|gateway timeout|internal server error", "", "", stated, reason},
	{Timeout, 76, "408", "", "", stated, answered},
	{Validation, 66, "400|405|406|409|410|413|415|422", "", "", stated, answered},
	{Validation, 65, "bad request|unprocessable entity", "", "", stated, reason},
	{Validation, 58, "404", "", "", stated, both(answered, without("docker", "registry", "npm"))},
}
