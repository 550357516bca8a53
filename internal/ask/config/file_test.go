package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/pawl-dev/pawl/internal/ask/config/statedir"
)

func TestWriteNew(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	path := filepath.Join(dir, statedir.FileName)
	if err := WriteNew(path, []byte("first")); err != nil {
		t.Fatal(err)
	}
	if err := WriteNew(path, []byte("second")); !errors.Is(err, fs.ErrExist) {
		t.Errorf("error = %v", err)
	}
	if data, err := os.ReadFile(path); err != nil || string(data) != "first" {
		t.Errorf("the file holds %q, %v", data, err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink("nowhere", link); err != nil {
		t.Fatal(err)
	}
	if err := WriteNew(link, nil); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a dangling link was written through: %v", err)
	}
	if err := WriteNew(filepath.Join(dir, "no", "folder"), nil); err == nil {
		t.Error("a file in a missing folder was written")
	}
}
