//go:build unix

package files

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func TestMend(t *testing.T) {
	dir := t.TempDir()
	pipe := func(name string) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	own := pipe("own")
	if Mend(dir) {
		t.Error("a pipe of another name was mended")
	}
	bad := []string{pipe("a/.gitignore"), pipe("b/.git/HEAD"), pipe(".gitattributes")}
	if !Mend(dir) {
		t.Error("nothing was mended")
	}
	for _, path := range bad {
		if _, err := os.Lstat(path); !os.IsNotExist(err) {
			t.Errorf("%s is still there: %v", path, err)
		}
	}
	if _, err := os.Lstat(own); err != nil {
		t.Error(err)
	}
}

// Who mends a tree without end stops when its reader is done.
func TestMendIsStopped(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, ".gitignore"), 0o600); err != nil {
		t.Fatal(err)
	}
	quit := make(chan struct{})
	close(quit)
	if mendUntil(dir, quit) {
		t.Error("it went on")
	}
}

func TestMendFoldersThatNobodyLists(t *testing.T) {
	dir := t.TempDir()
	hidden := filepath.Join(dir, "hidden", "below")
	if err := os.MkdirAll(hidden, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{hidden, filepath.Dir(hidden)} {
		if err := os.Chmod(path, 0o311); err != nil { //nolint:gosec // as an agent may
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = os.Chmod(filepath.Dir(hidden), 0o700) }) //nolint:gosec // to remove it
	if mended := Mend(dir); mended == (os.Getuid() == 0) {          // root lists every folder
		t.Errorf("mended: %t", mended)
	}
	if _, err := os.ReadDir(hidden); err != nil {
		t.Error(err)
	}
}
