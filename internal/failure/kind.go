package failure

// kindOf says who has to act. Transient is narrower than [Transient]: a quota
// that resets at a known time is waited for, but a retry within minutes does
// not pass.
func kindOf(e Evidence, c Class, f flag, waits bool) (kind Kind, transient bool) {
	switch c {
	case Timeout, RateLimit, Network, ServiceUnavailable, PortConflict:
		if f&final != 0 {
			return Work, false
		}
		return Transient, true
	case QuotaExhausted:
		if waits {
			return Transient, false
		}
		return Permanent, false
	case Auth, MissingCommand, LimitExceeded:
		return Permanent, false
	case Permission:
		if e.Source == "agent" {
			return Permanent, false
		}
		return Work, false
	case Validation:
		if e.Source == "agent" && f&setup != 0 {
			return Permanent, false
		}
		return Work, false
	default:
	}
	if f&retries != 0 {
		return Transient, true
	}
	return Work, false
}

// severityOf grades a failure for the run: critical stops it until a person
// acts, high throws away what the iteration did, medium is work to repair, low
// passes by itself or is a matter of form. How often it came back is the
// caller's to add.
func severityOf(c Class, k Kind) Severity {
	switch {
	case k == Permanent:
		return Critical
	case c == Crash && k == Work, c == Tampering, c == LimitExceeded, c == ResourceExhausted &&
		k == Work, c == MergeConflict:
		return High
	case c == Lint:
		return Low
	case c == QuotaExhausted:
		return Medium
	case k == Transient:
		return Low
	}
	return Medium
}
