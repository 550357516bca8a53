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
	case c == Crash && k == Work, c == Tampering, c == LimitExceeded, c == ResourceExhausted && k == Work, c == MergeConflict:
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

// actionsFor says what a person or an agent could do, most useful first.
func actionsFor(c Class, k Kind, source string) []string {
	switch c {
	case Auth:
		return []string{"Check the credentials: log in again or set the key that the message names.", "Check that the account may do this."}
	case MissingCommand:
		return []string{"Install the command that the message names, or correct PATH.", "Change the command in pawl.yaml."}
	case QuotaExhausted:
		if k == Transient {
			return []string{"Wait until the limit resets.", "Use another agent: agents.fallback."}
		}
		return []string{"Buy credits or change the plan.", "Use another agent: agents.fallback."}
	case RateLimit:
		return []string{"Wait and try again.", "Run fewer loops at the same time."}
	case ServiceUnavailable, Network:
		return []string{"Wait and try again.", "Check the connection and the address."}
	case Timeout:
		return []string{"Find what hangs or is slow.", "Give it a longer timeout."}
	case PortConflict:
		return []string{"Use a free port, for example one from PAWL_PORT_BASE.", "End the process that holds the port, if it is your own."}
	case ResourceExhausted:
		return []string{"Free disk, memory or file descriptors.", "Run less at the same time."}
	case ContextLength:
		return []string{"Give less context, or split the task."}
	case Permission:
		if source == "agent" {
			return []string{"Allow the tool or the folder in the agent's configuration, or choose another safety level."}
		}
		return []string{"Work inside of the workspace.", "Correct owner and mode of the file."}
	case Validation:
		if k == Permanent {
			return []string{"Correct the option or the configuration that the message names."}
		}
		return []string{"Correct the input, option or configuration that the message names."}
	default:
	}
	return workActions(c)
}

func workActions(c Class) []string {
	switch c {
	case TestFailure:
		return []string{"Repair the code until the failing tests pass; do not weaken the tests."}
	case CompileError:
		return []string{"Repair the first error; later ones often follow from it."}
	case Lint:
		return []string{"Repair what the check reports."}
	case Dependency:
		return []string{"Declare and install what is missing, or correct its version."}
	case MergeConflict:
		return []string{"Resolve the conflict so that both sides keep their intent."}
	case GitState:
		return []string{"Bring the repository into the state that the message asks for."}
	case Crash:
		return []string{"Find the cause at the first frame of the project's own code."}
	case NoProgress:
		return []string{"Answer the question, or make the task more exact."}
	case Tampering:
		return []string{"Put the protected files back as they were."}
	case LimitExceeded:
		return []string{"Raise the limit, or split the task."}
	default:
	}
	return []string{"Read the end of the output."}
}
