package config

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/ask/config/statedir"
)

const (
	schemaFile    = "../../../docs/pawl.schema.json"
	referenceFile = "../../../docs/configuration.md"
)

// The shipped schema is the one that the code prints: run with -update.
func TestSchemaIsCurrent(t *testing.T) {
	t.Parallel()
	golden(t, schemaFile, string(Schema()))
}

// The table in the reference is current, and every key has a meaning.
func TestReferenceIsCurrent(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(referenceFile)
	if err != nil {
		t.Fatal(err)
	}
	const start, end = "<!-- keys: written by the test of internal/ask/config -->\n", "<!-- end of keys -->"
	head, rest, ok := strings.Cut(string(data), start)
	_, tail, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatal("the markers are gone")
	}
	golden(t, referenceFile, head+start+"\n"+referenceTable()+"\n"+end+tail)
	for _, line := range strings.Split(referenceTable(), "\n") {
		if strings.HasSuffix(line, "|  |") {
			t.Errorf("no meaning: %s", line)
		}
	}
}

// example is what the documentation shows: one value for every top-level key.
func example(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile("testdata/example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func exampleDir(t *testing.T) string {
	t.Helper()
	return write(t, tempDir(t), map[string]string{statedir.FileName: example(t), "prompts/observe.md": "look",
		"prompts/orient.md": "think", "prompts/review.md": "judge"})
}

func TestExampleLoads(t *testing.T) {
	t.Parallel()
	c, err := Load(testOptions(exampleDir(t)))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range schema().fields {
		if !c.IsSet(f.name) {
			t.Errorf("the example does not show %s", f.name)
		}
	}
}

func TestExampleFitsSchema(t *testing.T) {
	t.Parallel()
	n, err := parseYAML(&source{name: "example"}, []byte(example(t)))
	if err != nil {
		t.Fatal(err)
	}
	for _, fault := range fits(decodeSchema(t), plain(t, n), "$") {
		t.Error(fault)
	}
}

// What Load refuses as unknown, as an unknown word or as the wrong type, an
// editor with the schema refuses too.
func TestSchemaRefuses(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"unknown_key", "unknown_top", "unknown_camel", "enums", "wrong_type", "negative", "agents_types",
		"hook_unknown", "duration_without_unit", "sizes_and_money", "strategies"} {
		data, err := os.ReadFile("testdata/bad/" + name + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		n, err := parseYAML(&source{name: name}, data)
		if err != nil {
			t.Fatal(err)
		}
		if len(fits(decodeSchema(t), plain(t, n), "$")) == 0 {
			t.Errorf("the schema accepts %s", name)
		}
	}
}

func decodeSchema(t *testing.T) map[string]any {
	t.Helper()
	var s map[string]any
	if err := json.Unmarshal(Schema(), &s); err != nil {
		t.Fatal(err)
	}
	return s
}

func plain(t *testing.T, n *node) any {
	t.Helper()
	data, err := json.Marshal(n.json())
	if err != nil {
		t.Fatal(err)
	}
	var v any
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// fits checks v by the keywords that our schema uses.
func fits(s map[string]any, v any, path string) []string {
	if forms, ok := s["anyOf"].([]any); ok {
		var faults []string
		for _, one := range forms {
			found := fits(one.(map[string]any), v, path)
			if len(found) == 0 {
				return nil
			}
			faults = append(faults, found...)
		}
		return faults
	}
	kind := map[bool]string{true: "integer", false: "number"}
	name := ""
	switch v := v.(type) {
	case string:
		name = "string"
	case bool:
		name = "boolean"
	case float64:
		name = kind[v == float64(int64(v))]
	case []any:
		name = "array"
	case map[string]any:
		name = "object"
	}
	types, many := s["type"].([]any)
	if !many {
		types = []any{s["type"]}
	}
	whole := name == "integer" && slices.Contains(types, any("number"))
	if s["type"] != nil && !slices.Contains(types, any(name)) && !whole {
		return []string{fmt.Sprintf("%s: %v is no %v", path, v, types)}
	}
	return fitsKeywords(s, v, path)
}

func fitsKeywords(s map[string]any, v any, path string) (faults []string) {
	if enum, ok := s["enum"].([]any); ok && !slices.Contains(enum, v) {
		faults = append(faults, fmt.Sprintf("%s: %v is none of %v", path, v, enum))
	}
	switch v := v.(type) {
	case string:
		if p, ok := s["pattern"].(string); ok && !regexp.MustCompile(p).MatchString(v) {
			faults = append(faults, fmt.Sprintf("%s: %q does not match %s", path, v, p))
		}
	case float64:
		if least, ok := s["minimum"].(float64); ok && v < least {
			faults = append(faults, fmt.Sprintf("%s: %v is below %v", path, v, least))
		}
		if most, ok := s["maximum"].(float64); ok && v > most {
			faults = append(faults, fmt.Sprintf("%s: %v is above %v", path, v, most))
		}
	case []any:
		for i, item := range v {
			faults = append(faults, fits(s["items"].(map[string]any), item, fmt.Sprintf("%s[%d]", path, i))...)
		}
	case map[string]any:
		properties, _ := s["properties"].(map[string]any)
		for key, value := range v {
			switch below, ok := properties[key].(map[string]any); {
			case ok:
				faults = append(faults, fits(below, value, path+"."+key)...)
			case s["additionalProperties"] == false && !strings.HasPrefix(key, "x-"):
				faults = append(faults, fmt.Sprintf("%s: unknown key %s", path, key))
			default:
				if rest, ok := s["additionalProperties"].(map[string]any); ok {
					faults = append(faults, fits(rest, value, path+"."+key)...)
				}
			}
		}
	}
	return faults
}

// Every exported field of Config and of what it holds is a key of the schema
// with a description, or is marked as none.
func TestEveryFieldIsInSchema(t *testing.T) {
	t.Parallel()
	count := 0
	var walk func(typ reflect.Type, s map[string]any, path string)
	walk = func(typ reflect.Type, s map[string]any, path string) {
		for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice || typ.Kind() == reflect.Map {
			switch below, ok := s["items"].(map[string]any); {
			case ok && typ.Kind() == reflect.Slice:
				s = below
			case typ.Kind() == reflect.Map:
				s, _ = s["additionalProperties"].(map[string]any)
			}
			typ = typ.Elem()
		}
		if typ.Kind() != reflect.Struct {
			return
		}
		if forms, ok := s["anyOf"].([]any); ok {
			s = forms[len(forms)-1].(map[string]any)
		}
		properties, _ := s["properties"].(map[string]any)
		for i := range typ.NumField() {
			f := typ.Field(i)
			name, options, _ := strings.Cut(f.Tag.Get("yaml"), ",")
			switch {
			case !f.IsExported() || name == "-":
			case options == "inline":
				walk(f.Type, s, path+".*")
			case properties[name] == nil:
				t.Errorf("%s.%s (%s) is not in the schema", path, name, f.Name)
			default:
				below := properties[name].(map[string]any)
				if below["description"] == nil {
					t.Errorf("%s.%s has no description", path, name)
				}
				count++
				walk(f.Type, below, path+"."+name)
			}
		}
	}
	walk(reflect.TypeFor[Config](), decodeSchema(t), "$")
	if count < 120 {
		t.Errorf("only %d keys were checked", count)
	}
}

// Every default is a value that Load accepts for its key.
func TestDefaultsAreValues(t *testing.T) {
	t.Parallel()
	c, err := Load(testOptions(tempDir(t)))
	if err != nil {
		t.Fatal(err)
	}
	if c.IsSet("agent") || c.File != "" || len(c.Warnings) != 0 {
		t.Errorf("set %v, file %q, warnings %q", c.IsSet("agent"), c.File, c.Warnings)
	}
	for _, e := range c.Entries() {
		if e.Source != "built-in" {
			t.Errorf("%s comes from %s", e.Path, e.Source)
		}
	}
	if c.Safety.Limits.Paranoid.MaxTotalCost != 5e6 || c.Snapshot.MaxFile != 50e6 || c.Merge.Batch != 8 {
		t.Errorf("defaults are off: %+v", c.Safety.Limits.Paranoid)
	}
}
