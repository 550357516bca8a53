package forgetest

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"
)

// This file holds a [Hub] to GitHub's own description of its API. A call that it does not
// know is a mistake of pawl's, and what an answer has to have is in it.

// description is the part of GitHub's OpenAPI description that pawl's calls are in, as JSON Schema.
// Where it comes from is in github.json.LICENSE; TestCut makes it.
//
//go:embed github.json
var description []byte

type api struct {
	Calls map[string]call               `json:"calls"` // by method and path
	Defs  map[string]*jsonschema.Schema `json:"$defs"`

	resolved sync.Map // by the schema's JSON
}

// call is one operation.
type call struct {
	Query  []string           `json:"query"`
	Body   *jsonschema.Schema `json:"body"`
	Status int                `json:"status"`
	Answer *jsonschema.Schema `json:"answer"`
}

var described = sync.OnceValue(func() *api {
	a := new(api)
	if err := json.Unmarshal(description, a); err != nil {
		panic(err)
	}
	return a
})

// call is the operation of a request.
func (a *api) call(method, path string) (call, bool) {
	parts := strings.Split(path, "/")
	for name, c := range a.Calls {
		verb, template, _ := strings.Cut(name, " ")
		if verb == method && slices.EqualFunc(strings.Split(template, "/"), parts, func(want, is string) bool {
			return want == is || strings.HasPrefix(want, "{") && is != ""
		}) {
			return c, true
		}
	}
	return call{}, false
}

// check validates a value.
func (a *api) check(s *jsonschema.Schema, v any) error {
	key, err := json.Marshal(s)
	if err != nil {
		return err
	}
	known, ok := a.resolved.Load(string(key))
	if !ok {
		root := s.CloneSchemas()
		root.Defs = map[string]*jsonschema.Schema{}
		if err := a.need(root.Defs, key); err != nil {
			return err
		}
		if known, err = root.Resolve(nil); err != nil {
			return err
		}
		a.resolved.Store(string(key), known)
	}
	r, _ := known.(*jsonschema.Resolved)
	return r.Validate(v)
}

// reference is one to a definition.
var reference = regexp.MustCompile(`"#/\$defs/([^"]+)"`)

// need adds the definitions that a schema, as JSON, refers to, and those that they do:
// to resolve all of them for each schema takes longer than all else in a test's Hub.
func (a *api) need(defs map[string]*jsonschema.Schema, schema []byte) error {
	for _, m := range reference.FindAllSubmatch(schema, -1) {
		name := string(m[1])
		if defs[name] != nil || a.Defs[name] == nil {
			continue
		}
		defs[name] = a.Defs[name].CloneSchemas()
		inner, err := json.Marshal(defs[name])
		if err == nil {
			err = a.need(defs, inner)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// wrong says how a request is not as described; "" is well.
func (a *api) wrong(c *call, r *http.Request, body object) string {
	for name := range r.URL.Query() {
		if !slices.Contains(c.Query, name) {
			return "there is no parameter " + name
		}
	}
	if c.Body == nil || len(body) == 0 { // which is how pawl asks what a token may
		return ""
	}
	for name := range body {
		if c.Body.Properties[name] == nil && len(c.Body.Properties) > 0 {
			return "there is no field " + name
		}
	}
	if err := a.check(c.Body, body); err != nil {
		return err.Error()
	}
	return ""
}

// whole gives a value all that its schema requires: null where that may be.
func (a *api) whole(s *jsonschema.Schema, v any) any {
	s = a.resolve(s, v)
	switch v := v.(type) {
	case object:
		for _, name := range s.Required {
			if _, ok := v[name]; !ok {
				v[name] = a.sample(s.Properties[name])
			}
		}
		for name, of := range maps.Clone(v) {
			if p := s.Properties[name]; p != nil {
				v[name] = a.whole(p, of)
			}
		}
	case []any:
		for i := range v {
			if s.Items != nil {
				v[i] = a.whole(s.Items, v[i])
			}
		}
	}
	return v
}

// resolve follows references, and chooses what is closest to a value.
func (a *api) resolve(s *jsonschema.Schema, v any) *jsonschema.Schema {
	for {
		of := slices.Concat(s.AllOf, s.AnyOf)
		switch name, ok := strings.CutPrefix(s.Ref, "#/$defs/"); {
		case ok:
			s = a.Defs[name]
		case len(of) == 0:
			return s
		default:
			s = of[max(0, slices.IndexFunc(of, func(s *jsonschema.Schema) bool { return fits(a.resolve(s, v), v) }))]
		}
	}
}

func fits(s *jsonschema.Schema, v any) bool {
	types := append([]string{s.Type}, s.Types...)
	_, isObject := v.(object)
	_, isText := v.(string)
	return isObject && slices.Contains(types, "object") || isText && slices.Contains(types, "string") ||
		v == nil && slices.Contains(types, "null")
}

// sample is a value of a schema.
func (a *api) sample(s *jsonschema.Schema) any {
	s = a.resolve(s, nil)
	switch {
	case s == nil, s.Type == "null", slices.Contains(s.Types, "null"):
		return nil
	case len(s.Enum) > 0:
		return s.Enum[0]
	case s.Format == "date-time":
		return now()
	}
	switch s.Type {
	case "object":
		return a.whole(s, object{})
	case "array":
		return []any{}
	case "boolean":
		return false
	case "integer", "number":
		return 0
	}
	return ""
}

// whole is an answer with all that GitHub's would have.
func (c *call) whole(answer any) ([]byte, error) {
	data, err := json.Marshal(answer)
	if err != nil || c.Answer == nil {
		return data, err
	}
	var v any
	if err := json.Unmarshal(data, &v); err != nil {
		return nil, err
	}
	if data, err = json.Marshal(described().whole(c.Answer, v)); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, &v); err != nil {
		return nil, err
	}
	if err := described().check(c.Answer, v); err != nil {
		return nil, fmt.Errorf("the answer is not as described: %w", err)
	}
	return data, nil
}
