package gate

import (
	"slices"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/decide/failure"
)

func TestTampered(t *testing.T) {
	t.Parallel()
	rules := Protect{Patterns: []string{"**/*_test.go", ".github/**"}}
	open := Protect{Patterns: rules.Patterns, Allow: []string{"a_test.go"}}
	strict := Protect{Patterns: rules.Patterns, New: true}
	for _, c := range []struct {
		name    string
		change  Change
		rules   Protect
		refused string
	}{
		{"changed", Change{Path: "x/a_test.go", Status: 'M'}, rules, "x/a_test.go"},
		{"deleted", Change{Path: "a_test.go", Status: 'D'}, rules, "a_test.go"},
		{"made a link", Change{Path: "a_test.go", Status: 'T'}, rules, "a_test.go"},
		{"new", Change{Path: "b_test.go", Status: 'A'}, rules, ""},
		{"new, but refused", Change{Path: "b_test.go", Status: 'A'}, strict, "b_test.go"},
		{"renamed away", Change{Path: "old.txt", From: "a_test.go", Status: 'R'}, rules, "a_test.go"},
		{"renamed to", Change{Path: "a_test.go", From: "new.txt", Status: 'R'}, rules, "a_test.go"},
		{"renamed within", Change{Path: "b_test.go", From: "a_test.go", Status: 'R'}, rules, "a_test.go b_test.go"},
		{"not protected", Change{Path: "a.go", Status: 'M'}, rules, ""},
		{"lifted", Change{Path: "a_test.go", Status: 'M'}, open, ""},
		{"another than the lifted", Change{Path: "b_test.go", Status: 'M'}, open, "b_test.go"},
		{"workflow", Change{Path: ".github/workflows/ci.yml", Status: 'M'}, rules, ".github/workflows/ci.yml"},
		{"the configuration", Change{Path: "pawl.yaml", Status: 'M'}, Protect{}, "pawl.yaml"},
		{"a new configuration", Change{Path: "pawl.yaml", Status: 'A'}, Protect{}, "pawl.yaml"},
		{"a new configuration below", Change{Path: "x/pawl.yaml", Status: 'A'}, Protect{}, "x/pawl.yaml"},
		{"what makes a folder a repository", Change{Path: "x/HEAD", Status: 'A'}, Protect{}, "x/HEAD"},
		{"the same, lifted", Change{Path: "x/HEAD", Status: 'A'}, Protect{Allow: []string{"x/HEAD"}}, ""},
		{"a fragment", Change{Path: "p/act.md", Status: 'M'}, Protect{Files: []string{"p/act.md"}}, "p/act.md"},
		{"a fragment under a wildcard", Change{Path: "p/act.md", Status: 'D'},
			Protect{Files: []string{"p/act.md"}, Allow: []string{"p/**"}}, "p/act.md"},
		{"a fragment, lifted by name", Change{Path: "p/act.md", Status: 'M'},
			Protect{Files: []string{"p/act.md"}, Allow: []string{"p/act.md"}}, ""},
		{"the configuration under a wildcard", Change{Path: "pawl.yaml", Status: 'M'}, Protect{Allow: []string{"**"}}, "pawl.yaml"},
		{"the configuration, lifted by name", Change{Path: "pawl.yaml", Status: 'M'}, Protect{Allow: []string{"pawl.yaml"}}, ""},
	} {
		var got []string
		for _, v := range Tampered([]Change{c.change}, c.rules) {
			got = append(got, v.Path)
			if v.Why == "" {
				t.Errorf("%s: no reason for %s", c.name, v.Path)
			}
		}
		if s := strings.Join(got, " "); s != c.refused {
			t.Errorf("%s: refused %q, want %q", c.name, s, c.refused)
		}
	}
}

func TestTamperingFailure(t *testing.T) {
	t.Parallel()
	a := TamperingFailure(Tampered([]Change{{Path: "a_test.go", Status: 'D'}}, Protect{Patterns: []string{"*_test.go"}}))
	if a.Class != failure.Tampering || a.Kind != failure.Work || a.Transient || a.Fingerprint == "" {
		t.Errorf("%+v", a)
	}
	want := `a_test.go: it was deleted, but it is protected by "*_test.go". Restore it.`
	if len(a.Items) != 1 || a.Items[0].Message != want || a.Items[0].File != "a_test.go" {
		t.Errorf("items %+v, want %q", a.Items, want)
	}
}

