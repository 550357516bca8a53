package gate

import (
	"fmt"
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
// name with all below it. A trailing "/" is ignored, and so is a leading "/" or "./". Upper and lower case differ. A
// pattern that CheckPattern refuses matches nothing. The cost is at most the
// product of both lengths for each alternative.
func Match(pattern, path string) bool {
	alternatives, err := parse(pattern)
	if err != nil || path == "" {
		return false
	}
	elements := strings.Split(path, "/")
	for _, a := range alternatives {
		if matchElements(strings.Split(a, "/"), elements) {
			return true
		}
	}
	return false
}

// CheckPattern tells what is wrong with pattern, or returns nil.
func CheckPattern(pattern string) error {
	_, err := parse(pattern)
	return err
}

// parse expands the alternatives of pattern and checks each.
func parse(pattern string) ([]string, error) {
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
	all, err := expand(p)
	if err != nil {
		return nil, fmt.Errorf("cannot use the pattern %q: %v", pattern, err)
	}
	for _, a := range all {
		for _, element := range strings.Split(a, "/") {
			if _, err := matchElement(element, ""); err != nil {
				return nil, fmt.Errorf("cannot use the pattern %q: %v", pattern, err)
			}
		}
	}
	return all, nil
}

// expand replaces braces by their alternatives, the first brace first.
func expand(p string) ([]string, error) {
	done, open := []string{}, []string{p}
	for len(open) > 0 {
		p, open = open[0], open[1:]
		from, to, err := braces(p)
		if err != nil {
			return nil, err
		}
		if from < 0 {
			done = append(done, p)
		} else {
			var next []string
			for _, part := range parts(p[from+1 : to]) {
				next = append(next, p[:from]+part+p[to+1:])
			}
			open = append(next, open...)
		}
		if len(done)+len(open) > maxAlternatives {
			return nil, fmt.Errorf("more than %d alternatives", maxAlternatives)
		}
	}
	return done, nil
}

// braces returns where the first brace opens and closes; -1 when there is none.
func braces(p string) (from, to int, err error) {
	from, depth := -1, 0
	for i := 0; i < len(p); i++ {
		switch p[i] {
		case '\\':
			i++
		case '[':
			if n := classEnd(p[i:]); n > 0 {
				i += n - 1
			}
		case '{':
			if depth == 0 {
				from = i
			}
			depth++
		case '}':
			if depth == 0 {
				continue
			}
			if depth--; depth == 0 {
				return from, i, nil
			}
		}
	}
	if depth > 0 {
		return -1, -1, fmt.Errorf("a { is not closed")
	}
	return -1, -1, nil
}

// parts splits the inside of a brace at its own commas.
func parts(s string) []string {
	var out []string
	depth, from := 0, 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '[':
			if n := classEnd(s[i:]); n > 0 {
				i += n - 1
			}
		case '{':
			depth++
		case '}':
			depth--
		case ',':
			if depth == 0 {
				out = append(out, s[from:i])
				from = i + 1
			}
		}
	}
	return append(out, s[from:])
}

// matchElements matches whole elements. "**" is tried greedily with one point
// to go back to, which is enough: a later "**" makes earlier ones settled.
func matchElements(pattern, path []string) bool {
	p, s := 0, 0
	backP, backS := -1, 0
	for s < len(path) {
		switch {
		case p < len(pattern) && pattern[p] == "**":
			backP, backS = p, s
			p++
			continue
		case p < len(pattern):
			if ok, err := matchElement(pattern[p], path[s]); ok && err == nil {
				p++
				s++
				continue
			}
		case !strings.ContainsAny(pattern[len(pattern)-1], `*?[\`):
			return true // a folder above
		}
		if backP < 0 {
			return false
		}
		backS++
		p, s = backP+1, backS
	}
	for p < len(pattern) && pattern[p] == "**" {
		p++
	}
	return p == len(pattern)
}

// matchElement matches one element, in the same way with "*".
func matchElement(pattern, s string) (bool, error) {
	if s == "" {
		return pattern == "", checkElement(pattern)
	}
	p, i := 0, 0
	backP, backI := -1, 0
	for i < len(s) {
		if p < len(pattern) && pattern[p] == '*' {
			backP, backI = p, i
			p++
			continue
		}
		if n, width, ok := one(pattern[p:], s[i:]); ok {
			p += n
			i += width
			continue
		}
		if backP < 0 {
			return false, nil
		}
		_, width := utf8.DecodeRuneInString(s[backI:])
		backI += width
		p, i = backP+1, backI
	}
	return strings.Trim(pattern[p:], "*") == "", nil
}

// one matches the first sign of pattern with the first character of s and
// returns the lengths of both.
func one(pattern, s string) (n, width int, ok bool) {
	if pattern == "" {
		return 0, 0, false
	}
	r, width := utf8.DecodeRuneInString(s)
	switch pattern[0] {
	case '?':
		return 1, width, true
	case '[':
		n := classEnd(pattern)
		return n, width, n > 0 && inClass(pattern[1:n-1], r)
	case '\\':
		pattern = pattern[1:]
		want, size := utf8.DecodeRuneInString(pattern)
		return size + 1, width, size > 0 && want == r && s[:width] == pattern[:size]
	}
	_, size := utf8.DecodeRuneInString(pattern)
	return size, width, pattern[:size] == s[:width]
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
		case (p[i] == '!' || p[i] == '^') && i == 1:
			continue
		case p[i] == ']' && !first:
			return i + 1
		}
		first = false
	}
	return 0
}

func inClass(class string, r rune) bool {
	not := class != "" && (class[0] == '!' || class[0] == '^')
	if not {
		class = class[1:]
	}
	found := false
	for class != "" {
		low, n := classRune(class)
		class = class[n:]
		high := low
		if len(class) > 1 && class[0] == '-' {
			high, n = classRune(class[1:])
			class = class[1+n:]
		}
		found = found || low <= r && r <= high
	}
	return found != not
}

func classRune(s string) (rune, int) {
	if s[0] == '\\' && len(s) > 1 {
		r, n := utf8.DecodeRuneInString(s[1:])
		return r, n + 1
	}
	return utf8.DecodeRuneInString(s)
}

// checkElement tells what is wrong with one element of a pattern.
func checkElement(p string) error {
	for i := 0; i < len(p); i++ {
		switch p[i] {
		case '\\':
			if i++; i == len(p) {
				return fmt.Errorf("a \\ stands at the end")
			}
		case '[':
			n := classEnd(p[i:])
			if n == 0 {
				return fmt.Errorf("a [ is not closed")
			}
			i += n - 1
		}
	}
	return nil
}
