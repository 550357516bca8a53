// Package safety says what a safety level allows: limits, operations,
// variables; and finds dangerous operations in commands and secrets in diffs.
//
// It reads text and decides. It never runs, stops or changes anything, and it
// is a tripwire and no fence: what is hidden well enough is not found. What
// holds against an agent that wants to get around it is the sandbox.
package safety

import (
	_ "embed"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/pawl-dev/pawl/internal/decide/lazy"
)

// Level is how much a run may do.
type Level string

// The levels, the freest first.
const (
	Permissive Level = "permissive"
	Normal     Level = "normal"
	Paranoid   Level = "paranoid"
)

// Limits are what a run of a level may use up. To reach a limit is allowed, to
// pass it is not.
type Limits struct {
	IterationCost     int64 // millionths of a US dollar
	TotalCost         int64 // millionths of a US dollar
	IterationDuration time.Duration
	TotalDuration     time.Duration
	IterationCalls    int   // calls to the model
	TotalCalls        int   // calls to the model
	IterationTokens   int64 // those from a cache included
	TotalTokens       int64 // those from a cache included
}

const (
	dollar  = 1_000_000
	million = 1_000_000
)

// LimitsOf returns a level's limits, of a level that is not known paranoid's.
// It is the one place that has the figures: the configuration's defaults are
// made of it.
func LimitsOf(l Level) Limits {
	switch l {
	case Permissive:
		return Limits{10 * dollar, 50 * dollar, 10 * time.Minute, time.Hour, 1000, 5000, 50 * million, 250 * million}
	case Normal:
		return Limits{5 * dollar, 20 * dollar, 5 * time.Minute, 30 * time.Minute, 500, 2000, 25 * million,
			100 * million}
	}
	return Limits{1 * dollar, 5 * dollar, 2 * time.Minute, 10 * time.Minute, 100, 500, 5 * million, 25 * million}
}

// Prefix begins the reason of whatever a level ended.
const Prefix = "Safety violation: "

// Operation is a sort of operation that a level may forbid.
type Operation string

// The operations.
const (
	Destructive Operation = "destructive" // what cannot be taken back
	External    Operation = "external"    // talks to somebody else than the model
	Writes      Operation = "writes"      // writes files outside of the workspace
)

// Message returns the error text for an operation that the level forbids.
func (o Operation) Message() string {
	switch o {
	case External:
		return "External API calls not allowed at this safety level"
	case Writes:
		return "File system writes not allowed at this safety level"
	}
	return "Destructive operations not allowed at this safety level"
}

// forbidsOperation reports whether operations of that sort and danger are stopped. Writes outside
// of the workspace count as destructive where other writes are free.
func (l Level) forbidsOperation(o Operation, d Danger) bool {
	switch {
	case l == Permissive:
		return false
	case o == External:
		return l != Normal
	case l == Normal:
		return d == High
	}
	return true
}

// Near is true from 80 % of a limit on: the time to warn. A limit of 0 or less
// is never near.
func Near(used, limit int64) bool { return limit > 0 && used >= limit-limit/5 }

// Variables are patterns of a user's own over the levels' lists. A pattern is
// a name in which * stands for any characters; case does not count.
type Variables struct {
	Hide  []string // not for children at normal and paranoid
	Allow []string // for children at every level, whatever else says no
}

//go:embed variables.txt
var variableTable string

// variables are the patterns of variables.txt by section.
var variables = sync.OnceValue(func() map[string][]string { return WordsOf(variableTable) })

// Environ returns what children of a level get of env (K=V each), in its
// order, and the names of what is withheld, sorted, but for what is no name for a shell: proxies and options are
// without their passwords. needs are patterns of what the child itself works with, such as its provider's key.
// The result never has a value in a name; env is not changed.
func (l Level) Environ(env, needs []string, own Variables) (kept, withheld []string) {
	kept = make([]string, 0, len(env))
	for _, kv := range env {
		name, value, _ := strings.Cut(kv, "=")
		lets, plain := l.filterVariable(strings.ToUpper(name), value, needs, own)
		if lets {
			kept = append(kept, name+kv[len(name):len(kv)-len(value)]+plain)
		}
		if isWhole := lets && plain == value; !isWhole && !strings.ContainsFunc(name, noNameRune) {
			withheld = append(withheld, name)
		}
	}
	slices.Sort(withheld)
	return kept, slices.Compact(withheld)
}

