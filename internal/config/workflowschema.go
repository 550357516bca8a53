package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"sync"
)

// WorkflowSchemaURL is where editors find the schema of workflow files.
const WorkflowSchemaURL = "https://raw.githubusercontent.com/pawl-dev/pawl/main/docs/workflow.schema.json"

// workflowSpec is the spec of a workflow file.
var workflowSpec = sync.OnceValue(func() *spec { return newSpec(reflect.TypeFor[workflowFile](), reflect.StructField{}) })

// WorkflowSchema is the JSON Schema (draft 2020-12) of a workflow file.
func WorkflowSchema() []byte {
	head := object{
		{"$schema", "https://json-schema.org/draft/2020-12/schema"},
		{"$id", WorkflowSchemaURL},
		{"title", "workflow of pawl"},
	}
	body := append(workflowSpec().jsonSchema(), member{"required", []string{"steps"}},
		member{"patternProperties", object{{"^x-", object{{"description", "Ignored by pawl: a place for anchors."}}}}})
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

// WorkflowReference is the table of docs/workflows.md: all keys, pawl's own
// first and then those of the dialects.
func WorkflowReference() string {
	var own, dialect strings.Builder
	var walk func(sp *spec, path string)
	walk = func(sp *spec, path string) {
		b := &own
		if strings.HasPrefix(sp.doc, "Dialect") {
			b = &dialect
		}
		if path != "" {
			sp.row(b, path)
		}
		below := sp
		switch {
		case sp.shape == listShape && sp.elem.shape == sectionShape:
			path, below = path+"[]", sp.elem
		case sp.shape != sectionShape:
			return
		}
		for _, f := range below.fields {
			name := f.name
			if f.inline {
				name = "NAME"
			}
			walk(f, strings.TrimPrefix(path+"."+name, "."))
		}
	}
	walk(workflowSpec(), "")
	head := "| key | type | default | meaning |\n|---|---|---|---|\n"
	return fmt.Sprintf("%s%s\n### Keys of the dialects\n\n%s%s", head, own.String(), head, dialect.String())
}
