package outputs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const smallPNG = "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"

// Pictures and texts are kept with their folders; what is anything else is named and left.
func TestEvidenceIsKept(t *testing.T) {
	t.Parallel()
	from, to := filepath.Join(t.TempDir(), "gate-1"), filepath.Join(t.TempDir(), "to")
	secret := filepath.Join(t.TempDir(), "secret.txt")
	for name, text := range map[string]string{
		"shot.png": smallPNG, "pages/report.html": "<b>it works</b>", "a.sh": "rm -rf /", "fake.png": "<script>",
		"text.txt": "\xff\xfe", "pages.report.html": "another", "big.log": strings.Repeat("x", MaxEvidenceBytes+1), "new\nline.txt": "x",
	} {
		writeFile(t, filepath.Join(from, name), text)
	}
	writeFile(t, secret, "key")
	if err := os.Symlink(secret, filepath.Join(from, "link.txt")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Dir(secret), filepath.Join(from, "folder")); err != nil {
		t.Fatal(err)
	}
	kept, left := KeepEvidence(from, to, "tests")
	var names []string
	for _, e := range kept {
		names = append(names, e.File)
	}
	if strings.Join(names, " ") != "gate-1.pages.report.html gate-1.shot.png" || len(left) != 8 {
		t.Errorf("kept %v and left %q", names, left)
	}
	if data, err := os.ReadFile(filepath.Join(to, "gate-1.shot.png")); err != nil || string(data) != smallPNG {
		t.Errorf("the picture is %q (%v)", data, err)
	}
	if _, err := os.Stat(from); !os.IsNotExist(err) {
		t.Errorf("what was left is still there: %v", err)
	}
	if kept, left := KeepEvidence(from, to, "tests"); kept != nil || left != nil {
		t.Errorf("of nothing it kept %v and left %v", kept, left)
	}
}

// However many files there are, a few are kept.
func TestEvidenceIsBounded(t *testing.T) {
	t.Parallel()
	from, to := filepath.Join(t.TempDir(), "gate-1"), filepath.Join(t.TempDir(), "to")
	for n := range 3 * maxEvidenceNames {
		writeFile(t, filepath.Join(from, strings.Repeat("d/", n%5), strings.Repeat("a", 1+n/100)+strings.Repeat("b", n%100)+".txt"), "x")
	}
	kept, left := KeepEvidence(from, to, "tests")
	if len(kept) != MaxEvidence || len(left) != 1 {
		t.Errorf("kept %d, and left %q", len(kept), left)
	}
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
