package survey

import (
	"strings"
	"testing"
)

// A test gate that could only be red is a warning, and the note says until when.
func TestUntested(t *testing.T) {
	t.Parallel()
	const script = `{"scripts":{"test":"node--test"}}`
	for _, tt := range []struct {
		name, files string // "path=text" words
		required    bool
	}{
		{"go", "go.mod=", false},
		{"go with a test", "go.mod= a/b_test.go=", true},
		{"go with a package of tests", "go.mod= a/testing.go= attest.go=", false},
		{"a vendored test", "go.mod= vendor/a/b_test.go= node_modules/a/test/b.js=", false},
		{"rust", "Cargo.toml= src/main.rs=fn_main()", false},
		{"rust with a test inside", "Cargo.toml= src/main.rs=#[cfg(test)]", true},
		{"rust with a runtime's test", "Cargo.toml= src/lib.rs=#[tokio::test]", true},
		{"python", "pytest.ini= a.py=", false},
		{"python with a test", "pytest.ini= pkg/test_a.py=", true},
		{"python with tests elsewhere", "pytest.ini= pkg/a_test.py=", true},
		{"node", "package.json=" + script, false},
		{"node with a test", "package.json=" + script + " a.test.js=", true},
		{"node with a folder", "package.json=" + script + " __tests__/a.js=", true},
		{"a script that runs no tests", `package.json={"scripts":{"test":"eslint_."}}`, true},
		{"make", "Makefile=test:;./check go.mod=", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			files := map[string]string{}
			for _, word := range strings.Fields(strings.ReplaceAll(tt.files, ": ", ":")) {
				name, text, _ := strings.Cut(word, "=")
				files[name] = strings.ReplaceAll(text, "--test", " --test")
			}
			p, err := Of(write(t, tempDir(t), files), nil, onPath())
			if err != nil {
				t.Fatal(err)
			}
			n := 0
			for _, g := range p.Gates {
				if g.Kind == "test" {
					n++
					if g.Required != tt.required {
						t.Errorf("%s is required: %v", g.Command, g.Required)
					}
				}
			}
			if n != 1 || strings.Contains(strings.Join(p.Notes, " "), "No test was found") == tt.required {
				t.Errorf("%d test gates, notes %q", n, p.Notes)
			}
		})
	}
}
