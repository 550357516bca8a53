// Package words knows letters, words and numbers in a text.
package words

import (
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/pawl-dev/pawl/internal/decide/lists"
)

// Small are the ASCII capitals of s as small letters; its offsets stay.
func Small(s string) string {
	b := []byte(s)
	for i, c := range b {
		b[i] = Lower(c)
	}
	return string(b)
}

// Lower is c as a small letter.
func Lower(c byte) byte {
	if IsUpper(c) {
		return c + 'a' - 'A'
	}
	return c
}

// IsWord reports whether c belongs to a word: a letter, a digit or "_". Bytes of other scripts
// count as letters.
func IsWord(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= Lower(c) && Lower(c) <= 'z' || c >= 0x80
}

// IsUpper knows ASCII only.
func IsUpper(c byte) bool { return 'A' <= c && c <= 'Z' }

// IsLower knows ASCII only.
func IsLower(c byte) bool { return 'a' <= c && c <= 'z' }

// IsDigit knows ASCII only.
func IsDigit(c byte) bool { return '0' <= c && c <= '9' }

// Has reports whether one of parts is in s.
func Has(s string, parts ...string) bool { return HasAny(s, parts) }

// HasAny reports whether one of list, in small letters, is in small.
func HasAny(small string, list []string) bool {
	return slices.ContainsFunc(list, func(w string) bool { return strings.Contains(small, w) })
}

// Cut shortens s to at most n bytes, at a rune's edge.
func Cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// Set is the set of the words of a list.
func Set(list string) func() map[string]bool {
	return sync.OnceValue(func() map[string]bool {
		return lists.Set(strings.Fields(list))
	})
}

// Number reads a decimal number of at most 7 digits; 0 means none.
func Number(s string, i int) (n, end int) {
	from := i
	for i < len(s) && IsDigit(s[i]) {
		i++
	}
	if i == from || i-from > 7 {
		return 0, i
	}
	n, _ = strconv.Atoi(s[from:i])
	return n, i
}

// Indent is the width of the blanks that l begins with.
func Indent(l string) int { return len(l) - len(strings.TrimLeft(l, " \t")) }
