package config

import (
	"slices"
	"testing"

	"github.com/pawl-dev/pawl/internal/ask/config/statedir"
)

// In braces a name with a colon is a text, too.
func TestNamesInBraces(t *testing.T) {
	t.Parallel()
	dir := write(t, tempDir(t), map[string]string{
		statedir.FileName: "procedures:\n  build: {observe: [a.md, \"b.md\"], orient: [path: a.md], " +
			"act: [ builtin:act/edit-and-test , builtin:act/edit-and-test], max_iterations: 3}\n",
		"a.md": "x", "b.md": "x",
	})
	c, err := Load(testOptions(dir))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, part := range c.Procedures["build"].Act {
		names = append(names, part.Path)
	}
	if got := c.Procedures["build"].Orient; len(got) != 1 || got[0].Name != "a.md" {
		t.Errorf("a pair in a list: %v", got)
	}
	if want := []string{"builtin:act/edit-and-test", "builtin:act/edit-and-test"}; !slices.Equal(names, want) {
		t.Errorf("got %q, want %q", names, want)
	}
}
