//go:build unix

package files

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// Each is what an agent may leave at a name that pawl reads, replaces, appends
// to or removes. What is outside stays as it is, and nothing waits.
func TestBelow(t *testing.T) {
	t.Parallel()
	plants := map[string]func(t *testing.T, top, name, outside string){
		"a link to a file": func(t *testing.T, _, name, outside string) { must(t, os.Symlink(outside, name)) },
		"a link above": func(t *testing.T, top, name, outside string) {
			must(t, os.RemoveAll(filepath.Dir(name)))
			must(t, os.Symlink(filepath.Dir(outside), filepath.Join(top, "in")))
		},
		"a hard link": func(t *testing.T, _, name, outside string) { must(t, os.Link(outside, name)) },
		"a pipe":      func(t *testing.T, _, name, _ string) { must(t, unix.Mkfifo(name, 0o600)) },
		"a folder":    func(t *testing.T, _, name, _ string) { must(t, os.Mkdir(name, 0o700)) },
		"a link to nothing": func(t *testing.T, _, name, outside string) {
			must(t, os.Symlink(outside+".new", name))
		},
	}
	for kind, plant := range plants {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			top, name := filepath.Join(dir, "top"), filepath.Join(dir, "top", "in", "f")
			outside := filepath.Join(dir, "out", "f")
			for _, d := range []string{filepath.Dir(name), filepath.Dir(outside)} {
				must(t, os.MkdirAll(d, 0o700))
			}
			must(t, os.WriteFile(outside, []byte("secret"), 0o600))
			plant(t, top, name, outside)
			data, err := ReadBelow(top, "in/f", 100)
			if (err == nil) != (kind == "a hard link") {
				t.Errorf("read %q, %v", data, err)
			}
			_ = AppendBelow(top, "in/f", []byte("one"), 100)
			_ = ReplaceBelow(top, "in/f", []byte("two"), 0o600, true)
			_ = RemoveBelow(top, "in/f")
			left, err := os.ReadDir(filepath.Dir(outside))
			if data, rerr := os.ReadFile(outside); err != nil || rerr != nil || len(left) != 1 || string(data) != "secret" {
				t.Errorf("outside are %v with %q, %v, %v", left, data, err, rerr)
			}
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A file is made with its folders, appended to, begun anew at its limit, replaced
// and removed.
func TestBelowWrites(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	has := func(want string) {
		t.Helper()
		data, err := ReadBelow(top, "a/b/f", 100)
		if err != nil || string(data) != want {
			t.Errorf("the file has %q, %v; want %q", data, err, want)
		}
	}
	for _, one := range []struct{ add, want string }{{"1", "1"}, {"2", "12"}, {"3", "123"}, {"4", "4"}} {
		must(t, AppendBelow(top, "a/b/f", []byte(one.add), 2))
		has(one.want)
	}
	must(t, ReplaceBelow(top, "a/b/f", []byte("x"), 0o640, false))
	has("x")
	info, err := os.Stat(filepath.Join(top, "a", "b", "f"))
	if err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("the mode is %v, %v", info.Mode(), err)
	}
	if _, err := ReadBelow(top, "a/b/f", 0); err == nil {
		t.Error("more than the limit was read")
	}
	must(t, RemoveBelow(top, "a/b/f"))
	must(t, RemoveBelow(top, "a/b/f"))
	if _, err := ReadBelow(top, "a/b/f", 9); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that does not exist: %v", err)
	}
	for _, name := range []string{"../f", "/f", "a/../../f", ""} {
		if err := ReplaceBelow(top, name, nil, 0o600, false); err == nil {
			t.Errorf("%q was written", name)
		}
	}
}

// A name counts as below the root through links above it, and no link below.
func TestBelowNames(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	top := filepath.Join(dir, "top")
	must(t, os.MkdirAll(filepath.Join(top, "in"), 0o700))
	must(t, os.Symlink(dir, filepath.Join(dir, "way")))
	for path, want := range map[string]string{
		top + "/in/f": "in/f", dir + "/way/top/in/../f": "f", dir + "/f": "", top: "", top + "er/f": "", "top/f": "",
	} {
		if name, ok := Below(top, path); name != want || ok != (want != "") {
			t.Errorf("%s is %q, %v; want %q", path, name, ok, want)
		}
	}
}
