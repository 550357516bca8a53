package config

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Limits of one file. So much is not written by hand; what is over them is a
// mistake or an attack.
const (
	maxDepth = 64
	maxNodes = 100_000
	// maxTokens bounds the time of the library, which grows with the square.
	maxTokens = 40_000
)

// parseYAML reads YAML. It returns nil, nil for a file without a value.
func parseYAML(src *source, data []byte) (*node, error) {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	text := strings.ReplaceAll(string(data), "\r\n", "\n")
	src.lines = strings.Split(text, "\n")
	if err := checkText(src); err != nil {
		return nil, err
	}
	file, err := parseFile(src, text)
	if err != nil {
		return nil, err
	}
	c := converter{src: src, anchors: map[string]*node{}}
	var root *node
	for _, doc := range file.Docs {
		if doc.Body == nil || doc.Body.Type() == ast.CommentType || doc.Body.Type() == ast.DirectiveType {
			continue
		}
		if root != nil {
			const second = "a second document starts here, but only one is allowed; remove the --- line"
			return nil, errorAtPlace(c.positionOfNode(doc.Body), "", second)
		}
		if root, err = c.convertNode(doc.Body, 0); err != nil {
			return nil, err
		}
	}
	return root, nil
}

// checkText refuses what no YAML parser should be given.
func checkText(src *source) error {
	for i, line := range src.lines {
		for column, r := range line {
			var fault string
			switch {
			case r == utf8.RuneError && !strings.HasPrefix(line[column:], string(utf8.RuneError)):
				fault = "the file is not UTF-8 text: save it as UTF-8"
			case r < ' ' && r != '\t', r == 0x7f:
				fault = fmt.Sprintf("the file holds the control character U+%04X: remove it", r)
			default:
				continue
			}
			p := position{src, i + 1, utf8.RuneCountInString(line[:column]) + 1}
			return noExcerpt(errorAtPlace(p, "", "%s", fault))
		}
	}
	return nil
}

func noExcerpt(e *Error) *Error {
	e.Excerpt = ""
	return e
}

// parseFile calls the library. It bounds the depth before, since the library
// recurses, and turns a panic of the library into an error of the file.
func parseFile(src *source, text string) (file *ast.File, err error) {
	defer func() {
		if p := recover(); p != nil {
			file, err = nil, errorAtPlace(position{src: src}, "",
				"cannot read the file as YAML: the parser failed on it (%v)", p)
		}
	}()
	tokens := lexer.Tokenize(text)
	if err := checkDepth(src, tokens); err != nil {
		return nil, err
	}
	file, err = parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		return nil, syntaxError(src, err)
	}
	return file, nil
}

// checkDepth bounds the number of tokens, and counts what nests: open brackets, and the markers that open a
// level each on one line.
func checkDepth(src *source, tokens token.Tokens) error {
	if len(tokens) > maxTokens {
		return errorAtPlace(tokenPlace(src, tokens[maxTokens]), "",
			"the file holds too many values (over %d words and signs)", maxTokens)
	}
	open, line, onLine := 0, 0, 0
	for _, t := range tokens {
		if t.Position.Line != line {
			line, onLine = t.Position.Line, 0
		}
		switch t.Type {
		case token.SequenceStartType, token.MappingStartType:
			open++
		case token.SequenceEndType, token.MappingEndType:
			open--
		case token.SequenceEntryType, token.MappingKeyType, token.TagType, token.AnchorType:
			onLine++
		}
		if open > maxDepth || onLine > maxDepth {
			return errorAtPlace(tokenPlace(src, t), "", "the values are nested too deeply (over %d levels)", maxDepth)
		}
	}
	return nil
}

func syntaxError(src *source, err error) error {
	at, message := position{src: src}, err.Error()
	if y, ok := err.(yaml.Error); ok { //nolint:errorlint // the parser returns it unwrapped
		message = y.GetMessage()
		if t := y.GetToken(); t != nil {
			at = tokenPlace(src, t)
		}
	}
	if line, column, ok := indentTab(src, at.line); ok {
		at.line, at.column = line, column
		message = "a tab cannot indent in YAML: use spaces"
	} else if next, ok := deeperColumn(src, at.line); ok && strings.HasPrefix(message, "mapping value is not allowed") {
		at.line, at.column = at.line+1, next
		message = "this line is indented deeper than the one above, which already has a value"
	} else if column, text, ok := innerColon(src, at); ok &&
		strings.HasPrefix(message, "mapping value is not allowed") {
		at.column = column
		message = "a text with a colon and a blank in it needs quotes: " + text
	}
	message = strings.TrimSpace(strings.SplitN(message, "\n", 2)[0])
	if at.line == 0 {
		at.line, at.column = 1, 1
	}
	return errorAtPlace(at, "", "%s", message)
}

