package config

import (
	_ "embed"
	"fmt"
	"strings"
	"sync"
)

// Explanation is what is to be known of a key.
type Explanation struct {
	Path    string `json:"path"` // with <name> for what the user names
	Meaning string `json:"meaning"`
	Takes   string `json:"takes"`             // what a value is, in words
	Default string `json:"default"`           // "" for none
	Example string `json:"example,omitempty"` // lines of pawl.yaml
	// Value and Source are what it is now; Explain leaves them to who has a configuration.
	Value  string        `json:"value,omitempty"`
	Source string        `json:"source,omitempty"`
	Below  []Explanation `json:"keys,omitempty"`
}

//go:embed examples.yaml
var examplesText []byte

// examples are those of examples.yaml, as "Loop.max_iterations" and YAML.
var examples = sync.OnceValue(func() map[string]string { return readTable(examplesText) })

// Explain explains the key at a dotted path; false when there is none. A name of the
// user's own may stand for any.
func Explain(path string) (Explanation, bool) {
	sp, shown := schema(), ""
	keys := splitPath(path)
	for _, key := range keys {
		if sp.shape == listShape {
			sp = sp.elem
		}
		below := sp.childSpec(key)
		switch {
		case below == nil:
			return Explanation{}, false
		case sp.shape == tableShape, sp.field(key) == nil:
			shown = strings.TrimPrefix(shown+".<name>", ".")
		default:
			shown = joinPath(shown, key)
		}
		sp = below
	}
	e := sp.explanation(shown)
	e.Example = placeInFile(keys, sp.example(2))
	items := sp
	if sp.elem != nil {
		items = sp.elem
	}
	for _, f := range items.fields {
		name := f.name
		if f.inline {
			name = "<name>"
		}
		e.Below = append(e.Below, f.explanation(name))
	}
	return e, len(keys) > 0
}

func (sp *spec) explanation(path string) Explanation {
	return Explanation{Path: path, Meaning: strings.TrimSpace(sp.meaningOf()), Takes: sp.takesText(), Default: sp.def}
}

// takesText describes the values that a key takes.
func (sp *spec) takesText() string {
	text := sp.expectedText()
	switch {
	case sp.shape == listShape && len(sp.elem.enum) > 0:
		text = "a list of " + strings.Join(sp.elem.enum, ", ")
	case sp.shape == listShape && sp.elem.isLeaf():
		text = "a list of texts"
	case sp.shape == argvShape:
		text = "a command line: a list, or a text"
	}
	if sp.bare != "" {
		text += "; a number counts as " + sp.bare
	}
	if sp.min != "" {
		text += ", at least " + sp.min
	}
	if sp.lists != nil {
		text += "; or " + sp.lists.takesText()
	}
	return text
}

// placeInFile is a value at its place in pawl.yaml.
func placeInFile(keys []string, value string) string {
	var b strings.Builder
	for i, key := range keys {
		if i > 0 {
			b.WriteString("\n" + strings.Repeat("  ", i))
		}
		b.WriteString(Flow(key) + ":")
	}
	return b.String() + " " + value
}

// example is a value that the key takes, on one line; of a section, with one of its
// keys, down to a depth.
func (sp *spec) example(depth int) string {
	if text := examples()[sp.key]; text != "" {
		return text
	}
	switch {
	case sp.shape == textShape && len(sp.enum) > 0:
		return sp.enum[len(sp.enum)-1]
	case sp.def != "" && sp.def != "0" && sp.def != "[]":
		return sp.def
	}
	switch sp.shape {
	case wholeShape:
		return "10"
	case switchShape:
		return "true"
	case durationShape:
		return "30m"
	case bytesShape:
		return "50 MB"
	case usdShape:
		return "5"
	case listShape:
		return "[" + sp.elem.example(depth-1) + "]"
	case tableShape:
		return "{name: " + sp.elem.example(depth-1) + "}"
	case sectionShape:
		for _, f := range sp.fields {
			if text := f.example(depth - 1); depth > 0 && text != "" && !f.inline {
				return fmt.Sprintf("{%s: %s}", f.name, text)
			}
		}
	default: // a text has an example of its own
	}
	return ""
}

// splitPath splits a dotted path; a key in double quotes may hold dots.
func splitPath(path string) []string {
	var keys []string
	for path != "" {
		var key string
		if path[0] == '"' {
			if end := closingQuote(path, 0); end > 0 {
				key, path = unquote(path[:end+1], '"'), strings.TrimPrefix(path[end+1:], ".")
				keys = append(keys, key)
				continue
			}
		}
		key, path, _ = strings.Cut(path, ".")
		keys = append(keys, key)
	}
	return keys
}

// SchemaURL is where editors find the schema of the newest pawl.
const SchemaURL = "https://raw.githubusercontent.com/pawl-dev/pawl/main/docs/pawl.schema.json"

// Keys are the paths of all keys that are not of the user's own naming, sections
// included, in the order of the file.
func Keys() []string {
	var list []string
	var walk func(sp *spec, path string)
	walk = func(sp *spec, path string) {
		for _, f := range sp.fields {
			if !f.inline {
				below := joinPath(path, f.name)
				list = append(list, below)
				walk(f, below)
			}
		}
	}
	walk(schema(), "")
	return list
}

// NearestKey is the path that was probably meant, or "".
func NearestKey(path string) string {
	all := Keys()
	if near := Nearest(path, all); near != "" {
		return near
	}
	last := path[strings.LastIndexByte(path, '.')+1:]
	for _, k := range all {
		if strings.HasSuffix(k, "."+last) {
			return k
		}
	}
	return ""
}
