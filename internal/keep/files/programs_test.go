package files

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A folder of programs counts as part of a tree however its path says so.
func TestProgramPath(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"tree/bin", "tools/bin", "tree-of-others"} {
		if err := os.MkdirAll(at(name), 0o755); err != nil { //nolint:gosec // a test's
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{
		"tools/in": at("tree/bin"), "tools/up": "../tree", "other": at("tree"), "tools/none": "../tree/none/yet",
		"tools/round": "round", "tree/out": at("tools"), "tools/through": at("tree/out"), "tools/back": "in/../../tools/bin",
	} {
		if err := os.Symlink(to, at(link)); err != nil {
			t.Fatal(err)
		}
	}
	for folder, kept := range map[string]bool{
		"":                      false,
		".":                     false,
		"node_modules/.bin":     false,
		at("tree"):              false,
		at("tree/bin"):          false,
		at("tree/bin/"):         false,
		at("tree/none/yet"):     false,
		at("tools/../tree/bin"): false,
		at("tools/in"):          false,
		at("tools/up/bin"):      false,
		at("tools/up/none"):     false,
		at("tools/none"):        false,
		at("other/bin"):         false,
		at("tree/out/bin"):      false, // the link is the agent's to change
		at("tools/through/bin"): false,
		at("tools/back"):        false,
		at("tools/bin"):         true,
		at("tools/not/there"):   true,
		at("tools/round"):       true,
		at("tree-of-others"):    true,
		"/":                     true,
	} {
		path := strings.Join([]string{at("tools/bin"), folder, "/usr/bin"}, string(filepath.ListSeparator))
		got, left := ProgramPath(path, at("none"), at("other"))
		want := path
		if !kept {
			want = at("tools/bin") + string(filepath.ListSeparator) + "/usr/bin"
		}
		if got != want || (len(left) == 0) != kept {
			t.Errorf("of %q there is %q, without %q", path, got, left)
		}
	}
	if got, _ := ProgramPath("/usr/bin:bin"); got != "/usr/bin" {
		t.Errorf("without trees there is %q", got)
	}
}
