package control_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/decide/control"
)

// The reviews in testdata/reviews are written as people, services and agents write them. Above the
// line "=====" stands what must come of a review, one finding a line: its severity, then its text.
func TestReviews(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("testdata/reviews/*.md")
	if err != nil || len(paths) < 20 {
		t.Fatalf("%d reviews: %v", len(paths), err)
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		want, text, ok := strings.Cut(string(data), "=====\n")
		if !ok {
			t.Fatalf("%s has no line =====", path)
		}
		var got strings.Builder
		for _, f := range control.FromReview(text) {
			got.WriteString(string(f.Severity) + " " + f.String() + "\n")
		}
		if got.String() != want {
			t.Errorf("%s:\n got %s\nwant %s", filepath.Base(path), got.String(), want)
		}
	}
}
