package statedir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// A root is listed once pawl was used in it, until it is gone. What does not name
// its own state folder, or others can write, is not.
func TestRoots(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	env := []string{"XDG_STATE_HOME=" + filepath.Join(top, "state")}
	if got := Roots(env); len(got) != 0 {
		t.Fatalf("before pawl was used there are %q", got)
	}
	kept := func(name string) (root, dir string) {
		t.Helper()
		root = filepath.Join(top, name)
		dir = Of(root, env)
		for _, d := range []string{root, dir} {
			if err := os.MkdirAll(d, 0o700); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 {
			if err := KeepRoot(root, env, nil); err != nil {
				t.Fatal(err)
			}
		}
		return root, dir
	}
	a, _ := kept("a")
	b, _ := kept("b\n<b>\x1b[31m")
	gone, goneDir := kept("gone")
	if err := os.Remove(gone); err != nil {
		t.Fatal(err)
	}
	put := func(dir, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, rootFile), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{
		"copied": a, "empty": "", "relative": "relative", "long": string(make([]byte, 2*maxPath)), "dots": a + "/../a", "nul": a + "\x00",
	} {
		_, dir := kept(name)
		put(dir, text)
	}
	_, linked := kept("linked")
	_, open := kept("open")
	file, _ := kept("file")
	err := errors.Join(os.Remove(filepath.Join(linked, rootFile)), os.Symlink(filepath.Join(Of(a, env), rootFile), filepath.Join(linked, rootFile)),
		os.Chmod(open, 0o770), os.Remove(file), os.WriteFile(file, nil, 0o600), os.WriteFile(filepath.Join(Base(env), "root"), []byte(a), 0o600),
		os.Symlink(Of(a, env), filepath.Join(Base(env), "a-link")), os.Mkdir(LimitsDir(env), 0o700))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if got := Roots(env); !slices.Equal(got, []string{a, b}) {
			t.Errorf("got %q, want %q and %q", got, a, b)
		}
	}
	if _, err := os.Lstat(filepath.Join(goneDir, rootFile)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the root that is gone is not forgotten: %v", err)
	}
}