// noNameRune is for what no variable's name has that a shell knows.
func noNameRune(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) }

// filterVariable reports whether children get a variable, and returns its value without passwords.
func (l Level) filterVariable(name, value string, needs []string, own Variables) (lets bool, plain string) {
	known := variables()
	switch {
	case l == "" || l == Permissive, matchesOne(own.Allow, name):
		return true, value
	case matchesOne(own.Hide, name):
		return false, ""
	case matchesOne(needs, name), matchesOne(known["harmless"], name) && l == Normal:
		return true, value
	case matchesOne(known["proxy"], name):
		return true, addressUser().ReplaceAllString(value, "$1$2")
	case matchesOne(known["secret"], name), isSecretValue(value):
		return false, ""
	case !matchesOne(known["plain"], name):
		lets = l == Normal && matchesOne(known["tools"], name) && !isRandom(name, value)
		return lets, withoutPasswords(value)
	}
	return true, withoutPasswords(value)
}

const optionValue = `(?:"[^"]*"|'[^']*'|[^\s"';]+)`

var (
	// secretOption is one of a program that is given a password, a token or a key.
	secretOption = lazy.Regexp(`(?i)((?:^|[\s"'])--?[\w.-]*?` + secretName + `[= ]\s*)` + optionValue)
	// secretPart is one of a database's address: host=db;password=x.
	secretPart  = lazy.Regexp(`(?i)((?:^|[\s"';])` + secretName + `=\s*)` + optionValue)
	localServer = lazy.Regexp(`(?i)(?:^|[\s;])(?:host|server|data source)=["']?(?:localhost|127\.|::1|/)`)
	webUser     = lazy.Regexp(`(https?://)[^/@\s]+@`)
	// randomWord matches generated values; idName matches the names of values that only look like
	// it.
	randomWord = lazy.Regexp(`[A-Za-z0-9+=_~-]{20,}`)
	idName     = lazy.Regexp(`SHA|COMMIT|HASH|DIGEST|REF|ID$|VERSION`)
)

// withoutPasswords is the value of a variable without those in options and in addresses of the web.
func withoutPasswords(value string) string {
	if !localServer().MatchString(value) { // as an address with a scheme
		value = secretPart().ReplaceAllString(value, "$1")
	}
	return webUser().ReplaceAllString(secretOption().ReplaceAllString(value, "$1"), "$1")
}

// isRandom reports whether a variable has a word in it that looks generated: a key of a format that
// is not known.
func isRandom(name, value string) bool {
	if idName().MatchString(name) {
		return false
	}
	for part := range strings.FieldsFuncSeq(value, func(c rune) bool { return strings.ContainsRune(" \t\n=:;,", c) }) {
		word := randomWord().FindString(part)
		isPath := strings.HasPrefix(part, "/") || strings.HasPrefix(part, "-")
		if word != "" && !isPath && mixesLettersAndDigits(word) && countDistinct(word) >= 10 {
			return true
		}
	}
	return false
}

// isSecretValue reports whether a value is secret by its form: a key of a known format, or an
// address with a password that is not on this machine.
func isSecretValue(value string) bool {
	if len(value) > maxLine {
		value = value[:maxLine]
	}
	if known, _ := knownSecret(value); known != "" {
		return true
	}
	at := addressUser().FindString(value)
	return strings.Contains(strings.TrimPrefix(at, "://"), ":") && !isLoopback(value)
}

// matchesOne reports whether a name, in upper case, fits one of the patterns.
func matchesOne(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return matchesGlob(strings.ToUpper(p), name) })
}

// matchesGlob matches a pattern in which * stands for any characters, in time linear in the name
// for each star.
func matchesGlob(pattern, name string) bool {
	head, rest, star := strings.Cut(pattern, "*")
	if !star {
		return pattern == name
	}
	name, ok := strings.CutPrefix(name, head)
	if !ok {
		return false
	}
	for {
		part, more, star := strings.Cut(rest, "*")
		if !star {
			return strings.HasSuffix(name, part)
		}
		i := strings.Index(name, part)
		if i < 0 {
			return false
		}
		name, rest = name[i+len(part):], more
	}
}
