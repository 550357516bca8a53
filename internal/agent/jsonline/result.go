package jsonline

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/pawl-dev/pawl/internal/agent"
)

// maxNested bounds how deep the text of a result is looked for.
const maxNested = 6

// texts are the fields in which programs put the text of a tool's result, or a
// value that holds it.
var texts = map[string]bool{
	"text": true, "content": true, "output": true, "result": true, "stdout": true, "stderr": true,
	"interleavedOutput": true,
	"success":           true, "failure": true, "error": true, "rejected": true, "value": true, "message": true,
}

// Result returns the text of a tool's result: a string, or what texts a list
// or object of the usual forms holds, else the JSON itself. It has at most
// limit bytes, and "…" at its end when there was more.
func Result(b json.RawMessage, limit int) string {
	g := gatherer{decoder: json.NewDecoder(bytes.NewReader(b)), limit: limit}
	g.value(true, 0)
	text := g.text.String()
	if b = bytes.TrimSpace(b); !g.found && len(b) > len("{}") && bytes.IndexByte([]byte("{["), b[0]) >= 0 {
		text = string(b)
	}
	text = strings.ToValidUTF8(text, "")
	if short := agent.Clip(text, limit); len(short) < len(text) {
		return short + "…"
	}
	return text
}

// gatherer adds up texts, a line each, until there are enough.
type gatherer struct {
	decoder *json.Decoder
	limit   int
	text    strings.Builder
	found   bool // a text, which may be empty
}

// value adds the texts of the next value, if they are wanted. It returns false
// at the end.
func (g *gatherer) value(wanted bool, depth int) bool {
	token, err := g.decoder.Token()
	if err != nil || g.text.Len() > g.limit {
		return false
	}
	switch token := token.(type) {
	case string:
		if wanted && depth <= maxNested {
			g.add(token)
		}
	case json.Delim:
		return g.each(token, wanted, depth)
	}
	return true
}

// each adds the texts of the elements of an array, or of the fields of an object
// that have them.
func (g *gatherer) each(opening json.Delim, wanted bool, depth int) bool {
	for g.decoder.More() {
		inside := wanted
		if opening == '{' {
			key, _ := g.decoder.Token()
			name, _ := key.(string)
			inside = wanted && texts[name]
		}
		if !g.value(inside, depth+1) {
			return false
		}
	}
	_, err := g.decoder.Token()
	return err == nil
}

func (g *gatherer) add(text string) {
	if g.found = true; text == "" {
		return
	}
	if g.text.Len() > 0 {
		g.text.WriteByte('\n')
	}
	g.text.WriteString(text)
}
