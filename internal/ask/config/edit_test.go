package config

import (
	"reflect"
	"strings"
	"testing"
)

const edited = `# What agents work by.
agent: claude # the best

loop:
  # Half an hour is enough.
  iteration_timeout: 30m   # one iteration
  safety: normal

agents: {mine: {command: ["./a, b.sh"], env: {X: "1"}}, fallback: [codex]} # own
verification:
  commands:
    - name: tests
      command: |
        go test ./...
      timeout: 5m

    # another
    - go vet ./...
workspace:
  setup: # in each clone
  - npm ci
  - npm run build
# the end
`

// One value changes; every other line stays, byte for byte.
func TestSet(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ path, value, was, now string }{
		{"agent", "codex", "agent: claude # the best", "agent: codex # the best"},
		{"loop.iteration_timeout", "1h", "iteration_timeout: 30m   # one", "iteration_timeout: 1h   # one"},
		{"loop.safety", "paranoid", "safety: normal", "safety: paranoid"},
		{"loop.max_iterations", "5", "  safety: normal\n", "  safety: normal\n  max_iterations: 5\n"},
		{"agents.mine.command", "[sh, x]", `["./a, b.sh"]`, "[sh, x]"},
		{"agents.mine.env.X", "2: b", `X: "1"`, `X: "2: b"`},
		{"agents.mine.model", "opus", `{X: "1"}}`, `{X: "1"}, model: opus}`},
		{"agents.fallback", "[]", "[codex]", "[]"},
		{"agents.other.model", "opus", "[codex]}", "[codex], other: {model: opus}}"},
		{"verification.protect", `["a/**"]`, "    - go vet ./...\n", "    - go vet ./...\n  protect: [\"a/**\"]\n"},
		{"workspace.setup", "[make]", "setup: # in each clone\n  - npm ci\n  - npm run build\n", "setup: [make] # in each clone\n"},
		{"workspace.copy", "[.env]", "  - npm run build\n", "  - npm run build\n  copy: [.env]\n"},
		{"server.address", "127.0.0.1:80", "# the end\n", "# the end\n"},
		{"procedures.build.summary", "It's a: summary", "# the end\n", "# the end\n"},
	} {
		out, err := Set([]byte(edited), c.path, c.value)
		want := strings.Replace(edited, c.was, c.now, 1)
		switch c.path {
		case "server.address":
			want = strings.Replace(edited, "# the end\n", "server:\n  address: \"127.0.0.1:80\"\n# the end\n", 1)
		case "procedures.build.summary":
			want = strings.Replace(edited, "# the end\n", "procedures:\n  build:\n    summary: \"It's a: summary\"\n# the end\n", 1)
		}
		if err != nil || string(out) != want {
			t.Errorf("%s = %s: %v\n%s", c.path, c.value, err, out)
		}
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
	return d.errs.asError()
}

func TestSetRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range [][4]string{
		{edited, "loop.saftey", "x", `no key "loop.saftey" (did you mean "loop.safety"?)`},
		{edited, "agent.x", "x", `no key "agent.x"`},
		{edited, "", "x", "a key is needed"},
		{edited, "loop.safety", "a\nb: c", "there"},
		{edited, "verification.commands", "[a", "cannot read the value"},
		{"x-a: &a {safety: normal}\nloop: *a\n", "loop.safety", "paranoid", "only a person can change"},
		{"a: [", "agent", "x", "pawl.yaml:"},
	} {
		out, err := Set([]byte(c[0]), c[1], c[2])
		if c[3] == "there" {
			if err != nil || !strings.Contains(string(out), `safety: "a\nb: c"`) {
				t.Errorf("%v\n%s", err, out)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), c[3]) {
			t.Errorf("%s = %q: %v\n%s", c[1], c[2], err, out)
		}
	}
}

// Whatever the file is, a change is exact or refused.
func FuzzSet(f *testing.F) {
	f.Add(edited, "loop.safety", "paranoid")
	f.Add("", "loop.safety", "normal")
	f.Add("loop:\n", "loop.safety", "normal")
	f.Add("agent: |\n  a\n", "agent", "b")
	f.Add("agent: 'it''s'\r\n", "agent", "b")
	f.Add("{agent: a}", "loop.safety", "b")
	f.Fuzz(func(t *testing.T, text, path, value string) {
		out, err := Set([]byte(text), path, value)
		if err != nil {
			return
		}
		n, err := parseYAML(&source{name: "x"}, out)
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		for _, key := range splitPath(path) {
			p, ok := n.getPair(key)
			if !ok {
				t.Fatalf("no %s in\n%s", path, out)
			}
			n = p.value
		}
	})
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
			if f.jsonDefault() == nil && f.isLeaf() && !f.optional && len(f.enum) == 0 {
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
