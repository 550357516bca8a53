package merge

import (
	"os"
	"testing"
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

func landAndDie([]string) int { return 1 }
