package store

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A database that is gone, empty or cut short while there is a copy is refused until the
// copy is put back; without a copy it is a new one.
func TestALostDatabase(t *testing.T) {
	t.Parallel()
	fileOnly(t)
	for name, lose := range map[string]func(string) error{
		"deleted": os.Remove,
		"emptied": func(path string) error { return os.Truncate(path, 0) },
		"cut":     func(path string) error { return os.Truncate(path, 20<<10) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "a folder", "pawl.db")
			open := func() error {
				s, err := Open(t.Context(), path)
				if err != nil {
					return err
				}
				return s.Close()
			}
			for range 2 { // a new one, and one that is copied
				if err := open(); err != nil {
					t.Fatal(err)
				}
			}
			if info, err := os.Stat(path + ".backup"); err != nil || info.Mode().Perm() != 0o600 {
				t.Fatalf("the copy: %v, %v", info, err)
			}
			if err := lose(path); err != nil {
				t.Fatal(err)
			}
			err := open()
			if !errors.Is(err, ErrDamaged) {
				t.Fatalf("opened: %v", err)
			}
			done, err := Restore(t.Context(), path)
			if err != nil || !strings.HasPrefix(done, "The database is the copy of ") {
				t.Fatalf("%q, %v", done, err)
			}
			kept, err := filepath.Glob(path + ".damaged-*[0-9]")
			if want := name != "deleted"; err != nil || len(kept) == 1 != want || strings.Contains(done, "is kept as") != want {
				t.Errorf("%q; kept: %v, %v", done, kept, err)
			}
			if err := open(); err != nil {
				t.Errorf("put back: %v", err)
			}
		})
	}
}

// Nothing is put back below who has the database open, from no copy, and from none that
// is sound.
func TestRestoreRefuses(t *testing.T) {
	t.Parallel()
	fileOnly(t)
	path := filepath.Join(t.TempDir(), "pawl.db")
	refused := func(want string) {
		t.Helper()
		before, _ := os.ReadFile(path)
		_, err := Restore(t.Context(), path)
		after, rerr := os.ReadFile(path)
		if err == nil || !strings.Contains(err.Error(), want) || rerr != nil || !bytes.Equal(before, after) {
			t.Errorf("%v; the database is as it was: %v", err, bytes.Equal(before, after))
		}
	}
	s, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	refused("there is no copy")
	s.BackUp(t.Context())
	refused("stop every pawl")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path+".backup", []byte("no database"), 0o600); err != nil {
		t.Fatal(err)
	}
	refused("cannot read the copy")
}
