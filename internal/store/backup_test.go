package store

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A database that is gone, empty or cut short while there is a copy is refused, with a
// command that puts the copy back; without a copy it is a new one.
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
			_, command, _ := strings.Cut(err.Error(), ": cp ")
			command, _, _ = strings.Cut("cp "+command, ";")
			if out, err := exec.Command("sh", "-c", command).CombinedOutput(); err != nil {
				t.Fatalf("%s: %v: %s", command, err, out)
			}
			if err := open(); err != nil {
				t.Errorf("put back: %v", err)
			}
		})
	}
}
