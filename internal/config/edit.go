package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// This file changes one value in the text of pawl.yaml. It works on lines, so that all
// else stays as it is written, and then reads the result: what is not exactly the old
// content with the one change is not given out.

// Set changes the value at a dotted path in the text of a configuration: comments and
// the order of keys stay. value is YAML, or the plain text of a key that takes text. It
// does not check that the result is a valid configuration.
func Set(data []byte, path, value string) ([]byte, error) {
	keys := splitPath(path)
	sp, err := settable(keys)
	if err != nil {
		return nil, err
	}
	isText := sp.shape == textShape || sp.shape == pathShape
	if quoted := strings.HasPrefix(value, `"`) || strings.HasPrefix(value, "'"); isText && !quoted {
		value = flow(value)
	}
	want, err := parse(&source{layer: project, name: "the value"}, []byte(value))
	switch {
	case err != nil:
		return nil, fmt.Errorf("cannot read the value: %v", err)
	case want == nil || strings.Contains(value, "\n"):
		return nil, errors.New("the value must be YAML on one line")
	}
	text := strings.ReplaceAll(string(data), "\r\n", "\n")
	before, err := parse(&source{layer: project, name: FileName}, []byte(text))
	if err != nil {
		return nil, err
	}
	e := editor{lines: strings.Split(text, "\n")}
	e.set(before, keys, value)
	out := strings.Join(e.lines, "\n")
	after, err := parse(&source{layer: project, name: FileName}, []byte(out))
	if err != nil || !same(after, with(before, keys, want)) {
		return nil, fmt.Errorf("cannot change %s in place: it is written in a way "+
			"that only a person can change; edit the file", path)
	}
	if strings.Contains(string(data), "\r\n") {
		out = strings.ReplaceAll(out, "\n", "\r\n")
	}
	return []byte(out), nil
}

