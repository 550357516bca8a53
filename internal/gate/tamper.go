package gate

import (
	"fmt"
	"sort"
	"strings"

	"github.com/pawl-dev/pawl/internal/failure"
)

// Configuration is always protected: an agent that may edit its own gates has
// none.
const configuration = "pawl.yaml"

// Change is one path that differs from the run's base. Paths are relative to
// the root, with "/".
type Change struct {
	Path   string
	From   string // of a rename, the old path
	Status byte   // 'A' added, 'M' modified, 'D' deleted, 'R' renamed, 'T' type changed
}

// Protect says which paths an agent may not change.
type Protect struct {
	Patterns []string // see Match
	Allow    []string // lifts patterns for this procedure or case; never pawl.yaml by a wildcard
	New      bool     // new files under a pattern are refused too
}

// Violation is one protected path that was changed, and why that is refused.
type Violation struct {
	Path string
	Why  string
}

// Tampered returns the changes that rules forbid, sorted by path. Changing,
// renaming (from or to a protected path) and deleting a protected file is
// tampering; a new file is allowed unless rules.New.
func Tampered(changes []Change, rules Protect) []Violation {
	var out []Violation
	for _, c := range changes {
		if pattern, ok := rules.covers(c.Path); ok && c.Path != "" {
			if why := whyRefused(c, rules.New); why != "" {
				out = append(out, Violation{c.Path, fmt.Sprintf("%s, but it is protected by %q", why, pattern)})
			}
		}
		if c.Status == 'R' && c.From != "" {
			if pattern, ok := rules.covers(c.From); ok {
				out = append(out, Violation{c.From, fmt.Sprintf("it was renamed to %s, but it is protected by %q", c.Path, pattern)})
			}
		}
	}
	sort.SliceStable(out, func(i, j int) bool { return out[i].Path < out[j].Path })
	return out
}

func whyRefused(c Change, refuseNew bool) string {
	switch c.Status {
	case 'A':
		if refuseNew || c.Path == configuration {
			return "it was added"
		}
		return ""
	case 'D':
		return "it was deleted"
	case 'R':
		return "another file was renamed to it"
	case 'T':
		return "its type was changed"
	}
	return "it was changed"
}

// covers returns the pattern that protects path.
func (p Protect) covers(path string) (string, bool) {
	if path == configuration {
		for _, a := range p.Allow {
			if a == configuration {
				return "", false
			}
		}
		return configuration, true
	}
	for _, a := range p.Allow {
		if Match(a, path) {
			return "", false
		}
	}
	for _, pattern := range p.Patterns {
		if Match(pattern, path) {
			return pattern, true
		}
	}
	return "", false
}

// maxViolations is how many paths a failure names.
const maxViolations = 20

// TamperingFailure makes the analysis of violations, of which there is at
// least one: the feedback names each path and why it is refused.
func TamperingFailure(v []Violation) failure.Analysis {
	a := failure.Analysis{
		Class: failure.Tampering, Kind: failure.Work, Severity: failure.High,
		Actions: []string{"Put the protected files back as they were, and make the change elsewhere.", "If the change is wanted, lift the path with allow: in pawl.yaml."},
	}
	paths := make([]string, 0, len(v))
	for _, one := range v {
		paths = append(paths, one.Path)
		if len(a.Items) < maxViolations {
			a.Items = append(a.Items, failure.Item{File: one.Path, Message: one.Path + ": " + one.Why + ". Put it back as it was."})
		}
	}
	what := "protected files were changed: "
	if len(v) == 1 {
		what = "a protected file was changed: "
	}
	a.Summary = bounded(what + strings.Join(paths, ", ") + " (" + v[0].Why + ")")
	a.Fingerprint = failure.Fingerprint(a, paths...)
	return a
}

func bounded(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > maxSummary {
		s = strings.ToValidUTF8(s[:maxSummary-len("…")], "") + "…"
	}
	return s
}
