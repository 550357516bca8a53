package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// parseJSON reads JSON into nodes that know their place, as parse does with
// YAML. The data is valid JSON.
func parseJSON(src *source, data []byte) (*node, error) {
	src.lines = strings.Split(string(data), "\n")
	r := &jsonReader{src: src, data: data, dec: json.NewDecoder(bytes.NewReader(data))}
	r.dec.UseNumber()
	return r.value(0)
}

type jsonReader struct {
	src  *source
	data []byte
	dec  *json.Decoder
	// line counts the ends of line before counted; start is where it begins.
	line, start, counted int

	nodes int
}

// token returns the next token and its place. Places only rise, so lines are
// counted once.
func (r *jsonReader) token() (json.Token, position, error) {
	from := int(r.dec.InputOffset())
	for from < len(r.data) && bytes.IndexByte([]byte(" \t\r\n,:"), r.data[from]) >= 0 {
		from++
	}
	for ; r.counted < from; r.counted++ {
		if r.data[r.counted] == '\n' {
			r.line, r.start = r.line+1, r.counted+1
		}
	}
	at := position{r.src, r.line + 1, utf8.RuneCount(r.data[r.start:from]) + 1}
	t, err := r.dec.Token()
	if err == nil {
		r.nodes++
	}
	return t, at, err
}

func (r *jsonReader) value(depth int) (*node, error) {
	t, at, err := r.token()
	if err != nil {
		return nil, errorAt(at, "", "cannot read the JSON: %v", err)
	}
	switch {
	case depth > maxDepth:
		return nil, errorAt(at, "", "the values are nested too deeply (over %d levels)", maxDepth)
	case r.nodes > maxNodes:
		return nil, errorAt(at, "", "the file holds too many values (over %d)", maxNodes)
	}
	switch t := t.(type) {
	case json.Delim:
		if t == '[' {
			return r.list(at, depth)
		}
		return r.object(at, depth)
	case string:
		return &node{kind: textNode, text: t, at: at, size: 1}, nil
	case json.Number:
		k := numberNode
		if strings.ContainsAny(t.String(), ".eE") {
			k = fractionNode
		}
		return &node{kind: k, text: t.String(), at: at, size: 1}, nil
	case bool:
		return &node{kind: boolNode, text: fmt.Sprint(t), at: at, size: 1}, nil
	}
	return &node{kind: nullNode, at: at, size: 1}, nil
}

func (r *jsonReader) list(at position, depth int) (*node, error) {
	out := &node{kind: listNode, at: at, size: 1}
	for r.dec.More() {
		item, err := r.value(depth + 1)
		if err != nil {
			return nil, err
		}
		out.items = append(out.items, item)
	}
	_, _, err := r.token() // ]
	return out, err
}

func (r *jsonReader) object(at position, depth int) (*node, error) {
	out := &node{kind: mapNode, at: at, size: 1}
	seen := map[string]position{}
	for r.dec.More() {
		t, keyAt, err := r.token()
		if err != nil {
			return nil, err
		}
		key, _ := t.(string)
		if first, ok := seen[key]; ok {
			return nil, errorAt(keyAt, "", "key %q stands here a second time; the first is in line %d", key, first.line)
		}
		seen[key] = keyAt
		value, err := r.value(depth + 1)
		if err != nil {
			return nil, err
		}
		out.pairs = append(out.pairs, pair{key, keyAt, value})
	}
	_, _, err := r.token() // }
	return out, err
}
