package jsonline

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// escapes are what the letters after a backslash stand for.
var escapes = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

const hexEscape = len(`\u0000`)

// unquote decodes the inside of a JSON string, up to an escape that is cut off
// at its end; cut tells of one. It is not ok for what encoding/json has to look
// at: control characters, bytes that are no UTF-8, halves of pairs, unknown
// escapes.
func unquote(in []byte) (text string, cut, ok bool) {
	var out strings.Builder
	out.Grow(len(in))
	for i := 0; i < len(in); {
		from := i
		for i < len(in) && in[i] != '\\' {
			if in[i] < ' ' || in[i] == '"' {
				return "", false, false
			}
			i++
		}
		out.Write(in[from:i])
		if i == len(in) {
			break
		}
		if i+1 == len(in) || in[i+1] == 'u' && len(in)-i < hexEscape {
			cut = true
			break
		}
		if c := escapes[in[i+1]]; c != 0 {
			out.WriteByte(c)
			i += 2
			continue
		}
		r, n := escaped(in[i:])
		if n == 0 {
			return "", false, false
		}
		out.WriteRune(r)
		i += n
	}
	text = out.String()
	return text, cut, utf8.ValidString(text)
}

// escaped is the character of the \u escape, or pair of them, that b begins with,
// and its length; 0 when it is none.
func escaped(b []byte) (r rune, n int) {
	r = hex(b)
	if !utf16.IsSurrogate(r) {
		if r < 0 {
			return 0, 0
		}
		return r, hexEscape
	}
	if r = utf16.DecodeRune(r, hex(b[hexEscape:])); r == utf8.RuneError {
		return 0, 0
	}
	return r, 2 * hexEscape
}

// hex is the number of a \u escape; -1 when b does not begin with one.
func hex(b []byte) rune {
	if len(b) < hexEscape || b[0] != '\\' || b[1] != 'u' {
		return -1
	}
	n, err := strconv.ParseUint(string(b[2:hexEscape]), 16, 16)
	if err != nil {
		return -1
	}
	return rune(n)
}
