package safety

import (
	_ "embed"
	"slices"
	"strings"
	"sync"
)

// Variables are patterns of a user's own over the levels' lists. A pattern is
// a name in which * stands for any characters; case does not count.
type Variables struct {
	Hide  []string // not for children at normal and paranoid
	Allow []string // for children at every level, whatever else says no
}

//go:embed variables.txt
var variableTable string

// variables are the patterns of variables.txt by section.
var variables = sync.OnceValue(func() map[string][]string { return wordsOf(variableTable) })

// Environ returns what children of a level get of env (K=V each), in its
// order, and the names of what is withheld, sorted. needs are patterns of what
// the child itself works with, such as its provider's key. The result never
// has a value in a name; env is not changed.
func (l Level) Environ(env, needs []string, own Variables) (kept, withheld []string) {
	kept = make([]string, 0, len(env))
	for _, kv := range env {
		name, value, _ := strings.Cut(kv, "=")
		if l.lets(strings.ToUpper(name), value, needs, own) {
			kept = append(kept, kv)
		} else {
			withheld = append(withheld, name)
		}
	}
	slices.Sort(withheld)
	return kept, slices.Compact(withheld)
}

func (l Level) lets(name, value string, needs []string, own Variables) bool {
	known := variables()
	switch {
	case l == "" || l == Permissive, matches(own.Allow, name):
		return true
	case matches(own.Hide, name):
		return false
	case matches(needs, name), matches(known["proxy"], name), matches(known["harmless"], name) && l == Normal:
		return true
	case l == Paranoid && !matches(known["plain"], name), matches(known["secret"], name), secretValue(value):
		return false
	}
	return true
}

// secretValue is true for a value that shows what it is: a key of a known
// format, or an address with a password that is not on this machine.
func secretValue(value string) bool {
	if len(value) > maxLine {
		value = value[:maxLine]
	}
	if known, _ := knownSecret(value); known != "" {
		return true
	}
	_, rest, ok := strings.Cut(value, "://")
	if !ok {
		return false
	}
	authority, _, _ := strings.Cut(rest, "/")
	user, _, ok := cutLast(authority, "@")
	return ok && strings.Contains(user, ":") && !loopback(value)
}

func cutLast(s, sep string) (before, after string, ok bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// matches says whether a name, in upper case, fits one of the patterns.
func matches(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return glob(strings.ToUpper(p), name) })
}

// glob matches a pattern in which * stands for any characters, in time linear
// in the name for each star.
func glob(pattern, name string) bool {
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
