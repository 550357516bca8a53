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
	return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-", c)
}
