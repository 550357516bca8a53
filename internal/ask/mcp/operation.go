package mcp

import (
	"bytes"
	"cmp"
	"context"
	_ "embed" // of tools.txt
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/decide/report"
)

//go:embed tools.txt
var offered string

// description is what is read of the API's.
type description struct {
	Paths      map[string]map[string]json.RawMessage `json:"paths"`
	Components struct {
		Schemas map[string]schema `json:"schemas"`
	} `json:"components"`
}

// operation is one address of the API, as a tool.
type operation struct {
	method, path string
	api          http.Handler
	bodied       bool // it takes a body

	ID         string      `json:"operationId"`
	Summary    string      `json:"summary"`
	Parameters []parameter `json:"parameters"`
	Body       struct {
		Content map[string]struct {
			Schema schema `json:"schema"`
		} `json:"content"`
	} `json:"requestBody"`
}

type parameter struct {
	Name        string         `json:"name"`
	In          string         `json:"in"`
	Description string         `json:"description"`
	Required    bool           `json:"required"`
	Schema      map[string]any `json:"schema"`
}

type schema struct {
	Ref        string                    `json:"$ref"`
	Properties map[string]map[string]any `json:"properties"`
	Required   []string                  `json:"required"`
}

// addOperations makes a tool of each operation that is offered.
func addOperations(s *mcp.Server, o Options) error {
	var d description
	if err := json.Unmarshal(o.Description, &d); err != nil {
		return fmt.Errorf("cannot read the description of the API: %v", err)
	}
	byID := map[string]*operation{}
	for path, methods := range d.Paths {
		for method, text := range methods {
			op := &operation{method: strings.ToUpper(method), path: path, api: o.API}
			if err := json.Unmarshal(text, op); err != nil {
				return fmt.Errorf("cannot read the description of %s %s: %v", method, path, err)
			}
			byID[op.ID] = op
		}
	}
	for line := range strings.Lines(offered) {
		name, note, _ := strings.Cut(strings.TrimSpace(line), ": ")
		id, harm := strings.CutPrefix(name, "!")
		if strings.HasPrefix(line, "#") {
			continue
		}
		op, ok := byID[id]
		if !ok {
			return fmt.Errorf("the API has no operation %s", id)
		}
		hints := &mcp.ToolAnnotations{ReadOnlyHint: op.method == http.MethodGet, DestructiveHint: &harm,
			OpenWorldHint: new(bool)}
		s.AddTool(&mcp.Tool{
			Name: strings.ReplaceAll(id, "-", "_"), Annotations: hints,
			InputSchema: op.inputSchema(d.Components.Schemas),
			Description: strings.TrimSpace(op.Summary + ". " + note),
		}, op.callOperation)
	}
	return nil
}

// inputSchema is the schema of a tool's arguments: the parameters and the fields of the body, side by side.
func (op *operation) inputSchema(schemas map[string]schema) map[string]any {
	properties, required := map[string]any{}, []string{}
	for _, p := range op.Parameters {
		one := maps.Clone(p.Schema)
		if p.Description != "" {
			one["description"] = p.Description
		}
		properties[p.Name] = one
		if p.Required {
			required = append(required, p.Name)
		}
	}
	body, bodied := op.Body.Content["application/json"]
	if op.bodied = bodied; bodied {
		fields := body.Schema
		if fields.Ref != "" {
			fields = schemas[fields.Ref[strings.LastIndex(fields.Ref, "/")+1:]]
		}
		for name, p := range fields.Properties {
			if ref, ok := p["$ref"].(string); ok { // a client knows the tool's schema only
				p = map[string]any{"type": "object", "description": p["description"], "additionalProperties": false,
					"properties": schemas[ref[strings.LastIndex(ref, "/")+1:]].Properties}
			}
			properties[name] = p
		}
		required = append(required, fields.Required...)
	}
	return map[string]any{"type": "object", "properties": properties, "required": required,
		"additionalProperties": false}
}