// settable is the spec of a key that has a value of its own.
func settable(keys []string) (*spec, error) {
	sp := schema()
	for i, key := range keys {
		below := sp.child(key)
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

// with is the tree with another value at a path.
func with(n *node, keys []string, value *node) *node {
	if len(keys) == 0 {
		return value
	}
	out := &node{kind: mapNode}
	found := false
	if n != nil && n.kind == mapNode {
		for _, p := range n.pairs {
			if p.key == keys[0] {
				p.value, found = with(p.value, keys[1:], value), true
			}
			out.pairs = append(out.pairs, p)
		}
	}
	if !found {
		out.pairs = append(out.pairs, pair{key: keys[0], value: with(nil, keys[1:], value)})
	}
	return out
}

// same compares values, not places; the order of keys counts.
func same(a, b *node) bool {
	if a == nil || b == nil {
		return a == b
	}
	samePair := func(p, q pair) bool { return p.key == q.key && same(p.value, q.value) }
	return a.kind == b.kind && a.text == b.text && slices.EqualFunc(a.items, b.items, same) &&
		slices.EqualFunc(a.pairs, b.pairs, samePair)
}

// editor holds the lines of the file.
type editor struct{ lines []string }

// set walks down as far as there are keys, and replaces or adds there.
func (e *editor) set(root *node, keys []string, value string) {
	var at *pair
	n := root
	for len(keys) > 0 {
		p, ok := n.get(keys[0])
		if !ok {
			break
		}
		at, n, keys = &p, p.value, keys[1:]
	}
	switch {
	case len(keys) == 0:
		e.replace(at, " "+value)
	case n == nil || n.kind == nullNode || n.kind != mapNode && n != root:
		e.nest(at, keys, value)
	case e.isFlow(n):
		e.insertFlow(n, inFlow(keys, value))
	case len(n.pairs) > 0:
		last := n.pairs[len(n.pairs)-1]
		e.insert(e.end(&last), n.pairs[0].at.column-1, keys, value)
	}
}

// nest gives a key without a value one with keys of its own.
func (e *editor) nest(at *pair, keys []string, value string) {
	if at == nil { // the file has no keys yet
		e.insert(len(e.lines), 0, keys, value)
		return
	}
	e.insert(at.at.line, at.at.column+1, keys, value)
}

// insert adds keys below each other before a line.
func (e *editor) insert(line, indent int, keys []string, value string) {
	var added []string
	for i, key := range keys {
		text := strings.Repeat(" ", indent+2*i) + flow(key) + ":"
		if i == len(keys)-1 {
			text += " " + value
		}
		added = append(added, text)
	}
	for line == len(e.lines) && line > 0 && strings.TrimSpace(e.lines[line-1]) == "" {
		line-- // the file's last line ends
	}
	e.lines = slices.Insert(e.lines, line, added...)
}

// inFlow is keys and a value within braces.
func inFlow(keys []string, value string) string {
	for i := len(keys) - 1; i >= 0; i-- {
		value = flow(keys[i]) + ": " + value
		if i > 0 {
			value = "{" + value + "}"
		}
	}
	return value
}

// isFlow is true for a map in braces.
func (e *editor) isFlow(n *node) bool {
	line := []rune(e.lines[n.at.line-1])
	return n.at.column <= len(line) && line[n.at.column-1] == '{'
}

// insertFlow adds to a map in braces.
func (e *editor) insertFlow(n *node, text string) {
	line, column := e.close(n.at.line-1, n.at.column-1)
	if line < 0 {
		return // what is read afterwards has no change, which is an error
	}
	row := []rune(e.lines[line])
	if len(n.pairs) > 0 {
		text = ", " + text
	}
	head := strings.TrimRight(string(row[:column]), " ")
	e.lines[line] = head + text + string(row[column:])
}

// replace puts another value in the place of a key's.
func (e *editor) replace(p *pair, value string) {
	line, column := p.at.line-1, p.at.column-1
	row := []rune(e.lines[line])
	colon := column + slices.Index(row[column:], ':') // a quoted key with one is found out afterwards
	start := colon + 1
	for start < len(row) && row[start] == ' ' {
		start++
	}
	switch {
	case start == len(row) || row[start] == '#' || row[start] == '|' || row[start] == '>':
		end := e.end(p) // the value stands below
		rest := ""
		if start < len(row) && row[start] == '#' {
			rest = " " + string(row[start:])
		}
		e.lines = slices.Delete(e.lines, line+1, end)
		e.lines[line] = string(row[:colon+1]) + value + rest
	default:
		last, stop := e.valueEnd(line, start)
		if last < 0 {
			return
		}
		tail := string([]rune(e.lines[last])[stop:])
		e.lines = slices.Delete(e.lines, line+1, last+1)
		e.lines[line] = string(row[:colon+1]) + value + tail
	}
}

// valueEnd is the place after a value that begins on a line.
func (e *editor) valueEnd(line, column int) (int, int) {
	row := []rune(e.lines[line])
	switch row[column] {
	case '{', '[', '"', '\'':
		last, stop := e.close(line, column)
		return last, stop + 1
	}
	inBraces := false
	for _, r := range row[:column] {
		inBraces = inBraces && r != '}' || r == '{'
	}
	for i := column; i < len(row); i++ {
		comment := row[i] == '#' && row[i-1] == ' '
		if comment || inBraces && strings.ContainsRune(",}]", row[i]) {
			return line, column + len(strings.TrimRight(string(row[column:i]), " "))
		}
	}
	return line, len(row)
}

// close finds the sign that ends what begins at a place; -1 when there is none.
func (e *editor) close(line, column int) (int, int) {
	var open []rune
	for l := line; l < len(e.lines); l++ {
		row := []rune(e.lines[l])
		for i := 0; i < len(row); i++ {
			if l == line && i < column {
				continue
			}
			r, quote := row[i], rune(0)
			if len(open) > 0 {
				quote = open[len(open)-1]
			}
			switch {
			case quote == '"' && r == '\\':
				i++
			case quote == '"' || quote == '\'':
				if r == quote {
					open = open[:len(open)-1]
				}
			case r == '#' && i > 0 && row[i-1] == ' ':
				i = len(row)
			case strings.ContainsRune("{[\"'", r):
				open = append(open, r)
			case r == '}' || r == ']':
				open = open[:len(open)-1]
			}
			if len(open) == 0 {
				return l, i
			}
		}
	}
	return -1, 0
}

// end is the line after a key's value, not counting blank lines and comments that
// stand before what comes next.
func (e *editor) end(p *pair) int {
	line, indent := p.at.line, p.at.column-1
	last := line
	for ; line < len(e.lines); line++ {
		text := e.lines[line]
		trimmed := strings.TrimLeft(text, " ")
		deep := len(text) - len(trimmed)
		item := deep == indent && (trimmed == "-" || strings.HasPrefix(trimmed, "- "))
		if trimmed == "" || strings.HasPrefix(trimmed, "#") && deep <= indent {
			continue
		}
		if deep <= indent && !item {
			// A bracket may be closed further out.
			if trimmed[0] != '}' && trimmed[0] != ']' {
				break
			}
		}
		last = line + 1
	}
	return last
}
