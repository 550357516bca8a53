package web

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/ask/web/rest"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/do/workspace/pool"
)

// rubbish is what no request should have, as JSON.
var rubbish = map[string]string{
	"NUL": `"\u0000"`, "text and NUL": `"1h\u0000"`, "control": `"\u001b[2J"`, "half a character": `"\ud800"`, "no UTF-8": "\"\xff\xfe\"",
	"huge": `"` + strings.Repeat("x", 900_000) + `"`, "large number": `1e999`, "int64 and one": `9223372036854775808`, "negative": `-1`, "fraction": `0.5`,
	"deep": strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000), "object": `{"a":{"b":[]}}`, "list": `[[],{},null,"\u0000"]`,
	"null": `null`, "true": `true`, "empty": `""`, "option": `"--config=/etc/passwd"`, "path": `"../../../etc/passwd"`, "format": `"%s%n%!d(x)"`,
}

// fields are the fields of a body that the document describes, and a value for
// each that must be there.
func fields(doc map[string]any, schema map[string]any) (all map[string]any, needed map[string]string) {
	if ref, ok := schema["$ref"].(string); ok {
		all := doc["components"].(map[string]any)["schemas"].(map[string]any)
		return fields(doc, all[ref[strings.LastIndex(ref, "/")+1:]].(map[string]any))
	}
	properties, _ := schema["properties"].(map[string]any)
	needed = map[string]string{}
	list, _ := schema["required"].([]any)
	for _, name := range list {
		value := `"x"`
		p, _ := properties[name.(string)].(map[string]any)
		if options, ok := p["enum"].([]any); ok {
			text, _ := json.Marshal(options[0])
			value = string(text)
		} else if p["type"] != "string" {
			value = map[string]string{"integer": "1", "number": "1", "boolean": "true", "array": "[]"}[p["type"].(string)]
		}
		needed[name.(string)] = value
	}
	return properties, needed
}

// tooLong is a text with a character more than the field may have; one that knows
// no bound gets nearly as much as a body may have.
func tooLong(field any) string {
	f, _ := field.(map[string]any)
	size := 900_000
	if most, ok := f["maxLength"].(float64); ok {
		size = int(most) + 1
	} else if slices.Contains([]any{"integer", "number", "boolean"}, f["type"]) {
		size = 1000
	}
	return `"` + strings.Repeat("x", size) + `"`
}

func object(values map[string]string) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(values)) {
		parts = append(parts, `"`+name+`":`+values[name])
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// Whatever is sent to whatever the document describes, the server can say what is
// wrong with it: its own faults are none of a request.
func TestRubbish(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.run("abc123", nil)
	r.s.o.Pool = func(context.Context) (*pool.Pool, error) { return nil, fault.Refuse("there are no workspaces") }
	r.s.closed.Do(func() { close(r.s.streams.closing) }) // streams end at once
	var doc map[string]any
	r.get("/openapi.json", &doc)
	tried := 0
	try := func(what, method, path, body string) {
		t.Helper()
		tried++
		w := r.send(r.asking(method, path, body))
		if w.Code >= http.StatusInternalServerError && w.Code != http.StatusServiceUnavailable {
			t.Errorf("%s %.100s, %s: %d %.300s", method, path, what, w.Code, w.Body)
		}
	}
	for path, item := range doc["paths"].(map[string]any) {
		for method, one := range item.(map[string]any) {
			method, operation := strings.ToUpper(method), one.(map[string]any)
			known := strings.NewReplacer("{run}", "abc123", "{id}", "task-001", "{n}", "1", "{iteration}", "1").Replace(path)
			list, _ := operation["parameters"].([]any)
			for what, value := range rubbish {
				var text string
				if json.Unmarshal([]byte(value), &text) != nil || len(text) > 10_000 {
					text = "x" + value[:min(len(value), 5000)]
				}
				for _, p := range list {
					p := p.(map[string]any)
					name := p["name"].(string)
					switch p["in"] {
					case "query":
						try(what+" as "+name, method, known+"?"+name+"="+url.QueryEscape(text), "{}")
					case "path":
						at := strings.Replace(path, "{"+name+"}", url.PathEscape(text), 1)
						try(what+" as "+name, method, strings.NewReplacer("{run}", "abc123", "{id}", "task-001", "{n}", "1").Replace(at), "{}")
					}
				}
				body, _ := operation["requestBody"].(map[string]any)
				if body == nil {
					continue
				}
				try(what+" as the body", method, known, value)
				content := body["content"].(map[string]any)["application/json"].(map[string]any)
				all, needed := fields(doc, content["schema"].(map[string]any))
				for name, field := range all {
					if what == "huge" {
						value = tooLong(field)
					}
					for _, v := range []string{value, "[" + value + "]"} {
						values := maps.Clone(needed)
						values[name] = v
						try(what+" as "+name, method, known, object(values))
					}
				}
			}
		}
	}
	if d := r.refused(http.MethodPost, "/runs/abc123/resume", `{"timeout":"\u0000"}`, http.StatusBadRequest); !strings.Contains(strings.Join(d.Details, " "), "NUL") {
		t.Errorf("what is wrong is not said: %+v", d)
	}
	if w := r.send(r.asking(http.MethodPost, rest.Base+"/cases", `{"title":"say \\u0000"}`)); w.Code != http.StatusOK {
		t.Errorf("a text about NUL: %d %s", w.Code, w.Body)
	}
	if tried < 1000 {
		t.Errorf("only %d requests were made", tried)
	}
}
