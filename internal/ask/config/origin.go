package config

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/ask/config/statedir"
	"github.com/pawl-dev/pawl/internal/decide/lists"
)

// String is the place as provenance shows it.
func (p position) String() string {
	switch p.src.layer {
	case builtIn:
		return "built-in"
	case environment:
		return "environment " + p.src.name
	case flags:
		return "flag " + p.src.name
	case userWide:
		return fmt.Sprintf("user-wide %s:%d", p.src.name, p.line)
	case project:
	}
	return fmt.Sprintf("%s:%d", p.src.name, p.line)
}

// layerOfKey the value of the key at path.
func (c *Config) layerOfKey(path string) layer {
	if at, ok := c.from[path]; ok {
		return at.src.layer
	}
	return builtIn
}

// IsSet is true if a file, a variable or a flag gave the value of the key at
// path, e.g. "loop.failure_threshold": it is no default.
func (c *Config) IsSet(path string) bool { return c.layerOfKey(path) != builtIn }

// IsFlag is true if the value of the key at path was named on the command line.
func (c *Config) IsFlag(path string) bool { return c.layerOfKey(path) == flags }

// IsOfProject is true if a file of the repository gave the value of the key at path.
func (c *Config) IsOfProject(path string) bool { return c.layerOfKey(path) == project }

// ErrorAt makes an error at the place where the key at path is set, for
// checks that need to know more than this package does.
func (c *Config) ErrorAt(path, suggestion, message string) *Error {
	return errorAtPlace(c.positionOfKey(path), suggestion, "%s", message)
}

// positionOfKey the value at path, or of the nearest key above it.
func (c *Config) positionOfKey(path string) position {
	if at, ok := nearestPlace(c.from, path); ok {
		return at
	}
	// A value that is not set has no place: the project's file is where to set it.
	return position{src: &source{name: statedir.FileName}}
}

// nearestPlace is the place of path, or of what stands above it; false where nothing
// of that is set.
func nearestPlace(from map[string]position, path string) (position, bool) {
	for path != "" {
		if at, ok := from[path]; ok && at.src.layer != builtIn {
			return at, true
		}
		path = path[:max(strings.LastIndexAny(path, ".["), 0)]
	}
	return position{}, false
}

// AgentNames are the agents that the configuration defines or changes, sorted.
func (c *Config) AgentNames() []string { return sortedKeys(c.Agents.Named) }

// AgentReference is a key that names an agent.
type AgentReference struct {
	Path string // of the key, for ErrorAt
	Name string // of the agent
}

// AgentReferences are all keys that name an agent, in the order of the schema.
func (c *Config) AgentReferences() []AgentReference {
	refs := []AgentReference{{"agent", c.Agent}}
	for i, name := range c.Agents.Fallback {
		refs = append(refs, AgentReference{fmt.Sprintf("agents.fallback[%d]", i), name})
	}
	refs = append(refs, AgentReference{"agents.stronger", c.Agents.Stronger})
	refs = append(refs, lists.Each(sortedKeys(c.Procedures), func(name string) AgentReference {
		return AgentReference{joinPath("procedures", name) + ".agent", c.Procedures[name].Agent}
	})...)
	refs = append(refs, AgentReference{"review.agent", c.Review.Agent})
	for i, name := range c.Autopilot.Race {
		refs = append(refs, AgentReference{fmt.Sprintf("autopilot.race[%d]", i), name})
	}
	for i, own := range c.Strategies {
		refs = append(refs, AgentReference{fmt.Sprintf("strategies[%d].agent", i), own.Agent})
	}
	return slices.DeleteFunc(refs, func(r AgentReference) bool { return r.Name == "" })
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

// Name is the file of the configuration, or that there is none.
func (c *Config) Name() string {
	if c.File == "" {
		return "the configuration (" + c.DescribeMissingFile() + ")"
	}
	return c.File
}

// DescribeMissingFile names the folder without a pawl.yaml, and a file that is called almost so.
func (c *Config) DescribeMissingFile() string {
	none := "there is no pawl.yaml in " + c.Root
	if _, err := os.Stat(filepath.Join(c.Root, "pawl.yml")); err == nil {
		none += " (pawl.yml is not read; rename it)"
	}
	return none
}

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

func (n *node) pairOfKey(key string) (pair, bool) {
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
	if key == "" || strings.ContainsFunc(key, needsQuotes) {
		key = `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(key) + `"`
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

func needsQuotes(c rune) bool {
	return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-", c)
}
