package gate

import (
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/pawl-dev/pawl/internal/decide/failure"
)

// configuration is protected in every folder: an agent that may edit its own gates
// has none, and a start in a folder below takes its commands from there.
const configuration = "pawl.yaml"

// repository is the file without which git takes no folder for a repository. With it, and
// others of usual names, it takes commands from the folder in which git runs.
const repository = "HEAD"

// Change is one path that differs from the run's base. Paths are relative to
// the root, with "/".
type Change struct {
	Path   string
	From   string // of a rename, the old path
	Status byte   // 'A' added, 'M' modified, 'D' deleted, 'R' renamed, 'T' type changed
	Link   bool   // what is there now is a symbolic link
}

// Protect says which paths an agent may not change.
type Protect struct {
	Patterns []string // see Match
	// Files are what pawl takes commands from, besides pawl.yaml.
	Files []string
	Allow []string // lifts patterns for this procedure or case; files and pawl.yaml by their names only
	New   bool     // new files under a pattern are refused too
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
	covered := rules.newFinder()
	for _, c := range changes {
		pattern, ok := covered(c.Path)
		if !ok && c.Link && rules.New && !rules.isLifted(c.Path) {
			i := slices.IndexFunc(rules.Patterns, func(one string) bool {
				return LeadsTo(strings.ToLower(c.Path), strings.ToLower(one))
			})
			if ok = i >= 0; ok {
				pattern = rules.Patterns[i]
			}
		}
		if ok {
			if why := whyRefused(c, rules.New || rules.isProtectedByName(c.Path)); why != "" {
				why = fmt.Sprintf("%s, but it is protected by %q", why, pattern)
				if pattern == c.Path && path.Base(pattern) == repository {
					why += ": git could take a folder of this name for a repository, and run its commands"
				}
				out = append(out, Violation{c.Path, why})
			}
		}
		if c.Status == 'R' && c.From != "" {
			if pattern, ok := covered(c.From); ok {
				why := fmt.Sprintf("it was renamed to %s, but it is protected by %q", c.Path, pattern)
				out = append(out, Violation{c.From, why})
			}
		}
	}
	slices.SortStableFunc(out, func(a, b Violation) int { return strings.Compare(a.Path, b.Path) })
	return out
}

