package web

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// docs/openapi.json is what the code describes. After a change that is meant:
// go test ./internal/ask/web -run TestDescription -rewrite
func TestDescription(t *testing.T) {
	t.Parallel()
	data, err := newRig(t).s.Description()
	if err != nil {
		t.Fatal(err)
	}
	var indented bytes.Buffer
	if err := json.Indent(&indented, data, "", "  "); err != nil {
		t.Fatal(err)
	}
	indented.WriteByte('\n')
	path := filepath.Join("..", "..", "..", "docs", "openapi.json")
	if *rewrite {
		if err := os.WriteFile(path, indented.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(kept, indented.Bytes()) {
		t.Errorf("docs/openapi.json is not what the code describes (%v); write it anew with -rewrite", err)
	}
	for _, odd := range []string{"$schema", "stoplight"} {
		if strings.Contains(indented.String(), odd) {
			t.Errorf("the description has %q", odd)
		}
	}
}
