package failure

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// What a CI system puts before each line, and says at the end, changes nothing of what went wrong.
func TestWrappedByCI(t *testing.T) {
	t.Parallel()
	for name, wrap := range map[string]struct{ before, after, end string }{
		"GitHub":         {"2026-03-04T10:00:%02d.4691618Z ", "", "##[error]Process completed with exit code 1."},
		"gh run view":    {"build\tRun tests\t2026-03-04T10:00:%02d.4691618Z ", "", "##[error]Process completed with exit code 1."},
		"Azure":          {"2026-03-04T10:00:%02d.4691618Z ", "", "##[error]Bash exited with code '1'."},
		"GitLab":         {"2026-03-04T10:00:%02d.469161Z 00O ", "", "ERROR: Job failed: exit code 1"},
		"Jenkins":        {"[2026-03-04T10:00:%02d.469Z] ", "[Pipeline] }\n[Pipeline] // stage\n[Pipeline] End of Pipeline\n", "Finished: FAILURE"},
		"Jenkins' clock": {"10:00:%02d  ", "", "Build step 'Execute shell' marked build as failure"},
		"TeamCity":       {"[10:00:%02d]W:\t [Step 1/2] ", "", "Process exited with code 1"},
		"BuildKit":       {"#12 0.1%02d ", "", "ERROR: process \"/bin/sh -c make test\" did not complete successfully: exit code: 1"},
		"compose":        {"app-1  | ", "app-1 exited with code 1\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for i, o := range readFreshLines[freshOutput](t, "loads.jsonl") {
				if i%3 != len(name)%3 { // another part of them in each form
					continue
				}
				n := 0
				line := func(l string) string {
					n++
					if strings.Contains(wrap.before, "%") {
						return fmt.Sprintf(wrap.before, n%60) + l + "\n"
					}
					return wrap.before + l + "\n"
				}
				plain, out := Analyse(o.evidence()), ""
				for l := range strings.SplitSeq(strings.TrimRight(o.Output, "\n"), "\n") {
					out += line(l)
				}
				if wrap.end != "" {
					out += line(wrap.end)
				}
				o.Output = out + wrap.after
				got := Analyse(o.evidence())
				if got.Class != plain.Class || !o.names(got.Summary) && o.names(plain.Summary) {
					t.Errorf("%s: %s %q, without it %s %q", o.ID, got.Class, got.Summary, plain.Class, plain.Summary)
				}
				for _, p := range o.Places {
					if points(plain.Items, p) && !points(got.Items, p) {
						t.Errorf("%s: no item at %s: %v", o.ID, p, got.Items)
					}
				}
			}
		})
	}
}

// TestHintsAreNoCause: a list of hints fails nothing, whatever its lines say.
func TestHintsAreNoCause(t *testing.T) {
	t.Parallel()
	a := Analyse(Evidence{Source: "gate", Name: "unused", ExitCode: 1, Output: "Unused files (1)\nsrc/orphan.js\n" +
		"Unused dependencies (1)\nleft-pad  package.json:14:6\nUnused exports (1)\nneverUsed  src/b.js:1:76\n" +
		"Configuration hints (2)\n./dist/index.js   package.json  Package entry file not found\n" +
		"./dist/index.mjs  package.json  Package entry file not found\n"})
	orphan := slices.ContainsFunc(a.Items, func(i Item) bool { return i.File == "src/orphan.js" })
	if strings.Contains(a.Summary, "entry file") || !orphan {
		t.Errorf("%q: %+v", a.Summary, a.Items)
	}
}