// indentTab looks for a tab in the indentation of the line, or of the one
// before it, where the library reports some of them.
func indentTab(src *source, line int) (l, column int, ok bool) {
	for l := line; l >= max(line-1, 1) && l <= len(src.lines); l-- {
		text := src.lines[l-1]
		indent := text[:len(text)-len(strings.TrimLeft(text, " \t"))]
		if i := strings.IndexByte(indent, '\t'); i >= 0 {
			return l, i + 1, true
		}
	}
	return 0, 0, false
}

// deeperColumn returns the column at which the line after the given one starts, if
// it is indented deeper.
func deeperColumn(src *source, line int) (column int, ok bool) {
	if line < 1 || line >= len(src.lines) {
		return 0, false
	}
	indent := func(s string) int { return len(s) - len(strings.TrimLeft(s, " ")) }
	above, next := indent(src.lines[line-1]), indent(src.lines[line])
	return next + 1, next > above && strings.TrimSpace(src.lines[line]) != ""
}

// innerColon finds the colon, with a blank or nothing after it, in the plain text
// that begins at a place, and says how the text is written.
func innerColon(src *source, at position) (column int, text string, ok bool) {
	if at.line < 1 || at.line > len(src.lines) {
		return 0, "", false
	}
	line := []rune(strings.TrimRight(src.lines[at.line-1], " \t\r"))
	if at.column < 1 || at.column > len(line) {
		return 0, "", false
	}
	value := line[at.column-1:]
	for i, r := range value {
		inWord := i+1 < len(value) && value[i+1] != ' '
		if r != ':' || inWord {
			continue
		}
		if i == 0 || strings.ContainsRune("'\"[{|>&*!", value[0]) {
			return 0, "", false
		}
		text = "'" + strings.ReplaceAll(string(value), "'", "''") + "'"
		if len(value) > maxQuoted {
			text = "put ' before and after it"
		}
		return at.column + i, text, true
	}
	return 0, "", false
}

// maxQuoted is the longest text that is shown in quotes, in characters.
const maxQuoted = 80

// tokenPlace clamps a token's position to the text: the library is off by some for
// tokens at the end of the file.
func tokenPlace(src *source, t *token.Token) position {
	p := position{src: src, line: 1, column: 1}
	if t == nil || t.Position == nil {
		return p
	}
	p.line = min(max(t.Position.Line, 1), len(src.lines))
	width := utf8.RuneCountInString(src.lines[p.line-1])
	p.column = min(max(t.Position.Column, 1), width+1)
	return p
}

// converter turns the library's tree into nodes, with aliases and merge keys
// resolved.
type converter struct {
	src     *source
	anchors map[string]*node
	nodes   int
}

func (c *converter) positionOfNode(n ast.Node) position {
	switch n := n.(type) {
	case *ast.MappingNode:
		if !n.IsFlowStyle && len(n.Values) > 0 {
			return c.positionOfNode(n.Values[0].Key)
		}
	case *ast.MappingValueNode:
		return c.positionOfNode(n.Key)
	}
	return tokenPlace(c.src, n.GetToken())
}

func (c *converter) convertNode(n ast.Node, depth int) (*node, error) {
	if n == nil {
		return &node{at: position{c.src, 1, 1}}, nil
	}
	at := c.positionOfNode(n)
	if depth > maxDepth {
		return nil, errorAtPlace(at, "", "the values are nested too deeply (over %d levels)", maxDepth)
	}
	out, err := c.convertOne(n, at, depth)
	if err != nil {
		return nil, err
	}
	if c.nodes++; c.nodes > maxNodes || out.size > maxNodes {
		return nil, errorAtPlace(at, "", "the file holds too many values (over %d with aliases written out)", maxNodes)
	}
	return out, nil
}

func (c *converter) convertOne(n ast.Node, at position, depth int) (*node, error) {
	scalar := func(k kind, text string) (*node, error) {
		return &node{kind: k, text: text, at: at, size: 1}, nil
	}
	switch n := n.(type) {
	case *ast.NullNode:
		return scalar(nullNode, "")
	case *ast.StringNode:
		return scalar(textNode, n.Value)
	case *ast.LiteralNode:
		return scalar(textNode, n.Value.Value)
	case *ast.IntegerNode:
		return scalar(numberNode, strings.TrimSpace(n.Token.Value))
	case *ast.FloatNode:
		return scalar(fractionNode, strings.TrimSpace(n.Token.Value))
	case *ast.InfinityNode, *ast.NanNode:
		return scalar(fractionNode, n.GetToken().Value)
	case *ast.BoolNode:
		return scalar(boolNode, fmt.Sprint(n.Value))
	case *ast.SequenceNode:
		return c.convertList(n, at, depth)
	case *ast.MappingNode:
		return c.convertMapping(n.Values, at, depth)
	case *ast.MappingValueNode:
		return c.convertMapping([]*ast.MappingValueNode{n}, at, depth)
	case *ast.AnchorNode:
		return c.convertAnchor(n, depth)
	case *ast.AliasNode:
		return c.resolveAlias(n, at)
	case *ast.TagNode:
		return c.convertTagged(n, at, depth)
	}
	return nil, errorAtPlace(at, "", "this kind of YAML (%s) is not allowed in a configuration",
		strings.ToLower(n.Type().YAMLName()))
}

