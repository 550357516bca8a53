// Package transcript tells a decider as stories. A file in testdata is a row of
// blocks: a line is something that happens, and below a line of four dashes
// stands what the decider made of it. Lines that begin with # are for the reader.
//
// Playing a file writes it anew from its lines; a test fails where the result is
// another text than the file. It decides nothing: each package that has
// transcripts reads its own lines, and says in its test which there are.
package transcript

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false,
	"write the transcripts anew; commit only changes that you understand and want")

// Run plays each file of testdata as a test of its own. begin makes the decider
// that one file plays against, as a function that takes one line and returns the
// text that belongs below it, ending in a newline.
func Run(t *testing.T, begin func(t *testing.T) func(line string) string) {
	t.Helper()
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := play(string(data), begin(t))
			if got == string(data) {
				return
			}
			if *rewrite {
				if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
				return
			}
			t.Errorf("%s is not what is decided; run with -rewrite and look at the difference.\n%s\nDecided:\n%s", file,
				firstDifference(string(data), got), got)
		})
	}
}

// Arguments reads words of the form key=value; a word without = is a key alone.
func Arguments(words []string) map[string]string {
	args := map[string]string{}
	for _, w := range words {
		k, v, _ := strings.Cut(w, "=")
		args[k] = v
	}
	return args
}

func play(text string, decide func(line string) string) string {
	var out strings.Builder
	skip := false
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
			skip = false
			out.WriteString(line + "\n")
		case line == "----":
			skip = true
		case !skip:
			out.WriteString(line + "\n----\n" + decide(line))
		}
	}
	return out.String()
}

func firstDifference(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range g {
		if i >= len(w) || w[i] != g[i] {
			old := ""
			if i < len(w) {
				old = w[i]
			}
			return fmt.Sprintf("line %d\n  file:    %s\n  decided: %s", i+1, old, g[i])
		}
	}
	return "the file goes on after the last line that was decided"
}
