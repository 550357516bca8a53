package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// This file changes one value in the text of pawl.yaml. It works on the words of the text,
// so that all else stays as it is written, and then reads the result: what is not exactly
// the old content with the one change is not given out.

// Set changes the value at a dotted path in the text of a configuration: comments and
// the order of keys stay. value is YAML, or the plain text of a key that takes text. It
// does not check that the result is a valid configuration.
func Set(data []byte, path, value string) ([]byte, error) {
	keys := splitPath(path)
	sp, err := settableSpec(keys)
	if err != nil {
		return nil, err
	}
	isText := sp.shape == textShape || sp.shape == pathShape
	quoted := strings.HasPrefix(value, `"`) || strings.HasPrefix(value, "'")
	if isText && !quoted {
		value = Flow(value)
	}
	want, err := parseYAML(&source{layer: project, name: "the value"}, []byte(value))
	switch {
	case err != nil:
		return nil, fmt.Errorf("cannot read the value: %v", err)
	case want == nil || strings.Contains(value, "\n"):
		return nil, errors.New("the value must be YAML on one line")
	}
	text := strings.ReplaceAll(string(data), "\r\n", "\n")
	before, err := parseYAML(&source{layer: project, name: FileName}, []byte(text))
	if err != nil {
		return nil, err
	}
	e, body := newEditor(text)
	out := e.setValue(body, keys, value)
	after, err := parseYAML(&source{layer: project, name: FileName}, []byte(out))
	if err != nil || !sameValue(after, withValue(before, keys, want)) {
		return nil, fmt.Errorf("cannot change %s in place: it is written in a way "+
			"that only a person can change; edit the file", path)
	}
	if strings.Contains(string(data), "\r\n") {
		out = strings.ReplaceAll(out, "\n", "\r\n")
	}
	return []byte(out), nil
}

// settableSpec is the spec of a key that has a value of its own.
func settableSpec(keys []string) (*spec, error) {
	sp := schema()
	for i, key := range keys {
		below := sp.childSpec(key)
		if below == nil || sp.shape == listShape || key == "" {
			path := strings.Join(keys, ".")
			hint := ""
			if near := NearestKey(path); near != "" && near != path {
				hint = fmt.Sprintf(" (did you mean %q?)", near)
			}
			return nil, fmt.Errorf("there is no key %q%s", strings.Join(keys[:i+1], "."), hint)
		}
		sp = below
	}
	if len(keys) == 0 {
		return nil, errors.New("a key is needed, such as loop.safety")
	}
	return sp, nil
}

// withValue is the tree with another value at a path.
func withValue(n *node, keys []string, value *node) *node {
	if len(keys) == 0 {
		return value
	}
	out := &node{kind: mapNode}
	found := false
	if n != nil && n.kind == mapNode {
		for _, p := range n.pairs {
			if p.key == keys[0] {
				p.value, found = withValue(p.value, keys[1:], value), true
			}
			out.pairs = append(out.pairs, p)
		}
	}
	if !found {
		out.pairs = append(out.pairs, pair{key: keys[0], value: withValue(nil, keys[1:], value)})
	}
	return out
}

// sameValue compares values, not places; the order of keys counts.
func sameValue(a, b *node) bool {
	if a == nil || b == nil {
		return a == b
	}
	samePair := func(p, q pair) bool { return p.key == q.key && sameValue(p.value, q.value) }
	return a.kind == b.kind && a.text == b.text && slices.EqualFunc(a.items, b.items, sameValue) &&
		slices.EqualFunc(a.pairs, b.pairs, samePair)
}

// editor is a text and its words.
type editor struct {
	text   string
	tokens token.Tokens
	number map[*token.Token]int
	begins []int // where each token with the blanks before it begins in the text
}

