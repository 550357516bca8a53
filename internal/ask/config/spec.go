package config

import (
	"cmp"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"

	"github.com/pawl-dev/pawl/internal/ask/config/quantity"
	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/safety"
)

// shape is the sort of value that a key takes.
type shape uint8

const (
	textShape shape = iota
	wholeShape
	switchShape
	durationShape
	bytesShape
	usdShape
	percentShape
	pathShape
	argvShape
	listShape
	tableShape
	sectionShape
	anyShape // of documents that others write: accepted and ignored
)

// spec describes one key, or the whole file: what the tags of Config say,
// read once.
type spec struct {
	shape    shape
	name     string
	key      string   // in keys.yaml
	def      string   // YAML; "" for none
	enum     []string // of a text, or of a list's items
	min      string
	bare     string // unit of a bare number
	flagMS   bool
	names    bool
	loose    bool
	whole    bool
	optional bool  // the field is a pointer
	single   bool  // a text stands for a list of one
	inline   bool  // a table that takes the keys of its section that no field has
	lists    *spec // what the same key takes where its value is a list

	fields []*spec // of a section, in the order of the struct
	index  int     // of the field in its section's struct
	elem   *spec   // of a list or table
	// short is the key that a plain value stands for where a map is expected,
	// and shortShape what that value is.
	short      string
	shortShape shape
}

// schema is the spec of the whole file.
var schema = sync.OnceValue(func() *spec {
	return newFieldSpec(reflect.TypeFor[Config](), reflect.StructField{})
})

// workflowSpec is the spec of a workflow file.
var workflowSpec = sync.OnceValue(func() *spec {
	return newFieldSpec(reflect.TypeFor[workflowFile](), reflect.StructField{})
})

// short forms: a value that is not a map stands for the map {key: value}.
var shortForms = map[reflect.Type]struct {
	key   string
	shape shape
}{
	reflect.TypeFor[Verification](): {"commands", listShape},
	reflect.TypeFor[Gate]():         {"command", textShape},
	reflect.TypeFor[Hook]():         {"command", textShape},
	reflect.TypeFor[Fragment]():     {"path", textShape},
	reflect.TypeFor[CheckAttempt](): {"summary", textShape},

	reflect.TypeFor[workflowRetry](): {"max", wholeShape},
	reflect.TypeFor[workflowWork]():  {"run", textShape},
}

var shapes = map[reflect.Type]shape{
	reflect.TypeFor[quantity.Duration](): durationShape,
	reflect.TypeFor[quantity.Bytes]():    bytesShape,
	reflect.TypeFor[loop.MicroUSD]():     usdShape,
	reflect.TypeFor[quantity.Percent]():  percentShape,
	reflect.TypeFor[quantity.Path]():     pathShape,
	reflect.TypeFor[quantity.Argv]():     argvShape,
}

func newFieldSpec(t reflect.Type, f reflect.StructField) *spec {
	sp := &spec{def: f.Tag.Get("default"), min: f.Tag.Get("min"), bare: f.Tag.Get("bare"),
		flagMS: f.Tag.Get("flagms") != "", names: f.Tag.Get("names") != "", loose: f.Tag.Get("loose") != "",
		whole: f.Tag.Get("whole") != "", single: f.Tag.Get("single") != ""}
	if level, ok := strings.CutPrefix(sp.def, "level "); ok {
		sp.def = levelDefault(safety.Level(level))
	}
	if sp.def == "what runs by itself" {
		sp.def = `["` + strings.Join(safety.RunsItself(), `", "`) + `"]`
	}
	sp.name, _, sp.inline = strings.Cut(f.Tag.Get("yaml"), ",")
	if e := f.Tag.Get("enum"); e != "" {
		sp.enum = strings.Split(e, "|")
	}
	if t.Kind() == reflect.Pointer {
		t, sp.optional = t.Elem(), true
	}
	if s, ok := shapes[t]; ok {
		sp.shape = s
		return sp
	}
	switch t.Kind() {
	case reflect.String:
		sp.shape = textShape
	case reflect.Int:
		sp.shape = wholeShape
	case reflect.Bool:
		sp.shape = switchShape
	case reflect.Slice:
		sp.shape, sp.elem = listShape, newFieldSpec(t.Elem(), reflect.StructField{})
		sp.elem.enum = sp.enum
	case reflect.Map:
		sp.shape, sp.elem = tableShape, newFieldSpec(t.Elem(), reflect.StructField{})
		sp.elem.loose = sp.elem.shape == textShape
		if sp.loose && sp.elem.shape == listShape {
			sp.elem.elem.loose = true
		}
	case reflect.Struct:
		sp.readSection(t)
	default:
		panic(fmt.Sprintf("config: no shape for %s", t)) // a field of Config has a type that this package cannot read
	}
	return sp
}

