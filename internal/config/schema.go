package config

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
)

// SchemaURL is where editors find the schema of the newest pawl.
const SchemaURL = "https://raw.githubusercontent.com/pawl-dev/pawl/main/docs/pawl.schema.json"

// Patterns of the values that the schema describes as text.
const (
	durationPattern = `^\s*(0|([0-9]+(\.[0-9]+)?d)?([0-9]+(\.[0-9]*)?(ns|us|µs|ms|s|m|h))*)\s*$`
	bytesPattern    = `^\s*(0|[0-9]+(\.[0-9]*)?\s*(B|kB|KB|MB|GB|TB|KiB|MiB|GiB|TiB))\s*$`
	usdPattern      = `^\s*\$?[0-9]+(\.[0-9]{0,6})?\s*$`
)

// object is a JSON object that keeps its order.
type object []member

type member struct {
	key   string
	value any
}

// MarshalJSON writes the members in their order.
func (o object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		key, err := json.Marshal(m.key)
		if err != nil {
			return nil, err
		}
		value, err := encode(m.value)
		if err != nil {
			return nil, err
		}
		b.Write(key)
		b.WriteByte(':')
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// encode is json.Marshal without escapes for HTML.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSpace(b.Bytes()), nil
}

// Schema is the JSON Schema (draft 2020-12) of pawl.yaml, indented.
func Schema() []byte {
	head := object{
		{"$schema", "https://json-schema.org/draft/2020-12/schema"},
		{"$id", SchemaURL},
		{"title", "pawl.yaml"},
	}
	body := schema().jsonSchema()
	body = append(body, member{"patternProperties", object{{"^x-", object{
		{"description", "Ignored by pawl: a place for anchors."},
	}}}})
	data, err := encode(append(head, body...))
	if err != nil {
		panic("config: schema: " + err.Error()) // made of texts and objects only
	}
	var out bytes.Buffer
	if err := json.Indent(&out, data, "", "  "); err != nil {
		panic("config: schema: " + err.Error())
	}
	out.WriteByte('\n')
	return out.Bytes()
}

// jsonSchema describes the values of sp.
func (sp *spec) jsonSchema() object {
	var o object
	if sp.doc != "" {
		o = append(o, member{"description", sp.doc})
	}
	if def, ok := sp.jsonDefault(); ok {
		o = append(o, member{"default", def})
	}
	if sp.short == "" {
		return append(o, sp.jsonType()...)
	}
	short := sp.field(sp.short).jsonType()
	return append(o, member{"anyOf", []object{short, sp.jsonType()}})
}

func (sp *spec) jsonType() object {
	text := object{{"type", "string"}}
	switch sp.shape {
	case sectionShape:
		return sp.jsonSection()
	case tableShape:
		return object{{"type", "object"}, {"additionalProperties", sp.elem.jsonSchema()}}
	case listShape:
		list := object{{"type", "array"}, {"items", sp.elem.jsonSchema()}}
		if sp.single {
			return object{{"anyOf", []object{text, list}}}
		}
		return list
	case anyShape:
		return object{}
	case argvShape:
		list := object{{"type", "array"}, {"items", text}, {"minItems", 1}}
		return object{{"anyOf", []object{text, list}}}
	case wholeShape:
		o := object{{"type", "integer"}}
		if least, ok := sp.minimum(); ok {
			o = append(o, member{"minimum", least})
		}
		return o
	case switchShape:
		return object{{"type", "boolean"}}
	case durationShape:
		return sp.jsonDuration()
	case bytesShape:
		return object{{"type", []string{"string", "integer"}}, {"pattern", bytesPattern}, {"maximum", 0}, {"minimum", 0}}
	case usdShape:
		return object{{"type", []string{"number", "string"}}, {"pattern", usdPattern}, {"minimum", 0}}
	case textShape, pathShape:
	}
	switch {
	case len(sp.enum) > 0:
		return append(text, member{"enum", sp.enum})
	case sp.loose:
		return object{{"type", []string{"string", "number", "boolean"}}}
	}
	return text
}

// jsonDuration lets 0 through as a number, and any number where one may stand
// without a unit.
func (sp *spec) jsonDuration() object {
	if sp.bare != "" {
		return object{{"type", []string{"string", "number"}}, {"pattern", `^\s*[0-9]`}, {"minimum", 0}}
	}
	return object{{"type", []string{"string", "integer"}}, {"pattern", durationPattern}, {"maximum", 0}, {"minimum", 0}}
}

func (sp *spec) jsonSection() object {
	properties := object{}
	for _, f := range sp.fields {
		if !f.inline {
			properties = append(properties, member{f.name, f.jsonSchema()})
		}
	}
	var rest any = false
	if r := sp.rest(); r != nil {
		rest = r.elem.jsonSchema()
	}
	return object{{"type", "object"}, {"properties", properties}, {"additionalProperties", rest}}
}

// jsonDefault is the default as JSON would write it.
func (sp *spec) jsonDefault() (any, bool) {
	if sp.def == "" {
		return nil, false
	}
	switch sp.shape {
	case wholeShape:
		n, err := strconv.Atoi(sp.def)
		return n, err == nil
	case switchShape:
		return sp.def == "true", true
	case listShape, sectionShape:
		return sp.defaultNode().json(), true
	case usdShape:
		return json.Number(sp.def), true
	case durationShape, bytesShape:
		if sp.def == "0" {
			return 0, true
		}
	case textShape, pathShape, argvShape, tableShape:
	}
	return sp.def, true
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
		var o object
		for _, p := range n.pairs {
			o = append(o, member{p.key, p.value.json()})
		}
		return o
	case numberNode, fractionNode:
		return json.Number(strings.ReplaceAll(n.text, "_", ""))
	case boolNode:
		return n.text == "true"
	case textNode, nullNode:
	}
	return n.text
}
