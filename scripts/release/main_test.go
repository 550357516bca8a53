package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/ask/cli"
)

// What stands beside the program in an archive: a page for each command, completions for
// three shells, README and licence. The same files make the same archive.
func TestArchive(t *testing.T) {
	t.Parallel()
	when := time.Unix(1_700_000_000, 0)
	files, err := documents(cli.Root(), when)
	if err != nil {
		t.Fatal(err)
	}
	files["pawl"], files["pawl-cluster"] = []byte("the program"), []byte("the other")
	made, err := archive("pawl-v1-linux-amd64", files, when)
	if err != nil {
		t.Fatal(err)
	}
	again, err := archive("pawl-v1-linux-amd64", files, when)
	if err != nil || !bytes.Equal(made, again) {
		t.Errorf("the same files make another archive (%v)", err)
	}
	texts, modes := unpack(t, made)
	for name, want := range map[string]string{
		"pawl": "the program", "README.md": "# pawl", "LICENSE": "Apache License",
		"man/man1/pawl.1": `pawl\-run`, "man/man1/pawl-case-add.1": "the prd.json of a ralph loop",
		"completions/pawl.bash": "__start_pawl", "completions/_pawl": "#compdef pawl", "completions/pawl.fish": "complete -c pawl",
	} {
		if !strings.Contains(texts["pawl-v1-linux-amd64/"+name], want) {
			t.Errorf("%s has no %q", name, want)
		}
	}
	for _, program := range []string{"pawl", "pawl-cluster"} {
		if mode := modes["pawl-v1-linux-amd64/"+program]; mode != 0o755 {
			t.Errorf("%s has mode %o", program, mode)
		}
	}
}

func unpack(t *testing.T, data []byte) (texts map[string]string, modes map[string]int64) {
	t.Helper()
	zip, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	texts, modes = map[string]string{}, map[string]int64{}
	for r := tar.NewReader(zip); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return texts, modes
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		texts[h.Name], modes[h.Name] = string(text), h.Mode
	}
}

// This test is a program with parts, too.
func TestParts(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text, err := parts(self, "v1.2.0")
	if err != nil {
		t.Fatal(err)
	}
	var list struct {
		Format     string `json:"bomFormat"`
		Components []part `json:"components"`
	}
	if err := json.Unmarshal(text, &list); err != nil || list.Format != "CycloneDX" {
		t.Fatalf("%v: %s", err, text)
	}
	cobra := false
	for _, p := range list.Components {
		cobra = cobra || strings.HasPrefix(p.PURL, "pkg:golang/github.com/spf13/cobra@v1.")
	}
	if !cobra {
		t.Errorf("cobra is not in it: %s", text)
	}
}

func TestSums(t *testing.T) {
	t.Parallel()
	a, b := sha256.Sum256([]byte("1")), sha256.Sum256([]byte("2"))
	want := fmt.Sprintf("%x  a\n%x  b\n", a, b)
	if got := string(sums(map[string][]byte{"b": []byte("2"), "a": []byte("1")})); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
