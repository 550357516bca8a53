package failure

import (
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/lazy"
)

// kindOf says who has to act. Transient is narrower than [Transient]: a quota
// that resets at a known time is waited for, but a retry within minutes does
// not pass.
func kindOf(e Evidence, c Class, f flag, waits bool) (kind Kind, transient bool) {
	if f&machine != 0 {
		return Permanent, false
	}
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
	case MissingCommand:
		if f&ours != 0 {
			return Work, false
		}
		return Permanent, false
	case Auth, LimitExceeded:
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

// lacks says whose what is missing is: a path is the repository's, and so is a
// program that a package's script starts; a full disk is the machine's.
func lacks(e Evidence, h *hits, v verdict, subject string) flag {
	c, line := v.class, v.line
	switch {
	case c == ResourceExhausted && subject == "disk":
		return machine
	case c != MissingCommand || e.Source == "agent":
		return 0
	case strings.Contains(subject, "/") && !onMachine().MatchString(subject), h.startsPackages(line):
		return ours
	}
	return 0
}

// startsPackages tells whether the line is about a program of the project's own
// packages: the shell of npm, yarn or bundler names it, and no script of the project.
func (h *hits) startsPackages(line int) bool {
	inScript := line >= 0 && scriptLine().MatchString(h.t.line(line))
	return !inScript && packageScript().MatchString(h.t.s)
}

var (
	// scriptLine begins what a shell says about a line of a script.
	scriptLine = lazy.Regexp(`^\S+\.\w+: (?:line )?\d+: `)
	// onMachine begins the paths of programs that are installed.
	onMachine = lazy.Regexp(`^/(?:usr|bin|sbin|opt|nix|snap|lib)/`)
	// packageScript is what npm, yarn and bundler say when they run a script or a
	// program of the project's own packages.
	packageScript = lazy.Regexp(`(?m)^> \S+@\S+ \S+$|^yarn run v|^bundler: command not found`)
)

// OfCompiler is true for what TypeScript's compiler refuses: of the class [Lint], since
// it only checks, and no matter of form.
func (i Item) OfCompiler() bool { return strings.HasPrefix(i.Message, "error TS") }

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
