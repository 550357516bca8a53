// Package jsonline looks at the fields of one line of JSON without decoding
// the line: it finds the values that an adapter asks for and steps over the
// others at close to memory speed, since most bytes of an agent's stream are
// tool results that nobody reads.
//
// It trusts nothing and never panics. It does not validate what it steps
// over: a value that is returned is a whole one by its brackets and quotes, no
// more. Slices point into the line.
package jsonline

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxDepth bounds nesting, so that a line of brackets costs no more than its length.
const maxDepth = 10_000

// stops end a number or a word.
const stops = ",]} \t\r\n:\"[{"

// Object calls field for each key of the object in b, in the order of the
// line; key has no quotes (escapes in it are left as they are). It stops
// when field returns false. It returns false when b is not a whole object;
// fields before the damage have been seen then.
func Object(b []byte, field func(key, value []byte) bool) bool {
	i := space(b, 0)
	if i >= len(b) || b[i] != '{' {
		return false
	}
	i = space(b, i+1)
	if i < len(b) && b[i] == '}' {
		return true
	}
	for {
		keyEnd := skipString(b, i)
		if keyEnd < 0 {
			return false
		}
		key := b[i+1 : keyEnd-1]
		i = space(b, keyEnd)
		if i >= len(b) || b[i] != ':' {
			return false
		}
		start := space(b, i+1)
		end := skip(b, start)
		if end < 0 {
			return false
		}
		if !field(key, b[start:end]) {
			return true
		}
		more, next := separator(b, end, '}')
		if next < 0 {
			return false
		}
		if !more {
			return true
		}
		i = next
	}
}

// Array calls element for each value of the array in b until it returns
// false. It returns false when b is not a whole array.
func Array(b []byte, element func(value []byte) bool) bool {
	i := space(b, 0)
	if i >= len(b) || b[i] != '[' {
		return false
	}
	i = space(b, i+1)
	if i < len(b) && b[i] == ']' {
		return true
	}
	for {
		end := skip(b, i)
		if end < 0 {
			return false
		}
		if !element(b[i:end]) {
			return true
		}
		more, next := separator(b, end, ']')
		if next < 0 {
			return false
		}
		if !more {
			return true
		}
		i = next
	}
}

// Get returns the value at a path of keys, or nil.
func Get(b []byte, path ...string) []byte {
	for _, name := range path {
		var found []byte
		Object(b, func(key, value []byte) bool {
			if string(key) == name {
				found = value
				return false
			}
			return true
		})
		if found == nil {
			return nil
		}
		b = found
	}
	return b
}

// String returns the text of a JSON string, always valid UTF-8; "" for
// anything else, null included.
func String(b []byte) string {
	if len(b) < 2 || b[0] != '"' || b[len(b)-1] != '"' {
		return ""
	}
	inner := b[1 : len(b)-1]
	if bytes.IndexByte(inner, '\\') < 0 {
		return strings.ToValidUTF8(string(inner), "\uFFFD")
	}
	if s, cut, ok := unquote(inner); ok && !cut {
		return s
	}
	var s string
	if json.Unmarshal(b, &s) != nil {
		return ""
	}
	return s
}

// Short returns the first n bytes of a JSON string's text or a little less,
// without half a rune at the end.
func Short(b []byte, n int) string {
	s := String(b)
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return strings.Clone(s[:n])
}

// Count returns a number of things, such as tokens; 0 for what cannot be one:
// less than nothing, more than 10^12, or no number.
func Count(b []byte) int64 {
	n := Int(b)
	if n < 0 || n > 1_000_000_000_000 {
		return 0
	}
	return n
}

// Status returns an HTTP status; 0 for anything else.
func Status(b []byte) int {
	if n := Int(b); n >= 100 && n <= 999 {
		return int(n)
	}
	return 0
}

// Int returns a JSON number as a whole one, cut towards zero; 0 for anything
// else and for what does not fit.
func Int(b []byte) int64 {
	if n, err := strconv.ParseInt(string(b), 10, 64); err == nil {
		return n
	}
	f := Float(b)
	if math.Abs(f) >= 1<<62 {
		return 0
	}
	return int64(f)
}

// Float returns a JSON number; 0 for anything else. It is never NaN or infinite.
func Float(b []byte) float64 {
	if len(b) == 0 || len(b) > 64 || (b[0] != '-' && (b[0] < '0' || b[0] > '9')) {
		return 0
	}
	f, err := strconv.ParseFloat(string(b), 64)
	if err != nil || math.IsInf(f, 0) || math.IsNaN(f) {
		return 0
	}
	return f
}

// True is whether b is the JSON true.
func True(b []byte) bool { return string(b) == "true" }

// Null is whether b is absent or the JSON null.
func Null(b []byte) bool { return len(b) == 0 || string(b) == "null" }

// separator reads what follows a value: a comma (more, and where the next
// value starts) or the closing bracket. next is -1 for anything else.
func separator(b []byte, i int, closing byte) (more bool, next int) {
	i = space(b, i)
	switch {
	case i >= len(b):
		return false, -1
	case b[i] == closing:
		return false, i + 1
	case b[i] == ',':
		return true, space(b, i+1)
	}
	return false, -1
}

func space(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == '\r' || b[i] == '\n') {
		i++
	}
	return i
}

// skip returns the index after the value at i, or -1.
func skip(b []byte, i int) int {
	if i >= len(b) {
		return -1
	}
	switch b[i] {
	case '"':
		return skipString(b, i)
	case '{', '[':
		return skipNested(b, i)
	}
	start := i
	for i < len(b) && !strings.ContainsRune(stops, rune(b[i])) {
		i++
	}
	if i == start {
		return -1
	}
	return i
}

// skipNested steps over an object or array by its brackets.
func skipNested(b []byte, i int) int {
	depth := 0
	for i < len(b) {
		switch b[i] {
		case '"':
			if i = skipString(b, i); i < 0 {
				return -1
			}
			continue
		case '{', '[':
			if depth++; depth > maxDepth {
				return -1
			}
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
		i++
	}
	return -1
}

// skipString returns the index after the string that opens at i, or -1.
func skipString(b []byte, i int) int {
	if i >= len(b) || b[i] != '"' {
		return -1
	}
	first := i + 1
	for i = first; i < len(b); {
		quote := bytes.IndexByte(b[i:], '"')
		if quote < 0 {
			return -1
		}
		i += quote
		back := i
		for back > first && b[back-1] == '\\' {
			back--
		}
		i++
		if (i-1-back)%2 == 0 {
			return i
		}
	}
	return -1
}
