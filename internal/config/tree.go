package config

import "strings"

// layer is where a value came from, low to high.
type layer uint8

const (
	builtIn layer = iota
	userWide
	project
	environment
	flags
)

// source is one file, variable or flag.
type source struct {
	layer layer
	name  string   // as a person would name it
	dir   string   // what relative paths are relative to; absolute
	lines []string // the text, for excerpts
}

// position is a place in a source. line is 0 where there are no lines.
type position struct {
	src          *source
	line, column int
}

// kind is the sort of a node.
type kind uint8

const (
	nullNode kind = iota
	textNode
	numberNode // whole
	fractionNode
	boolNode
	listNode
	mapNode
)

// String names the kind as a person would.
func (k kind) String() string {
	return [...]string{"nothing", "text", "a number", "a number", "true or false", "a list", "a map"}[k]
}

// node is a value of any layer. Nodes are shared (aliases) and never changed
// once they are built.
type node struct {
	kind  kind
	text  string // of a scalar, as written but unquoted
	items []*node
	pairs []pair // in the order of the file
	at    position
	// loose marks text of a variable or a flag: what it is depends on the key.
	loose bool
	// size counts the nodes below, shared ones again each time.
	size int
}

type pair struct {
	key   string
	at    position
	value *node
}

func (n *node) get(key string) (pair, bool) {
	if n == nil {
		return pair{}, false
	}
	for _, p := range n.pairs {
		if p.key == key {
			return p, true
		}
	}
	return pair{}, false
}

// with returns a copy of the map n in which key is value.
func (n *node) with(key string, at position, value *node) *node {
	c := *n
	c.pairs = make([]pair, 0, len(n.pairs)+1)
	found := false
	for _, p := range n.pairs {
		if p.key == key {
			p.value, p.at, found = value, at, true
		}
		c.pairs = append(c.pairs, p)
	}
	if !found {
		c.pairs = append(c.pairs, pair{key: key, at: at, value: value})
	}
	return &c
}

// merge lays high over low: maps by key, anything else is replaced. Nothing
// (an empty value) replaces nothing. A section whose keys only make sense
// together is replaced by a file's, too; a variable or flag has one key only.
func merge(sp *spec, low, high *node) *node {
	switch {
	case high == nil || high.kind == nullNode:
		return low
	case low == nil || low.kind != mapNode || high.kind != mapNode || sp.whole && high.at.src.layer <= project:
		return high
	}
	c := *low
	c.at = high.at
	index := make(map[string]int, len(low.pairs))
	c.pairs = append([]pair(nil), low.pairs...)
	for i, p := range c.pairs {
		index[p.key] = i
	}
	for _, p := range high.pairs {
		i, ok := index[p.key]
		if !ok {
			c.pairs = append(c.pairs, p)
			continue
		}
		if below := sp.child(p.key); below != nil {
			p.value = merge(below, c.pairs[i].value, p.value)
		}
		c.pairs[i] = p
	}
	return &c
}

// joinPath appends a key to a dotted path; a key with other characters than
// letters, digits, - and _ is quoted.
func joinPath(path, key string) string {
	if key == "" || strings.ContainsFunc(key, unplain) {
		key = `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(key) + `"`
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

// unplain is true for a character that must stand in quotes in a path.
func unplain(c rune) bool {
	return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' && c != '-'
}

// splitPath is the inverse of joinPath. ok is false if a quote is not closed
// or a key is empty.
func splitPath(path string) (keys []string, ok bool) {
	for path != "" {
		if path[0] != '"' {
			key, rest, more := strings.Cut(path, ".")
			if key == "" || more && rest == "" {
				return nil, false
			}
			keys, path = append(keys, key), rest
			continue
		}
		key, rest, closed := cutQuoted(path[1:])
		if !closed || rest != "" && (rest[0] != '.' || len(rest) == 1) {
			return nil, false
		}
		keys, path = append(keys, key), strings.TrimPrefix(rest, ".")
	}
	return keys, len(keys) > 0
}

func cutQuoted(s string) (text, rest string, closed bool) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\' && i+1 < len(s):
			i++
			b.WriteByte(s[i])
		case s[i] == '"':
			return b.String(), s[i+1:], true
		default:
			b.WriteByte(s[i])
		}
	}
	return "", "", false
}
