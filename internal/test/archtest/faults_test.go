package archtest

import (
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"
)

// Each sentence of the table "What can go wrong" in docs/cluster.md has its tests in docs/design/cluster-faults.md,
// and these exist.
func TestEachFaultHasATest(t *testing.T) {
	t.Parallel()
	root := os.DirFS("../../..")
	read := func(name string) string {
		data, err := fs.ReadFile(root, name)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	tests := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\)`)
	err := fs.WalkDir(root, ".", func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && (e.Name() == "node_modules" || e.Name() == ".git"):
			return fs.SkipDir
		case strings.HasSuffix(name, "_test.go"):
			for _, m := range declared.FindAllStringSubmatch(read(name), -1) {
				tests[m[1]] = true
			}
		case strings.HasPrefix(name, "testdata/") && strings.HasSuffix(name, ".txt"):
			tests[name] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}

	listed, named := map[string]bool{}, regexp.MustCompile("`([^`]+)`")
	for _, row := range tableOf(t, read("docs/design/cluster-faults.md"), "| sentence | tests |") {
		listed[row[0]] = true
		found := named.FindAllStringSubmatch(row[1], -1)
		if len(found) == 0 && !strings.HasPrefix(row[0], "**") {
			t.Errorf("no test holds %q", row[0])
		}
		for _, m := range found {
			if !tests[m[1]] {
				t.Errorf("there is no test %s, which is to hold %q", m[1], row[0])
			}
		}
	}
	sentence, said := regexp.MustCompile(`[^.]+(?:\.[^ ][^.]*)*\.`), map[string]bool{}
	for _, row := range tableOf(t, read("docs/cluster.md"), "| what happens | what pawl does |") {
		said["**"+row[0]+"**"] = true
		for _, s := range sentence.FindAllString(row[1], -1) {
			said[strings.TrimSpace(s)] = true
		}
	}
	for s := range said {
		if !listed[s] {
			t.Errorf("docs/design/cluster-faults.md does not have %q", s)
		}
	}
	for s := range listed {
		if !said[s] {
			t.Errorf("docs/cluster.md does not say %q", s)
		}
	}
}

// tableOf returns the rows of two cells of the table below a heading.
func tableOf(t *testing.T, page, heading string) (rows [][2]string) {
	t.Helper()
	_, after, _ := strings.Cut(page, heading+"\n|---|---|\n")
	for line := range strings.Lines(after) {
		left, right, isRow := strings.Cut(strings.TrimPrefix(line, "| "), " |")
		if !isRow {
			break
		}
		rows = append(rows, [2]string{left, strings.Trim(right, " |\n")})
	}
	if len(rows) < 2 {
		t.Fatalf("there is no table %s", heading)
	}
	return rows
}