func TestMatch(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ pattern, fits, not string }{
		{"**/*_test.go", "a_test.go x/a_test.go x/y/a_test.go", "a.go a_test.gox x/A_TEST.GO"},
		{".github/**", ".github/a .github/a/b", "github/a x/.github/a"},
		{"a/{b,c}/*", "a/b/x a/c/y", "a/d/x a/b a/b/x/y"},
		{"a/**/z", "a/z a/b/z a/b/c/z", "z a/b/zz b/a/z"},
		{"**", "a a/b", ""},
		{"**/a/**/b", "a/b x/a/y/b a/a/b/b", "a x/b"},
		{"[a-c]?[!0-9].txt", "abc.txt b__.txt", "dbc.txt ab1.txt"},
		{`[\]a].x`, "].x a.x", "b.x"},
		{`\*.go`, "*.go", "a.go"},
		{"docs/", "docs/a docs/a/b docs", "docs2 a/docs"},
		{"/go.mod", "go.mod", "x/go.mod go.mod2"},
		{"*.{yml,ya{m,}l}", "a.yml a.yaml a.yal", "a.yxl"},
		{"é?", "éa éé", "ea é"},
		{"*a*b*", "ab xaxbx", "ba"},
	} {
		if err := CheckPattern(c.pattern); err != nil {
			t.Errorf("%q: %v", c.pattern, err)
		}
		for _, p := range strings.Fields(c.fits) {
			if !Match(c.pattern, p) {
				t.Errorf("%q does not match %q", c.pattern, p)
			}
		}
		for _, p := range strings.Fields(c.not) {
			if Match(c.pattern, p) {
				t.Errorf("%q matches %q", c.pattern, p)
			}
		}
	}
}

// A new link in the place of a folder on the way to protected files makes new ones.
func TestLinksToProtected(t *testing.T) {
	t.Parallel()
	rules := Protect{Patterns: []string{".github/workflows/**", "packages/*/tests/**", "**/*_test.go"}, New: true}
	for _, name := range []string{".github", ".GitHub", "packages/a/tests", "packages", ".github/workflows"} {
		if got := Tampered([]Change{{Path: name, Status: 'A', Link: true}}, rules); len(got) != 1 {
			t.Errorf("the link %s: %v", name, got)
		}
	}
	if got := Tampered([]Change{{Path: ".github", Status: 'A'}, {Path: "docs", Status: 'A', Link: true}}, rules); len(got) > 0 {
		t.Errorf("%v", got)
	}
	loose := Protect{Patterns: rules.Patterns}
	allowed := Protect{Patterns: rules.Patterns, New: true, Allow: []string{".github"}}
	for _, rules := range []Protect{loose, allowed} {
		if got := Tampered([]Change{{Path: ".github", Status: 'A', Link: true}}, rules); len(got) > 0 {
			t.Errorf("%v", got)
		}
	}
}

func TestCheckPattern(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"", "/", "[a", "a/{b", `a\`, strings.Repeat("{a,b}", 20), strings.Repeat("a", 2000), "\xff"} {
		if CheckPattern(bad) == nil {
			t.Errorf("%q is accepted", bad)
		}
		if Match(bad, "a") {
			t.Errorf("%q, which is refused, matches", bad)
		}
	}
}

func FuzzMatch(f *testing.F) {
	for _, s := range [][2]string{{"**/*_test.go", "a/b_test.go"}, {"a/{b,c}/*", "a/b/c"}, {"[!a-z]*", "1"}, {strings.Repeat("*a", 100), strings.Repeat("a", 300)}, {"{{,},}", ""}, {"[]", "]"}, {"**/**/**/x", "a/b/c/d/e/f"}} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, pattern, path string) {
		got := Match(pattern, path)
		if got && CheckPattern(pattern) != nil {
			t.Errorf("%q is refused and matches %q", pattern, path)
		}
		if path != "" && !strings.ContainsAny(path, `*?[]{}\,`) && CheckPattern(path) == nil && !strings.HasPrefix(path, "/") && !strings.HasPrefix(path, "./") && !strings.HasSuffix(path, "/") && !Match(path, path) {
			t.Errorf("%q does not match itself", path)
		}
	})
}

func TestCovers(t *testing.T) {
	t.Parallel()
	names := []string{"a.go", "a_test.go", "open_test.go", "pawl.yaml", "x/b_test.go"}
	rules := Protect{Patterns: []string{"**/*_test.go"}, Allow: []string{"open_test.go"}}
	if got := strings.Join(rules.Covers("/w", names), " "); got != "/w/a_test.go /w/pawl.yaml /w/x/b_test.go" {
		t.Errorf("covered are %s", got)
	}
	if got := (Protect{}).Covers("/w", names); len(got) > 0 {
		t.Errorf("without patterns covered are %q", got)
	}
	if got := rules.Covers("/w", slices.Repeat(names, maxCovered)); len(got) != maxCovered {
		t.Errorf("%d files are covered", len(got))
	}
}
