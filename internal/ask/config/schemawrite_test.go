package config

// This file writes the schemas of docs, which the program has as they are there.

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
)

// workflowSchemaURL is where editors find the schema of workflow files.
const workflowSchemaURL = "https://raw.githubusercontent.com/pawl-dev/pawl/main/docs/workflow.schema.json"

// Patterns of the values that the schema describes as text.
const (
	durationPattern = `^\s*(0|([0-9]+(\.[0-9]+)?d)?([0-9]+(\.[0-9]*)?(ns|us|µs|ms|s|m|h))*)\s*$`
	bytesPattern    = `^\s*(0|[0-9]+(\.[0-9]*)?\s*(B|kB|KB|MB|GB|TB|KiB|MiB|GiB|TiB))\s*$`
	usdPattern      = `^\s*\$?[0-9]+(\.[0-9]{0,6})?\s*$`
)

// jsonSchema is a schema, or a part of one.
type jsonSchema struct {
	Schema               string                `json:"$schema,omitempty"`
	ID                   string                `json:"$id,omitempty"`
	Title                string                `json:"title,omitempty"`
	Description          string                `json:"description,omitempty"`
	Default              any                   `json:"default,omitempty"`
	Examples             []any                 `json:"examples,omitempty"`
	AnyOf                []jsonSchema          `json:"anyOf,omitempty"`
	Type                 any                   `json:"type,omitempty"` // a name, or several
	Enum                 []string              `json:"enum,omitempty"`
	Pattern              string                `json:"pattern,omitempty"`
	Minimum              *int                  `json:"minimum,omitempty"`
	Maximum              *int                  `json:"maximum,omitempty"`
	Items                *jsonSchema           `json:"items,omitempty"`
	MinItems             int                   `json:"minItems,omitempty"`
	Required             []string              `json:"required,omitempty"`
	Properties           map[string]jsonSchema `json:"properties,omitempty"`
	PatternProperties    map[string]jsonSchema `json:"patternProperties,omitempty"`
	AdditionalProperties any                   `json:"additionalProperties,omitempty"` // a schema, or false
}

// Schema is the JSON Schema (draft 2020-12) of pawl.yaml, indented.
func Schema() []byte { return schema().document(SchemaURL, "pawl.yaml") }

// WorkflowSchema is the JSON Schema (draft 2020-12) of a workflow file.
func WorkflowSchema() []byte {
	return workflowSpec().document(workflowSchemaURL, "workflow of pawl", "steps")
}

// document is the schema of a whole file.
func (sp *spec) document(id, title string, required ...string) []byte {
	s := sp.jsonSchema()
	s.Schema, s.ID, s.Title, s.Required = "https://json-schema.org/draft/2020-12/schema", id, title, required
	s.PatternProperties = map[string]jsonSchema{"^x-": {Description: "Ignored by pawl: a place for anchors."}}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(s); err != nil {
		panic("config: schema: " + err.Error()) // made of texts and numbers only
	}
	return b.Bytes()
}

// jsonSchema describes the values of sp.
func (sp *spec) jsonSchema() jsonSchema {
	s := sp.jsonType()
	if sp.short != "" {
		s = jsonSchema{AnyOf: []jsonSchema{sp.findField(sp.short).jsonType(), s}}
	}
	if sp.lists != nil {
		s = jsonSchema{AnyOf: []jsonSchema{s, sp.lists.jsonType()}}
	}
	s.Description, s.Default, s.Examples = sp.meaningOf(), sp.jsonDefault(), sp.jsonExamples()
	return s
}

func (sp *spec) jsonType() jsonSchema {
	text, zero := jsonSchema{Type: "string"}, 0
	switch sp.shape {
	case anyShape:
		return jsonSchema{}
	case sectionShape:
		return sp.jsonSection()
	case tableShape:
		return jsonSchema{Type: "object", AdditionalProperties: sp.elem.jsonSchema()}
	case listShape:
		items := sp.elem.jsonSchema()
		list := jsonSchema{Type: "array", Items: &items}
		if sp.single {
			return jsonSchema{AnyOf: []jsonSchema{text, list}}
		}
		return list
	case argvShape:
		return jsonSchema{AnyOf: []jsonSchema{text, {Type: "array", Items: &text, MinItems: 1}}}
	case wholeShape:
		s := jsonSchema{Type: "integer"}
		if least, ok := sp.minimumOf(); ok {
			s.Minimum = &least
		}
		return s
	case switchShape:
		return jsonSchema{Type: "boolean"}
	case durationShape:
		if sp.bare != "" { // any number may stand without a unit
			return jsonSchema{Type: []string{"string", "number"}, Pattern: `^\s*[0-9]`, Minimum: &zero}
		}
		return jsonSchema{Type: []string{"string", "integer"}, Pattern: durationPattern, Minimum: &zero, Maximum: &zero}
	case bytesShape:
		return jsonSchema{Type: []string{"string", "integer"}, Pattern: bytesPattern, Minimum: &zero, Maximum: &zero}
	case percentShape:
		return jsonSchema{Type: []string{"integer", "string"}, Pattern: `^\s*([1-9][0-9]?|100)\s*%?\s*$`}
	case usdShape:
		return jsonSchema{Type: []string{"number", "string"}, Pattern: usdPattern, Minimum: &zero}
	case textShape, pathShape:
	}
	if sp.loose && len(sp.enum) == 0 {
		text.Type = []string{"string", "number", "boolean"}
	}
	text.Enum = sp.enum
	return text
}

