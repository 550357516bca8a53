package files

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestReplace(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	for _, want := range []struct {
		text string
		mode os.FileMode
	}{{"one", 0o600}, {"two", 0o644}} {
		if err := Replace(path, []byte(want.text), want.mode, want.text == "two"); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		info, serr := os.Stat(path)
		if err != nil || serr != nil || string(got) != want.text || info.Mode().Perm() != want.mode {
			t.Errorf("%q with %v, %v, %v; want %q with %v", got, info.Mode(), err, serr, want.text, want.mode)
		}
	}
}

// What cannot be replaced stays, and nothing is left beside it.
func TestReplaceFails(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "folder")
	if err := os.MkdirAll(filepath.Join(path, "inside"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := Replace(path, []byte("x"), 0o600, false); err == nil {
		t.Error("a folder is replaced")
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("left %v, %v", left, err)
	}
}

func TestLock(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	held, err := Lock(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Lock(ctx, path); !errors.Is(err, context.Canceled) {
		t.Errorf("a lock that is held: %v", err)
	}
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := Lock(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
}

func TestSync(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	deep := filepath.Join(dir, "a", "b")
	if err := MkdirAll(deep, 0o700); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(deep, "f")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	want := []string{deep, filepath.Join(dir, "a"), dir}
	if got := Folders(file, dir); !slices.Equal(got, want) {
		t.Errorf("folders %q, not %q", got, want)
	}
	if err := Sync(append(want, file, filepath.Join(dir, "gone"))...); err != nil {
		t.Error(err)
	}
	if err := Sync(filepath.Join(file, "below")); err == nil {
		t.Error("what is no folder has something in it")
	}
}
