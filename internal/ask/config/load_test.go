package config

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/ask/config/statedir"
)

var update = flag.Bool("update", false, "write the expected files anew")

// write makes files below dir and returns dir.
func write(t *testing.T, dir string, files map[string]string) string {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// tempDir is free of symbolic links, as a root is.
func tempDir(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// testOptions have built-ins of every sort and no user-wide file.
func testOptions(dir string) Options {
	return Options{
		Dir: dir,
		Env: []string{"HOME=" + filepath.Join(dir, "nobody")},
		Builtin: func(name string) (string, bool) {
			return "# " + name, strings.HasPrefix(name, "act/edit-and-test") || strings.HasPrefix(name, "observe/")
		},
		BuiltinNames: []string{"act/edit-and-test", "observe/repository"},
		CheckTemplate: func(name, text string) error {
			if strings.Contains(text, "{{.Broken") {
				return fmt.Errorf("the template %s does not parse", name)
			}
			return nil
		},
		Agents:     []string{"claude", "codex", "gemini"},
		Strategies: []string{"default", "diagnose"},
	}
}

// golden compares got with the file, or writes it with -update.
func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs.\ngot:\n%s\nwant:\n%s", path, got, want)
	}
}

// Every file in testdata/bad is refused, with the message beside it.
func TestBadFiles(t *testing.T) {
	t.Parallel()
	inputs, err := filepath.Glob("testdata/bad/*.yaml")
	if err != nil || len(inputs) < 30 {
		t.Fatalf("%d inputs, %v", len(inputs), err)
	}
	for _, input := range inputs {
		t.Run(filepath.Base(input), func(t *testing.T) {
			t.Parallel()
			data, err := os.ReadFile(input)
			if err != nil {
				t.Fatal(err)
			}
			dir := write(t, tempDir(t), map[string]string{statedir.FileName: string(data), "a.md": "x", "prompts/other.md": ""})
			_, err = Load(testOptions(dir))
			if err == nil {
				t.Fatal("accepted")
			}
			checkPlaces(t, err, string(data))
			text := strings.ReplaceAll(err.Error(), dir, "ROOT") + "\n"
			golden(t, strings.TrimSuffix(input, ".yaml")+".txt", text)
		})
	}
}

// checkPlaces fails if an error is none of ours or points outside of the text.
func checkPlaces(t *testing.T, err error, text string) {
	t.Helper()
	lines := strings.Split(text, "\n")
	list := asErrors(err, "?")
	if len(list) == 0 || len(list) > maxErrors {
		t.Errorf("%d errors", len(list))
	}
	for _, e := range list {
		if e.File != statedir.FileName || e.Line < 1 || e.Line > len(lines) || e.Column < 1 || e.Column > len([]rune(lines[e.Line-1]))+1 {
			t.Errorf("no such place: %s:%d:%d (%s)", e.File, e.Line, e.Column, e.Message)
		}
	}
}

func TestErrorCanBeFound(t *testing.T) {
	t.Parallel()
	dir := write(t, tempDir(t), map[string]string{statedir.FileName: "lop: {}\nagnet: x\n"})
	_, err := Load(testOptions(dir))
	var one *Error
	if !errors.As(err, &one) || one.Line != 1 || one.Suggestion != "loop" {
		t.Errorf("first error = %+v", one)
	}
	var all Errors
	if !errors.As(err, &all) || len(all) != 2 {
		t.Errorf("all errors = %v", err)
	}
}

func TestUnreadableFiles(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		make func(path string) error
		want string
	}{
		{"folder", func(p string) error { return os.Mkdir(p, 0o755) }, "pawl.yaml: cannot read the configuration: it is a folder, not a file"},
		{"dangling", func(p string) error { return os.Symlink("nowhere", p) },
			"pawl.yaml: cannot read the configuration: it is a symbolic link, and pawl follows none in a work tree"},
		{"too large", func(p string) error { return os.WriteFile(p, make([]byte, 10<<20), 0o644) },
			"pawl.yaml: cannot read the configuration: it is larger than 1 MiB (10485760 bytes)"},
		{"loop", func(p string) error { return os.Symlink(statedir.FileName, p) },
			"pawl.yaml: cannot read the configuration: it is a symbolic link, and pawl follows none in a work tree"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := tempDir(t)
			if err := tt.make(filepath.Join(dir, statedir.FileName)); err != nil {
				t.Fatal(err)
			}
			_, err := Load(testOptions(dir))
			if got := errorText(err); got != tt.want {
				t.Errorf("error = %q, want %q", got, tt.want)
			}
		})
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestEmptyFiles(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "\n", "# only a comment\n", "---\n", "\xef\xbb\xbf", "{}\n", "null\n", "loop:\n", "# a\r\n"} {
		dir := write(t, tempDir(t), map[string]string{statedir.FileName: text})
		c, err := Load(testOptions(dir))
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if c.Loop.FailureThreshold != 3 || c.File == "" {
			t.Errorf("%q: threshold %d, file %q", text, c.Loop.FailureThreshold, c.File)
		}
	}
}

func TestNamedFile(t *testing.T) {
	t.Parallel()
	dir := write(t, tempDir(t), map[string]string{statedir.FileName: "agent: codex\n", "other/conf.yaml": "agent: gemini\n"})
	o := testOptions(dir)
	o.File = "other/conf.yaml"
	c, err := Load(o)
	if err != nil {
		t.Fatal(err)
	}
	if c.Agent != "gemini" || c.Root != dir || c.File != filepath.Join(dir, "other", "conf.yaml") {
		t.Errorf("agent %q, root %q, file %q", c.Agent, c.Root, c.File)
	}
	o.File = "missing.yaml"
	if _, err = Load(o); errorText(err) != "missing.yaml: cannot read the configuration: no such file or directory" {
		t.Errorf("error = %v", err)
	}
}

// Nesting that would exhaust the stack of a recursive reader, and aliases
// that would exhaust memory, are refused.
func TestHostileFiles(t *testing.T) {
	t.Parallel()
	var bomb strings.Builder
	bomb.WriteString("x-0: &a0 [x, x, x, x, x, x, x, x, x, x]\n")
	for i := 1; i < 12; i++ {
		fmt.Fprintf(&bomb, "x-%d: &a%d [%s*a%d]\n", i, i, strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 9), i-1)
	}
	var indented strings.Builder
	for i := range 300 {
		indented.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	tests := map[string]string{
		"brackets":      strings.Repeat("[", 100_000),
		"braces":        "a: " + strings.Repeat("{a: ", 40_000),
		"dashes":        strings.Repeat("- ", 80_000),
		"question":      strings.Repeat("? ", 80_000),
		"tags":          strings.Repeat("!!str ", 30_000),
		"aliases":       bomb.String(),
		"indentation":   indented.String(),
		"self anchor":   "a: &a [*a]",
		"anchor no map": "&a",
		"many values":   "x-a: [" + strings.Repeat("1, ", 30_000) + "1]",
	}
	for name, text := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := write(t, tempDir(t), map[string]string{statedir.FileName: text})
			_, err := Load(testOptions(dir))
			if err == nil && name != "anchor no map" {
				t.Fatal("accepted")
			}
			if err != nil && len(err.Error()) > 20_000 {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
		})
	}
}
