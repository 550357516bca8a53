package merge

import (
	"os"
	"os/exec"
	"testing"
	"time"
)

func readFileErr(path string) ([]byte, error) { return os.ReadFile(path) }

func readFile(t testing.TB, path string) []byte {
	t.Helper()
	data, err := readFileErr(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func try(dir string, args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func time0() time.Time { return time.Date(2026, 2, 6, 10, 0, 0, 0, time.UTC) }
