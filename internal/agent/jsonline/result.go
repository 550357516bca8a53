package jsonline

import (
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// maxNested bounds how deep the text of a result is looked for.
const maxNested = 6

// texts are the fields in which programs put the text of a tool's result, or a
// value that holds it.
var texts = map[string]bool{
	"text": true, "content": true, "output": true, "result": true, "stdout": true, "stderr": true, "interleavedOutput": true,
	"success": true, "failure": true, "error": true, "rejected": true, "value": true, "message": true,
}

// Result returns the text of a tool's result: a string, or what texts a list
// or object of the usual forms holds, else the JSON itself. It is at most
// about n bytes, with "…" at its end when there was more; only so much is
// looked at and decoded. In damaged JSON it is what comes before the damage.
func Result(b []byte, n int) string {
	if Null(b) {
		return ""
	}
	g := gatherer{room: n}
	g.take(b, 0, 0)
	if !g.found && (b[0] == '{' || b[0] == '[') && len(b) > len("{}") {
		raw := b[:min(len(b), max(n, 0))]
		g.more = len(raw) < len(b)
		g.out.WriteString(strings.ToValidUTF8(string(raw), ""))
	}
	if g.more {
		g.out.WriteString("…")
	}
	return g.out.String()
}

// gatherer adds up texts.
type gatherer struct {
	out   strings.Builder
	room  int  // how many bytes there may be
	found bool // a text, which may be empty
	more  bool // not all had room
}

// take adds the texts of the value at i, and returns the index after it; -1
// ends it all, at damage or when there is no room for more.
func (g *gatherer) take(b []byte, i, depth int) int {
	if i >= len(b) || depth > maxNested {
		return skip(b, i)
	}
	switch b[i] {
	case '"':
		return g.text(b, i)
	case '[':
		return g.each(b, i, ']', depth)
	case '{':
		return g.each(b, i, '}', depth)
	}
	return skip(b, i)
}

// each adds the texts of the elements of an array, or of the fields of an object
// that have them.
func (g *gatherer) each(b []byte, i int, closing byte, depth int) int {
	if i = space(b, i+1); i < len(b) && b[i] == closing {
		return i + 1
	}
	for more := true; more; {
		wanted := true
		if closing == '}' {
			end := skipString(b, i)
			if end < 0 {
				return -1
			}
			wanted = texts[string(b[i+1:end-1])]
			if i = space(b, end); i >= len(b) || b[i] != ':' {
				return -1
			}
			i = space(b, i+1)
		}
		if wanted {
			i = g.take(b, i, depth+1)
		} else {
			i = skip(b, i)
		}
		if i < 0 {
			return -1
		}
		if more, i = separator(b, i, closing); i < 0 {
			return -1
		}
	}
	return i
}

// text adds the string at i. Of a long one only the beginning is looked at.
func (g *gatherer) text(b []byte, i int) int {
	room := g.room - g.out.Len()
	g.found, g.more = true, room < 0
	if g.more {
		return -1
	}
	var text string
	first := b[i:min(i+room+len(`""`), len(b))]
	end := skipString(first, 0)
	if end >= 0 {
		text = String(first[:end])
		end += i
	} else {
		text, g.more = head(first[1:min(1+room, len(first))]), true
	}
	if text != "" && g.out.Len() > 0 {
		g.out.WriteByte('\n')
	}
	g.out.WriteString(text)
	return end
}

// head decodes the beginning of a string's inside, which may be cut anywhere.
func head(inner []byte) string {
	text, _, ok := unquote(whole(inner))
	if !ok {
		text = decodeHead(inner)
	}
	return strings.TrimRight(text, "\uFFFD")
}

// decodeHead is what encoding/json makes of the longest beginning that it takes.
func decodeHead(inner []byte) (text string) {
	for end := len(inner); end > len(inner)-len(longest) && end > 0; end-- {
		quoted := append(append([]byte{'"'}, inner[:end]...), '"')
		if json.Unmarshal(quoted, &text) == nil {
			return text
		}
	}
	return ""
}

const longest = `\ud83d\ude00` // of one character, which a cut may halve

// whole is b without half a character at its end.
func whole(b []byte) []byte {
	for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
		if tail := b[len(b)-n:]; utf8.RuneStart(tail[0]) {
			if !utf8.FullRune(tail) {
				return b[:len(b)-n]
			}
			break
		}
	}
	return b
}