// newEditor takes a text that can be parsed; body is its value, nil for none.
func newEditor(text string) (e *editor, body ast.Node) {
	e = &editor{text: text, tokens: lexer.Tokenize(text), number: map[*token.Token]int{}}
	at := 0
	for i, t := range e.tokens {
		e.number[t], e.begins = i, append(e.begins, at)
		at += len(t.Origin)
	}
	file, err := parser.Parse(e.tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil || len(file.Docs) == 0 {
		return e, nil
	}
	return e, file.Docs[len(file.Docs)-1].Body
}

// endOf a token in the text, without the blanks after it.
func (e *editor) endOf(i int) int {
	return min(e.begins[i]+len(strings.TrimRight(e.tokens[i].Origin, " \n")), len(e.text))
}

// noValue are tokens that can stand after a value and are no part of it.
var noValue = []token.Type{token.CommentType, token.CollectEntryType, token.DocumentEndType, token.DocumentHeaderType}

// lastBefore is the last token of a value before number i.
func (e *editor) lastBefore(i int) int {
	i--
	for i > 0 && slices.Contains(noValue, e.tokens[i].Type) {
		i--
	}
	return max(i, 0)
}

// pairsOf are the pairs of a map, and its closing brace if it has one.
func pairsOf(n ast.Node) (pairs []*ast.MappingValueNode, brace *token.Token) {
	switch n := n.(type) {
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{n}, nil
	case *ast.MappingNode:
		if n.IsFlowStyle {
			brace = n.End
		}
		return n.Values, brace
	}
	return nil, nil
}

// setValue walks down as far as there are keys, and replaces or adds there. It gives out the
// text unchanged where it does not understand it.
func (e *editor) setValue(n ast.Node, keys []string, value string) string {
	colon, until := -1, len(e.tokens) // between these is n
	pairs, brace := pairsOf(n)
	for len(keys) > 0 {
		i := slices.IndexFunc(pairs, func(p *ast.MappingValueNode) bool {
			key, ok := keyText(p.Key)
			return ok && key == keys[0]
		})
		if i < 0 {
			break
		}
		if brace != nil {
			until = e.number[brace]
		}
		if i+1 < len(pairs) {
			until = e.number[pairs[i+1].Key.GetToken()]
		}
		colon, keys = e.number[pairs[i].Key.GetToken()]+1, keys[1:]
		if colon >= until || e.tokens[colon].Type != token.MappingValueType {
			return e.text
		}
		pairs, brace = pairsOf(pairs[i].Value)
	}
	switch {
	case len(keys) == 0:
		return e.replaceValue(colon, e.lastBefore(until), value)
	case brace != nil:
		last, text := e.lastBefore(e.number[brace]), inFlow(keys, value)
		if len(pairs) > 0 {
			text = ", " + text
		}
		return e.text[:e.endOf(last)] + text + e.text[e.endOf(last):]
	case len(pairs) > 0:
		return e.insertKeys(e.endOf(e.lastBefore(until)), pairs[0].Key.GetToken().Position.Column-1, keys, value)
	case colon > 0:
		return e.insertKeys(e.endOf(colon), e.tokens[colon-1].Position.Column+1, keys, value)
	}
	return e.insertKeys(len(strings.TrimRight(e.text, " \n")), 0, keys, value)
}

// replaceValue puts another value in the place of what is after a colon, up to the token last.
// A comment between them stays.
func (e *editor) replaceValue(colon, last int, value string) string {
	first, from := colon+1, e.endOf(colon)
	for first < last && e.tokens[first].Type == token.CommentType {
		first++
	}
	return e.text[:from] + " " + value + e.text[from:e.endOf(first-1)] + e.text[max(e.endOf(last), from):]
}

// insertKeys adds keys below each other after the line of a place.
func (e *editor) insertKeys(at, indent int, keys []string, value string) string {
	var added strings.Builder
	for i, key := range keys {
		added.WriteString("\n" + strings.Repeat(" ", indent+2*i) + Flow(key) + ":")
	}
	added.WriteString(" " + value)
	if at == 0 {
		return strings.TrimPrefix(added.String(), "\n") + "\n" + e.text
	}
	line, _, _ := strings.Cut(e.text[at:], "\n")
	at += len(line)
	return e.text[:at] + added.String() + e.text[at:]
}

// inFlow is keys and a value within braces.
func inFlow(keys []string, value string) string {
	for i := len(keys) - 1; i >= 0; i-- {
		value = Flow(keys[i]) + ": " + value
		if i > 0 {
			value = "{" + value + "}"
		}
	}
	return value
}