func (sp *spec) readSection(t reflect.Type) {
	sp.shape = sectionShape
	if s, ok := shortForms[t]; ok {
		sp.short, sp.shortShape = s.key, s.shape
	}
	for i := range t.NumField() {
		f := t.Field(i)
		if tag := f.Tag.Get("yaml"); !f.IsExported() || tag == "" || tag == "-" {
			continue
		}
		if f.Type == reflect.TypeFor[Ignored]() {
			for name := range strings.SplitSeq(f.Tag.Get("yaml"), "|") {
				sp.fields = append(sp.fields, &spec{name: name, key: t.Name() + "." + name, shape: anyShape, index: i})
			}
			continue
		}
		below := newFieldSpec(f.Type, f)
		below.index = i
		below.key = t.Name() + "." + cmp.Or(below.name, "*")
		if below.shape == tableShape {
			below.elem.key = below.key
		}
		if same := sp.findField(below.name); same != nil {
			below.key, same.lists = same.key, below
			continue
		}
		sp.fields = append(sp.fields, below)
	}
}

// findField returns the section's field with that key, or nil.
func (sp *spec) findField(key string) *spec {
	for _, f := range sp.fields {
		if f.name == key && !f.inline {
			return f
		}
	}
	return nil
}

// inlineTable returns the inline table of a section, or nil.
func (sp *spec) inlineTable() *spec {
	for _, f := range sp.fields {
		if f.inline {
			return f
		}
	}
	return nil
}

// childSpec returns the spec of what stands under key, or nil.
func (sp *spec) childSpec(key string) *spec {
	switch sp.shape {
	case sectionShape:
		if f := sp.findField(key); f != nil {
			return f
		}
		if r := sp.inlineTable(); r != nil {
			return r.elem
		}
	case tableShape:
		return sp.elem
	default: // a value has nothing below it
	}
	return nil
}

// isSingleValue reports whether a variable or a flag can set it.
func (sp *spec) isSingleValue() bool { return sp.shape != sectionShape && sp.shape != tableShape }

// sectionKeys are the section's keys in the order of the struct.
func (sp *spec) sectionKeys() []string {
	return lists.Pick(sp.fields, func(f *spec) (string, bool) { return f.name, !f.inline })
}

// builtInSource is where defaults come from.
var builtInSource = &source{layer: builtIn, name: "built-in"}

// defaultNode is the default as a node, or nil.
func (sp *spec) defaultNode() *node {
	if sp.def == "" {
		return nil
	}
	if sp.shape == listShape || sp.shape == sectionShape {
		n, err := parseYAML(&source{layer: builtIn, name: "built-in"}, []byte(sp.def))
		if err != nil {
			panic(fmt.Sprintf("config: default of %s: %v", sp.name, err)) // our own tag, read by every test
		}
		return n
	}
	return &node{kind: textNode, text: sp.def, loose: true, at: position{src: builtInSource}, size: 1}
}

// expandShort writes short forms out, so that layers with different forms merge.
func (sp *spec) expandShort(n *node) *node {
	if n == nil || n.kind == nullNode {
		return n
	}
	if sp.single && n.kind == textNode {
		return &node{kind: listNode, at: n.at, size: n.size + 1, items: []*node{n}}
	}
	if sp.short != "" && n.kind != mapNode && (n.kind == listNode) == (sp.shortShape == listShape) {
		below := sp.findField(sp.short).expandShort(n)
		return &node{kind: mapNode, at: n.at, size: n.size + 1, pairs: []pair{{sp.short, n.at, below}}}
	}
	if n.kind != listNode && n.kind != mapNode {
		return n // nodes are never changed, so one may stand in two trees
	}
	c := *n
	switch {
	case n.kind == listNode && sp.shape == listShape:
		c.items = lists.Each(n.items, sp.elem.expandShort)
	case n.kind == mapNode:
		c.pairs = append([]pair(nil), n.pairs...)
		for i, p := range c.pairs {
			if below := sp.childSpec(p.key); below != nil {
				c.pairs[i].value = below.expandShort(p.value)
			}
		}
	}
	return &c
}

// minimumOf is the smallest whole number allowed, and whether there is one.
func (sp *spec) minimumOf() (int, bool) {
	n, err := strconv.Atoi(sp.min)
	return n, err == nil
}

// levelDefault is the default of a level's limits, as a user would write it.
func levelDefault(l safety.Level) string {
	limits := safety.LimitsOf(l)
	return fmt.Sprintf("{max_cost_per_iteration: %s, max_total_cost: %s, max_duration_per_iteration: %s, "+
		"max_total_duration: %s, max_api_calls_per_iteration: %d, max_total_api_calls: %d, "+
		"max_tokens_per_iteration: %d, max_total_tokens: %d}",
		quantity.USDText(loop.MicroUSD(limits.IterationCost)), quantity.USDText(loop.MicroUSD(limits.TotalCost)),
		quantity.Duration(limits.IterationDuration), quantity.Duration(limits.TotalDuration), limits.IterationCalls,
		limits.TotalCalls,
		limits.IterationTokens, limits.TotalTokens)
}
