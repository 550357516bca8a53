package statefile

import (
	"os"
	"path/filepath"
	"testing"
)

// A link in the place of the folder has nothing outside of the tree renamed.
func TestKeepAsideThroughNoLink(t *testing.T) {
	t.Parallel()
	root, other := t.TempDir(), t.TempDir()
	path := Path(root, "build")
	outside := filepath.Join(other, filepath.Base(path))
	err := os.WriteFile(outside, []byte("{"), 0o600)
	if err == nil {
		err = os.Mkdir(filepath.Join(root, ".pawl"), 0o700)
	}
	if err == nil {
		err = os.Symlink(other, filepath.Dir(path))
	}
	if err != nil {
		t.Fatal(err)
	}
	if to, err := KeepAside(path); err == nil {
		t.Errorf("it was renamed to %s", to)
	}
	if _, err := os.Stat(outside); err != nil {
		t.Error(err)
	}
}
