package gate

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
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
	if !utf8.ValidString(p) {
		return nil, fmt.Errorf("cannot use the pattern %q: it is not UTF-8", pattern)
	}
	alternatives, err := expand(p)
	for i, a := range alternatives {
		if err == nil {
			alternatives[i], err = translate(a)
		}
	}
	var re *regexp.Regexp
	if err == nil {
		re, err = regexp.Compile("(?s)^(?:" + strings.Join(alternatives, "|") + ")$")
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
		case '[':
			i += max(0, classEnd(p[i:])-1)
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
	elements := strings.Split(p, "/")
	last := elements[len(elements)-1]
	out := ""
	for _, e := range elements[:len(elements)-1] {
		if e == "**" {
			out += "(?:[^/]+/)*"
			continue
		}
		one, err := element(e)
		if err != nil {
			return "", err
		}
		out += one + "/"
	}
	if last == "**" {
		if over, ok := strings.CutSuffix(out, "/"); ok {
			return over + "(?:/.*)?", nil
		}
		return out + ".*", nil
	}
	one, err := element(last)
	if !strings.ContainsAny(last, `*?[\`) {
		one += "(?:/.*)?" // a folder with all below it
	}
	return out + one, err
}

// element makes a regular expression of one element of a pattern.
func element(p string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(p); i++ {
		switch p[i] {
		case '*':
			b.WriteString("[^/]*")
		case '?':
			b.WriteString("[^/]")
		case '[':
			n := classEnd(p[i:])
			if n == 0 {
				return "", errors.New("a [ is not closed")
			}
			b.WriteString(class(p[i+1 : i+n-1]))
			i += n - 1
		case '\\':
			if i++; i == len(p) {
				return "", errors.New("a \\ stands at the end")
			}
			b.WriteString(regexp.QuoteMeta(p[i : i+1]))
		default:
			b.WriteString(regexp.QuoteMeta(p[i : i+1]))
		}
	}
	return b.String(), nil
}

// classEnd returns the length of the class at the start of p, 0 when it is not
// closed. "]" as the first character of a class is one of its characters.
func classEnd(p string) int {
	for i, first := 1, true; i < len(p); i++ {
		switch {
		case p[i] == '/':
			return 0
		case p[i] == '\\':
			i++
		case i == 1 && strings.IndexByte("!^", p[i]) >= 0:
			continue
		case p[i] == ']' && !first:
			return i + 1
		}
		first = false
	}
	return 0
}

// class makes a regular expression of the inside of a class. No class fits "/".
func class(inside string) string {
	open := "["
	if inside[0] == '!' || inside[0] == '^' {
		open, inside = "[^/", inside[1:]
	}
	if rest, ok := strings.CutPrefix(inside, "]"); ok {
		open, inside = open+`\]`, rest
	}
	return open + strings.ReplaceAll(inside, "[", `\[`) + "]"
}