func whyRefused(c Change, refuseNew bool) string {
	switch c.Status {
	case 'A':
		if refuseNew {
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

// newFinder returns a function that finds the pattern that protects a path, if one does. Where
// new files are refused upper and lower case do not differ, as for some file systems.
func (p Protect) newFinder() func(path string) (pattern string, ok bool) {
	return func(path string) (string, bool) {
		if p.isProtectedByName(path) {
			return path, !slices.Contains(p.Allow, path)
		}
		if p.isLifted(path) {
			return "", false
		}
		for i, one := range p.Patterns {
			if p.New {
				one, path = strings.ToLower(one), strings.ToLower(path)
			}
			if Match(one, path) {
				return p.Patterns[i], true
			}
		}
		return "", false
	}
}

func (p Protect) isLifted(path string) bool {
	return slices.ContainsFunc(p.Allow, func(one string) bool { return Match(one, path) })
}

// LeadsTo reports whether a pattern covers a path, or a folder of the pattern does: a link
// there leads to what the pattern is about.
func LeadsTo(name, pattern string) bool {
	isCovered := Match(pattern, name)
	for dir := path.Dir(pattern); !isCovered && dir != "."; dir = path.Dir(dir) {
		isCovered = !strings.ContainsAny(path.Base(dir), "*?[{") && Match(dir, name)
	}
	return isCovered
}

// maxCovered bounds what [Protect.Covers] lists.
const maxCovered = 1000

// CoversTest reports whether a rule is about what judges: the files that a failure names, or those
// that a gate's command starts.
func (p Protect) CoversTest(f *failure.Analysis, gates []Spec) bool {
	isNamed := func(i failure.Item) bool { return i.File != "" && p.CoversOne(i.File) }
	isStarted := func(g Spec) bool { return slices.ContainsFunc(strings.Fields(g.Command), p.CoversOne) }
	return slices.ContainsFunc(f.Items, isNamed) || slices.ContainsFunc(gates, isStarted)
}

// CoversOne reports whether a rule is about the file of that name.
func (p Protect) CoversOne(name string) bool { return len(p.Covers("", []string{name})) > 0 }

// Covers are the files below a folder that the patterns protect, of the given names, by
// their whole paths: the first 1000. None is listed if there are no patterns.
func (p Protect) Covers(dir string, names []string) []string {
	var out []string
	for covered := p.newFinder(); len(p.Patterns) > 0 && len(names) > 0 && len(out) < maxCovered; names = names[1:] {
		if _, ok := covered(names[0]); ok {
			out = append(out, filepath.Join(dir, filepath.FromSlash(names[0])))
		}
	}
	return out
}

// isProtectedByName reports whether a path is protected by its name, and not by a pattern.
func (p Protect) isProtectedByName(name string) bool {
	base := path.Base(name)
	return base == configuration || base == repository || slices.Contains(p.Files, name)
}

// maxViolations is how many paths a failure names.
const maxViolations = 20

// TamperingFailure makes the analysis of violations, of which there is at
// least one: the feedback names each path and why it is refused.
func TamperingFailure(v []Violation) failure.Analysis {
	a := failure.Analysis{
		Class: failure.Tampering, Kind: failure.Work, Severity: failure.High, Code: CodeFailed,
		Actions: []string{
			"Restore the protected files, and make the change elsewhere.",
			"If the change is wanted, add the path to allow: in pawl.yaml.",
		},
	}
	paths := make([]string, 0, len(v))
	for _, one := range v {
		paths = append(paths, one.Path)
		if len(a.Items) < maxViolations {
			message := one.Path + ": " + one.Why + ". Restore it."
			a.Items = append(a.Items, failure.Item{File: one.Path, Message: message})
		}
	}
	what := "protected files were changed: "
	if len(v) == 1 {
		what = "a protected file was changed: "
	}
	a.Summary = shortenToSummary(what + strings.Join(paths, ", ") + " (" + v[0].Why + ")")
	a.Fingerprint = failure.Fingerprint(a, paths...)
	return a
}

// Bounds of a pattern.
const (
	maxPattern = 1000
	maxBraces  = 8
)

// Match reports whether path, relative and with "/", fits pattern:
//
//   - any characters but "/"
//     **       as a whole element: any number of elements, also none
//     ?        one character but "/"
//     [a-z]    one of a class; [!a] and [^a] one outside of it, also "/"
//     {b,c}    one of the alternatives, which may hold other signs
//     \x       the character x
//
// A pattern whose last element has neither *, ? nor a class covers a folder of that
// name with all below it. A trailing "/" is ignored, and so is a leading "/" or
// "./". Upper and lower case differ. A pattern that CheckPattern refuses
// matches nothing.
func Match(pattern, path string) bool {
	return CheckPattern(pattern) == nil && fitsPattern(pattern, path)
}

// CheckPattern returns the fault of pattern, or nil.
func CheckPattern(pattern string) error {
	p := trimPattern(pattern)
	var why string
	switch {
	case len(pattern) > maxPattern:
		return fmt.Errorf("cannot use a pattern of %d bytes: at most %d are allowed", len(pattern), maxPattern)
	case p == "":
		why = "it is empty"
	case !utf8.ValidString(p) || strings.Contains(p, "\x00"):
		why = "it is not UTF-8 text"
	case strings.Count(p, "{") > maxBraces:
		why = fmt.Sprintf("it has more than %d braces", maxBraces)
	case !doublestar.ValidatePattern(p):
		why = "a { or a [ is not closed, or it ends with a \\"
	default:
		return nil
	}
	return fmt.Errorf("cannot use the pattern %q: %s", pattern, why)
}

func trimPattern(pattern string) string {
	return strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(pattern, "./"), "/"), "/")
}

// fitsPattern is Match for a pattern that was checked.
func fitsPattern(pattern, path string) bool {
	p := trimPattern(pattern)
	if path == "" || doublestar.MatchUnvalidated(p, path) {
		return path != ""
	}
	last := p[strings.LastIndexByte(p, '/')+1:]
	return !strings.ContainsAny(last, `*?[\`) && doublestar.MatchUnvalidated(p+"/**", path)
}