func (c *converter) convertList(n *ast.SequenceNode, at position, depth int) (*node, error) {
	out := &node{kind: listNode, at: at, size: 1}
	for _, v := range n.Values {
		item, err := c.convertNode(v, depth+1)
		if err != nil {
			return nil, err
		}
		if text, ok := c.colonText(v); ok && n.IsFlowStyle {
			item = &node{kind: textNode, text: text, at: item.at, size: 1}
		}
		out.items = append(out.items, item)
		out.size += item.size
	}
	return out, nil
}

// colonText is the text of an item such as builtin:act/x. Where a list stands in
// braces, the library takes it for a key and a value, although no blank follows the colon.
func (c *converter) colonText(item ast.Node) (string, bool) {
	m, ok := item.(*ast.MappingNode)
	if !ok || m.IsFlowStyle || m.Values[0].Key.GetToken().Type != token.StringType {
		return "", false
	}
	at := c.positionOfNode(m)
	text := string([]rune(c.src.lines[at.line-1])[at.column-1:])
	if end := strings.IndexAny(text, ",]"); end >= 0 {
		text = text[:end]
	}
	text = strings.TrimSpace(text)
	return text, !strings.Contains(text+" ", ": ") && !strings.Contains(text, " #")
}

func (c *converter) convertMapping(values []*ast.MappingValueNode, at position, depth int) (*node, error) {
	out := &node{kind: mapNode, at: at, size: 1}
	var merged []*node
	seen := make(map[string]position, len(values))
	for _, v := range values {
		value, err := c.convertNode(v.Value, depth+1)
		if err != nil {
			return nil, err
		}
		out.size += value.size
		keyAt := c.positionOfNode(v.Key)
		if _, ok := v.Key.(*ast.MergeKeyNode); ok {
			if merged, err = mergeKey(merged, value, keyAt); err != nil {
				return nil, err
			}
			continue
		}
		key, ok := textOfKey(v.Key)
		if !ok {
			return nil, errorAtPlace(keyAt, "", "a key must be plain text")
		}
		if first, ok := seen[key]; ok {
			return nil, errorAtPlace(keyAt, "", "key %q is repeated; the first is in line %d", key, first.line)
		}
		seen[key] = keyAt
		out.pairs = append(out.pairs, pair{key, keyAt, value})
	}
	for _, m := range merged {
		for _, p := range m.pairs {
			if _, ok := out.pairOfKey(p.key); !ok {
				out.pairs = append(out.pairs, p)
			}
		}
	}
	return out, nil
}

// mergeKey collects what "<<:" names: a map or a list of maps.
func mergeKey(merged []*node, value *node, at position) ([]*node, error) {
	list := []*node{value}
	if value.kind == listNode {
		list = value.items
	}
	for _, m := range list {
		if m.kind != mapNode {
			return nil, errorAtPlace(at, "", "<< needs a map or a list of maps")
		}
		merged = append(merged, m)
	}
	return merged, nil
}

func textOfKey(k ast.MapKeyNode) (string, bool) {
	switch k := k.(type) {
	case *ast.StringNode:
		return k.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.NullNode:
		return strings.TrimSpace(k.GetToken().Value), true
	}
	return "", false
}

func (c *converter) convertAnchor(n *ast.AnchorNode, depth int) (*node, error) {
	value, err := c.convertNode(n.Value, depth+1)
	if err != nil {
		return nil, err
	}
	if n.Name != nil && n.Name.GetToken() != nil {
		c.anchors[n.Name.GetToken().Value] = value
	}
	return value, nil
}

func (c *converter) resolveAlias(n *ast.AliasNode, at position) (*node, error) {
	name := ""
	if n.Value != nil && n.Value.GetToken() != nil {
		name = n.Value.GetToken().Value
	}
	target, ok := c.anchors[name]
	if !ok {
		return nil, errorAtPlace(at, "", "*%s refers to no anchor (&%s) above", name, name)
	}
	return target, nil
}

// convertTagged reads !!str. Any other tag names a type that the key has anyway, or
// that a configuration does not have.
func (c *converter) convertTagged(n *ast.TagNode, at position, depth int) (*node, error) {
	value, err := c.convertNode(n.Value, depth+1)
	if err != nil {
		return nil, err
	}
	tag := ""
	if n.Start != nil {
		tag = n.Start.Value
	}
	isText := value.kind != listNode && value.kind != mapNode
	if tag != "!!str" || !isText {
		return nil, errorAtPlace(at, "", "the tag %s is not allowed here: remove it", tag)
	}
	text := *value
	text.kind = textNode
	return &text, nil
}