func (sp *spec) jsonSection() jsonSchema {
	s := jsonSchema{Type: "object", Properties: map[string]jsonSchema{}, AdditionalProperties: false}
	for _, f := range sp.fields {
		if f.inline {
			s.AdditionalProperties = f.elem.jsonSchema()
			continue
		}
		s.Properties[f.name] = f.jsonSchema()
	}
	return s
}

// jsonDefault is the default as JSON would write it; nil for none.
func (sp *spec) jsonDefault() any {
	switch {
	case sp.def == "":
		return sp.jsonZero()
	case sp.shape == listShape, sp.shape == sectionShape:
		return sp.defaultNode().json()
	case sp.shape == switchShape:
		return sp.def == "true"
	case sp.shape == wholeShape, sp.shape == usdShape, sp.def == "0":
		return json.Number(sp.def)
	}
	return sp.def
}

// jsonZero is what a key without a default has; nil for what does not exist at all.
func (sp *spec) jsonZero() any {
	if sp.optional || sp.key == "" {
		return nil
	}
	switch sp.shape {
	case switchShape:
		return false
	case wholeShape, usdShape, durationShape, bytesShape:
		return json.Number("0")
	case listShape, argvShape:
		return []any{}
	case textShape, pathShape:
		if len(sp.enum) == 0 {
			return ""
		}
	default: // a section has the defaults of its keys
	}
	return nil
}

func (n *node) json() any {
	switch n.kind {
	case listNode:
		items := make([]any, len(n.items))
		for i, item := range n.items {
			items[i] = item.json()
		}
		return items
	case mapNode:
		object := map[string]any{}
		for _, p := range n.pairs {
			object[p.key] = p.value.json()
		}
		return object
	case numberNode, fractionNode:
		return json.Number(strings.ReplaceAll(n.text, "_", ""))
	case boolNode:
		return n.text == "true"
	case textNode, nullNode:
	}
	return n.text
}

// jsonExamples are the example as JSON has it; of a section there are those of its keys.
func (sp *spec) jsonExamples() []any {
	if sp.key == "" || sp.shape == anyShape || sp.shape == sectionShape {
		return nil
	}
	text := sp.example(2)
	n, err := parseYAML(&source{layer: builtIn, name: "example"}, []byte(text))
	if text == "" || err != nil || n == nil {
		return nil
	}
	return []any{n.json()}
}

//go:embed examples.yaml
var examplesText []byte

// examples are those of examples.yaml, as "Loop.max_iterations" and YAML.
var examples = sync.OnceValue(func() map[string]string { return readTable(examplesText) })

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
	case percentShape:
		return "80%"
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

// Every key says what it is, has a default, or none on purpose, and an example that it
// takes.
func TestEveryKeyIsExplained(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	var walk func(sp *spec, in reflect.Type)
	walk = func(sp *spec, in reflect.Type) {
		if in.Kind() == reflect.Pointer {
			in = in.Elem()
		}
		if sp.elem != nil {
			walk(sp.elem, in.Elem())
		}
		for _, f := range sp.fields {
			of := in.Field(f.index).Type
			if seen[f.key] {
				continue
			}
			seen[f.key] = true
			if f.meaningOf() == "" {
				t.Errorf("%s says nothing: keys.yaml", f.key)
			}
			example := f.example(2)
			if example == "" {
				t.Errorf("%s has no example: examples.yaml", f.key)
			}
			if f.jsonDefault() == nil && f.isSingleValue() && !f.optional && len(f.enum) == 0 {
				t.Errorf("%s has no default in the schema", f.key)
			}
			n, err := parseYAML(&source{name: f.key}, []byte(example))
			if err == nil {
				err = takes(f, of, n)
			}
			if err != nil {
				t.Errorf("the example of %s is none: %s (%v)", f.key, example, err)
			}
			walk(f, of)
		}
	}
	walk(schema(), reflect.TypeFor[Config]())
	if len(seen) < 150 {
		t.Errorf("%d keys", len(seen))
	}
}

// takes is why a key does not take a value.
func takes(sp *spec, t reflect.Type, n *node) error {
	if sp.inline {
		sp, t = sp.elem, t.Elem()
	}
	d := &decoder{from: map[string]position{}, home: "/"}
	v := reflect.New(t).Elem()
	d.decodeValue(sp, sp.expandShort(n), v, sp.name)
	return d.errs.sortedErrorOrNil()
}
