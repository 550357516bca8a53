package files

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// Folders that cannot be written go (root can write them anyhow); what a link
// leads to stays.
func TestRemoveAll(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	dir, kept := filepath.Join(top, "dir"), filepath.Join(top, "kept")
	for _, path := range []string{filepath.Join(dir, "a", "b"), kept} {
		if err := os.MkdirAll(path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "a", "b", "file"), nil, 0o444); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(kept, filepath.Join(dir, "a", "link")); err != nil {
		t.Fatal(err)
	}
	for _, closed := range []string{filepath.Join(dir, "a", "b"), filepath.Join(dir, "a")} {
		if err := os.Chmod(closed, 0o500); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(kept, 0o500); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time there is none
		if err := RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder is still there: %v", err)
	}
	if info, err := os.Stat(kept); err != nil || info.Mode().Perm() != 0o500 {
		t.Errorf("what the link leads to is %v, %v", info, err)
	}
}
