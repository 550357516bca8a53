package forgetest

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

var whole = flag.String("description", "", "api.github.com.json of @octokit/openapi: what pawl calls is cut out of it")

// used are the calls that pawl makes, and those that people make in tests.
var used = strings.Fields(`
get /user
get R
get R/commits/{ref}/status
get R/commits/{ref}/check-runs
get R/actions/jobs/{job_id}/logs
get R/issues post R/issues
get R/issues/{issue_number} patch R/issues/{issue_number}
get R/issues/{issue_number}/comments post R/issues/{issue_number}/comments
put R/issues/{issue_number}/labels post R/issues/{issue_number}/labels
patch R/issues/comments/{comment_id}
get R/pulls post R/pulls
get R/pulls/{pull_number} patch R/pulls/{pull_number}
put R/pulls/{pull_number}/merge
get R/pulls/{pull_number}/reviews post R/pulls/{pull_number}/reviews
get R/pulls/{pull_number}/comments
get R/collaborators/{username}/permission
post R/statuses/{sha}
post R/labels`)

// github.json has the calls that are used, and no other. Where the whole description
// is given it is made anew.
func TestCut(t *testing.T) {
	t.Parallel()
	if *whole != "" {
		cutOut(t)
	}
	data, err := os.ReadFile("github.json")
	if err != nil {
		t.Fatal(err)
	}
	var have struct {
		Calls object `json:"calls"`
	}
	if err := json.Unmarshal(data, &have); err != nil {
		t.Fatal(err)
	}
	var want []string
	for pair := range slices.Chunk(used, 2) {
		want = append(want, called(pair))
	}
	slices.Sort(want)
	if got := slices.Sorted(maps.Keys(have.Calls)); !slices.Equal(got, want) {
		t.Errorf("the description has %q, want %q", got, want)
	}
}

// called names a call as the description does, of its method and short path.
func called(pair []string) string {
	return strings.ToUpper(pair[0]) + " " + path(pair)
}

func path(pair []string) string { return strings.Replace(pair[1], "R", "/repos/{owner}/{repo}", 1) }

func cutOut(t *testing.T) {
	t.Helper()
	data, err := os.ReadFile(*whole)
	if err != nil {
		t.Fatal(err)
	}
	c := cutter{refs: map[string]bool{}}
	if err := json.Unmarshal(data, &c.all); err != nil {
		t.Fatal(err)
	}
	calls, defs := object{}, object{}
	for pair := range slices.Chunk(used, 2) {
		calls[called(pair)] = c.call(c.at("paths", path(pair), pair[0]))
	}
	for len(defs) < len(c.refs) {
		for _, name := range slices.Sorted(maps.Keys(c.refs)) {
			if defs[name] == nil {
				defs[name] = c.cut(c.at("components", "schemas", name))
			}
		}
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "{\"calls\":%s,\n\"$defs\":%s}\n", lines(calls), lines(defs))
	if err := os.WriteFile("github.json", b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

// lines is an object with one field a line.
func lines(o object) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(o)) {
		data, err := json.Marshal(o[name])
		if err != nil {
			panic(err)
		}
		all = append(all, fmt.Sprintf("%q:%s", name, data))
	}
	return "{\n" + strings.Join(all, ",\n") + "}"
}

type cutter struct {
	all  object
	refs map[string]bool // schemas that are used
}

// at is what is at a place, and not a reference to it.
func (c *cutter) at(path ...string) object {
	o := c.all
	for _, name := range path {
		o, _ = o[name].(object)
	}
	if ref, ok := o["$ref"].(string); ok {
		return c.at(strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)
	}
	return o
}

func (c *cutter) call(op object) object {
	out := object{}
	var query []string
	parameters, _ := op["parameters"].([]any)
	for _, p := range parameters {
		p, _ := p.(object)
		if ref, ok := p["$ref"].(string); ok {
			p = c.at(strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)
		}
		if p["in"] == "query" {
			query = append(query, fmt.Sprint(p["name"]))
		}
	}
	out["query"] = query
	schema := func(o any) any {
		for _, name := range []string{"content", "application/json", "schema"} {
			o, _ = o.(object)[name].(object)
		}
		return c.cut(o)
	}
	if body, ok := op["requestBody"].(object); ok {
		out["body"] = schema(body)
	}
	responses, _ := op["responses"].(object)
	for _, status := range []int{200, 201} {
		if r, ok := responses[fmt.Sprint(status)].(object); ok {
			out["status"], out["answer"] = status, schema(r)
		}
	}
	return out
}

// cut makes JSON Schema of a schema of OpenAPI 3.0, without words.
func (c *cutter) cut(v any) any {
	s, ok := v.(object)
	if !ok {
		return v
	}
	out := object{}
	for _, key := range []string{"type", "required", "enum", "additionalProperties"} {
		if v, ok := s[key]; ok {
			out[key] = c.cut(v)
		}
	}
	if s["format"] == "date-time" {
		out["format"] = s["format"]
	}
	if ref, ok := s["$ref"].(string); ok {
		name := ref[strings.LastIndex(ref, "/")+1:]
		c.refs[name] = true
		return object{"$ref": "#/$defs/" + name}
	}
	if of, ok := s["properties"].(object); ok {
		all := object{}
		for name, p := range of {
			all[name] = c.cut(p)
		}
		out["properties"] = all
	}
	if of, ok := s["items"]; ok {
		out["items"] = c.cut(of)
	}
	for _, key := range []string{"allOf", "anyOf", "oneOf"} {
		of, _ := s[key].([]any)
		var all []any
		for _, s := range of {
			all = append(all, c.cut(s))
		}
		if all != nil {
			out[strings.Replace(key, "one", "any", 1)] = all // some values fit into two
		}
	}
	if s["nullable"] != true {
		return out
	}
	return object{"anyOf": []any{object{"type": "null"}, out}}
}
