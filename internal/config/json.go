package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// parseAny reads YAML or JSON; the error of a document in JSON has its place
// too.
func parseAny(src *source, data []byte) (root *node, isJSON bool, err error) {
	if !json.Valid(data) {
		root, err = parse(src, data)
		return root, false, err
	}
	src.lines = strings.Split(string(data), "\n")
	r := &jsonReader{src: src, data: data, dec: json.NewDecoder(bytes.NewReader(data))}
	r.dec.UseNumber()
	root, err = r.value(0)
	return root, true, err
}

type jsonReader struct {
	src  *source
	data []byte
	dec  *json.Decoder
	// at is where the last token begins, in line, which begins at start.
	at, line, start int
	nodes           int
}

// token returns the next token and its place.
func (r *jsonReader) token() (json.Token, position, error) {
	from := int(r.dec.InputOffset())
	for from < len(r.data) && bytes.IndexByte([]byte(" \t\r\n,:"), r.data[from]) >= 0 {
		from++
	}
	skipped := r.data[r.at:from]
	r.line += bytes.Count(skipped, []byte("\n"))
	if i := bytes.LastIndexByte(skipped, '\n'); i >= 0 {
		r.start = r.at + i + 1
	}
	r.at = from
	t, err := r.dec.Token()
	return t, position{r.src, r.line + 1, utf8.RuneCount(r.data[r.start:from]) + 1}, err
}

func (r *jsonReader) value(depth int) (*node, error) {
	t, at, err := r.token()
	r.nodes++
	switch {
	case err != nil:
		return nil, errorAt(at, "", "cannot read the JSON: %v", err)
	case depth > maxDepth:
		return nil, errorAt(at, "", "the values are nested too deeply (over %d levels)", maxDepth)
	case r.nodes > maxNodes:
		return nil, errorAt(at, "", "the file holds too many values (over %d)", maxNodes)
	}
	n := &node{at: at, size: 1}
	switch t := t.(type) {
	case json.Delim:
		n.kind = listNode
		if t == '{' {
			n.kind = mapNode
		}
		err = r.below(n, depth)
	case string:
		n.kind, n.text = textNode, t
	case json.Number:
		n.kind, n.text = numberNode, t.String()
		if strings.ContainsAny(n.text, ".eE") {
			n.kind = fractionNode
		}
	case bool:
		n.kind, n.text = boolNode, fmt.Sprint(t)
	}
	return n, err
}

// below reads what a list or a map holds, and its end.
func (r *jsonReader) below(n *node, depth int) error {
	seen := map[string]position{}
	for r.dec.More() {
		var p pair
		if n.kind == mapNode {
			t, at, err := r.token()
			if err != nil {
				return err
			}
			p.key, _ = t.(string)
			p.at = at
			if first, ok := seen[p.key]; ok {
				return repeatedKey(p.key, at, first)
			}
			seen[p.key] = at
		}
		var err error
		if p.value, err = r.value(depth + 1); err != nil {
			return err
		}
		if n.kind == mapNode {
			n.pairs = append(n.pairs, p)
		} else {
			n.items = append(n.items, p.value)
		}
	}
	_, _, err := r.token()
	return err
}

func repeatedKey(key string, at, first position) error {
	return errorAt(at, "", "key %q stands here a second time; the first is in line %d", key, first.line)
}
