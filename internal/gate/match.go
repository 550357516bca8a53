package gate

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	shell "mvdan.cc/sh/v3/pattern"
)

// Bounds of a pattern.
const (
	maxPattern      = 1000
	maxAlternatives = 256
)

// Match tells whether path, relative and with "/", fits pattern:
//
//   - any characters but "/"
//     **       as a whole element: any number of elements, also none
//     ?        one character but "/"
//     [a-z]    one of a class; [!a] and [^a] one outside of it
//     {b,c}    one of the alternatives, which may hold other signs
//     \x       the character x
//
// A pattern whose last element has none of these signs covers a folder of that
// name with all below it. A trailing "/" is ignored, and so is a leading "/" or
// "./". Upper and lower case differ. A pattern that CheckPattern refuses
// matches nothing.
func Match(pattern, path string) bool {
	re, err := compile(pattern)
	return err == nil && path != "" && re.MatchString(path)
}

// CheckPattern tells what is wrong with pattern, or returns nil.
func CheckPattern(pattern string) error {
	_, err := compile(pattern)
	return err
}

// compile makes a regular expression of pattern.
func compile(pattern string) (*regexp.Regexp, error) {
	if len(pattern) > maxPattern {
		return nil, fmt.Errorf("cannot use a pattern of %d bytes: at most %d are allowed", len(pattern), maxPattern)
	}
	p := strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(pattern, "./"), "/"), "/")
	if p == "" {
		return nil, fmt.Errorf("cannot use the pattern %q: it is empty", pattern)
	}
	if !utf8.ValidString(p) || strings.Contains(p, "\x00") {
		return nil, fmt.Errorf("cannot use the pattern %q: it is no text in UTF-8", pattern)
	}
	alternatives, err := expand(p)
	for i, a := range alternatives {
		if err == nil {
			alternatives[i], err = translate(a)
		}
	}
	var re *regexp.Regexp
	if err == nil {
		re, err = regexp.Compile(strings.Join(alternatives, "|"))
	}
	if err != nil {
		return nil, fmt.Errorf("cannot use the pattern %q: %v", pattern, err)
	}
	return re, nil
}

// expand replaces braces by their alternatives.
func expand(p string) ([]string, error) {
	done, open := []string{}, []string{p}
	for len(open) > 0 {
		first := open[0]
		open = open[1:]
		next, err := braces(first)
		if err != nil {
			return nil, err
		}
		if next == nil {
			done = append(done, first)
		}
		open = append(next, open...)
		if len(done)+len(open) > maxAlternatives {
			return nil, fmt.Errorf("more than %d alternatives", maxAlternatives)
		}
	}
	return done, nil
}

// braces returns p with the first brace replaced by each of its alternatives;
// nil when there is none.
func braces(p string) ([]string, error) {
	depth, cuts := 0, []int(nil) // where the brace opens, its commas, and where it closes
	for i := 0; i < len(p); i++ {
		switch p[i] {
		case '\\':
			i++
		case '{':
			if depth++; depth == 1 {
				cuts = []int{i}
			}
		case ',':
			if depth == 1 {
				cuts = append(cuts, i)
			}
		case '}':
			if depth--; depth < 0 {
				depth = 0
			} else if depth == 0 {
				cuts = append(cuts, i)
				var all []string
				for n, cut := range cuts[1:] {
					all = append(all, p[:cuts[0]]+p[cuts[n]+1:cut]+p[i+1:])
				}
				return all, nil
			}
		}
	}
	if depth > 0 {
		return nil, errors.New("a { is not closed")
	}
	return nil, nil
}

// translate makes a regular expression of a pattern without braces.
func translate(p string) (string, error) {
	re, err := shell.Regexp(p, shell.Filenames|shell.EntireString|shell.GlobLeadingDot)
	switch {
	case err != nil:
		return "", err
	case strings.Count(re, `\[`) > strings.Count(p, `\[`): // it is taken for a plain one
		return "", errors.New("a [ is not closed")
	}
	re = strings.ReplaceAll(strings.TrimSuffix(re, "$"), "[^", "[^/") // no class fits "/"
	last := p[strings.LastIndexByte(p, '/')+1:]
	switch {
	case last == "**" && last != p:
		re = strings.TrimSuffix(re, "/.*") + "(?:/.*)?"
	case !strings.ContainsAny(last, `*?[\`):
		re += "(?:/.*)?" // a folder with all below it
	}
	return re + "$", nil
}
