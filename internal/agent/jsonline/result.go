package jsonline

import (
	"encoding/json"
	"strings"
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
// about n bytes, with "…" at its end when there was more; only so much is decoded.
func Result(b []byte, n int) string {
	if Null(b) {
		return ""
	}
	g := gatherer{room: n}
	g.take(b, 0)
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

// take adds the texts of a value.
func (g *gatherer) take(b []byte, depth int) {
	if len(b) == 0 || depth > maxNested {
		return
	}
	switch b[0] {
	case '"':
		text, cut := head(b, g.room-g.out.Len())
		if text != "" && g.out.Len() > 0 {
			g.out.WriteByte('\n')
		}
		g.out.WriteString(text)
		g.found, g.more = true, cut
	case '[':
		Array(b, func(v []byte) bool {
			g.take(v, depth+1)
			return !g.more
		})
	case '{':
		Object(b, func(key, v []byte) bool {
			if texts[string(key)] {
				g.take(v, depth+1)
			}
			return !g.more
		})
	}
}

// head decodes the text of a JSON string from at most its first n bytes.
func head(b []byte, n int) (text string, cut bool) {
	if len(b) < 2 {
		return "", false
	}
	inner := b[1 : len(b)-1]
	if len(inner) <= n {
		return String(b), false
	}
	const longest = len(`\ud83d\ude00`) // of one character, which the cut may halve
	for end := max(n, 0); end > max(n, 0)-longest && end > 0; end-- {
		quoted := append(append([]byte{'"'}, inner[:end]...), '"')
		if json.Unmarshal(quoted, &text) == nil {
			return strings.TrimRight(text, "\uFFFD"), true
		}
	}
	return "", true
}