// callOperation asks the API. What it refuses is the tool's result too: the model reads why.
func (op *operation) callOperation(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	req, err := op.apiRequest(ctx, r.Params.Arguments)
	if err != nil {
		return textResult(err.Error(), true), nil
	}
	w := &answer{header: http.Header{}}
	op.api.ServeHTTP(w, req)
	if w.status >= http.StatusBadRequest {
		return textResult(refusalText(w.Bytes()), true), nil
	}
	return textResult(withoutSealed(w.Bytes()), false), nil
}

// withoutSealed is an answer that names the sealed checks of a task by their criteria alone: who
// asks by tools may be at work on it.
func withoutSealed(text []byte) string {
	var fields map[string]json.RawMessage
	var checks []struct {
		Criterion string `json:"criterion"`
	}
	if json.Unmarshal(text, &fields) != nil || json.Unmarshal(fields["sealed"], &checks) != nil {
		return strings.TrimSpace(string(text))
	}
	criteria, err := json.Marshal(checks)
	if fields["sealed"] = criteria; err == nil {
		text, err = json.Marshal(fields)
	}
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// apiRequest puts each argument where the API wants it. The API says what is wrong with it.
func (op *operation) apiRequest(ctx context.Context, arguments json.RawMessage) (*http.Request, error) {
	left := map[string]json.RawMessage{}
	if len(arguments) > 0 {
		if err := json.Unmarshal(arguments, &left); err != nil {
			return nil, fmt.Errorf("the arguments are not a JSON object: %v", err)
		}
	}
	path, query := op.path, url.Values{}
	for _, p := range op.Parameters {
		value := plainValue(left[p.Name])
		if p.In == "path" {
			if strings.Trim(value, ".") == "" {
				return nil, fmt.Errorf("the argument %s is missing", p.Name)
			}
			path = strings.Replace(path, "{"+p.Name+"}", url.PathEscape(value), 1)
		} else if value != "" && p.In == "query" {
			query.Set(p.Name, value)
		}
		delete(left, p.Name)
	}
	if !op.bodied && len(left) > 0 {
		return nil, fmt.Errorf("%s takes no argument %q", op.ID, slices.Sorted(maps.Keys(left))[0])
	}
	body, err := json.Marshal(left)
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, op.method, path+"?"+query.Encode(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	return r, nil
}

// plainValue is a value of JSON as an address has it: a list has commas.
func plainValue(value json.RawMessage) string {
	var text string
	var list []string
	switch {
	case len(value) == 0 || string(value) == "null":
		return ""
	case json.Unmarshal(value, &text) == nil:
		return text
	case json.Unmarshal(value, &list) == nil:
		return strings.Join(list, ",")
	}
	return string(value)
}

// refusalText is an error of the API in words, with what to do that is no address of the API.
func refusalText(body []byte) string {
	var p struct {
		Error struct {
			Message     string   `json:"message"`
			Details     []string `json:"details"`
			Suggestions []string `json:"suggestions"`
		} `json:"error"`
	}
	if json.Unmarshal(body, &p) != nil || p.Error.Message == "" {
		return cmp.Or(strings.TrimSpace(string(body)), "pawl did not say why it failed")
	}
	isOfAPI := func(suggestion string) bool { return strings.Contains(suggestion, "/api/") }
	lines := slices.Concat([]string{p.Error.Message}, p.Error.Details, slices.DeleteFunc(p.Error.Suggestions, isOfAPI))
	short := func(line string) string { return report.Line(line, 400) } // it may repeat what was sent
	return strings.Join(lists.Each(lines, short), "\n")
}

// answer keeps what the API answers.
type answer struct {
	bytes.Buffer
	header http.Header
	status int
}

func (a *answer) Header() http.Header { return a.header }

func (a *answer) WriteHeader(status int) {
	a.status = cmp.Or(a.status, status)
}
