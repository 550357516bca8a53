package supervisor

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/pawl-dev/pawl/internal/do/sandbox"
)

// A login that a program renewed is taken back, also deep in its folder; one that leads the person's key to
// another address is not.
func TestRenewedLogin(t *testing.T) {
	t.Parallel()
	for made, want := range map[string]string{
		`{"key": "new", "at": "https://api.example/v1"}`: `{"key": "new", "at": "https://api.example/v1"}`,
		`{"key": "new"}`: `{"key": "new"}`,
		`{"key": "new", "at": "https://evil.example/v1"}`: `{"key": "old", "at": "https://api.example/v1"}`,
	} {
		own, scratch := t.TempDir(), t.TempDir()
		for path, text := range map[string]string{
			filepath.Join(own, "data", "login"):           `{"key": "old", "at": "https://api.example/v1"}`,
			filepath.Join(scratch, "up", "data", "login"): made,
		} {
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		old := filepath.Join(own, "data", "login")
		if info, err := os.Stat(old); err != nil || os.Chtimes(old, info.ModTime(), info.ModTime().Add(-1e9)) != nil {
			t.Fatal(err)
		}
		err := writeBack(sandbox.Over{To: own, Scratch: scratch, Back: []string{"data/login"}})
		data, rerr := os.ReadFile(old)
		if rerr != nil || string(data) != want {
			t.Errorf("%s leaves %s, %v, %v", made, data, err, rerr)
		}
	}
}
