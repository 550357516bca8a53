package config

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/ask/config/statedir"
)

// Whatever a file holds, reading it does not panic, and each fault has a
// place in the text. What is read well reads the same twice.
func FuzzLoad(f *testing.F) {
	inputs, err := filepath.Glob("testdata/bad/*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, input := range append(inputs, "testdata/example.yaml") {
		data, err := os.ReadFile(input)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	for _, s := range []string{"", "a: &a *a", "? ? ?", "- - -", "agent: !!str 5", "loop: {<<: [{lease: 1s}, {lease: 2s}]}", "\xff", "a: |\n\t b"} {
		f.Add([]byte(s))
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 64<<10 {
			return
		}
		first, err := loadBytes(dir, data)
		if err != nil {
			checkFuzzed(t, err, data)
			return
		}
		second, err := loadBytes(dir, data)
		if err != nil || !reflect.DeepEqual(first.Entries(), second.Entries()) {
			t.Errorf("a second reading differs: %v", err)
		}
	})
}

// loadBytes does what Load does with a project file that holds data.
func loadBytes(dir string, data []byte) (*Config, error) {
	src := &source{layer: project, name: statedir.FileName, dir: dir}
	l := newLoader(testOptions(dir), dir, dir)
	n, err := parseYAML(src, data)
	if err != nil {
		return nil, err
	}
	l.addLayer(n)
	return l.finishConfig()
}

func checkFuzzed(t *testing.T, err error, data []byte) {
	t.Helper()
	text := strings.ReplaceAll(strings.TrimPrefix(string(data), "\xef\xbb\xbf"), "\r\n", "\n")
	lines := strings.Split(text, "\n")
	for _, e := range asErrors(err, "?") {
		if e.File != statedir.FileName || e.Message == "" {
			t.Errorf("no fault of the file: %+v", e)
		}
		if e.Line == 0 && strings.Contains(e.Message, "the parser failed") {
			continue
		}
		if e.Line < 1 || e.Line > len(lines) || e.Column < 1 || e.Column > len([]rune(lines[e.Line-1]))+1 {
			t.Errorf("no such place: %d:%d in %d lines (%s)", e.Line, e.Column, len(lines), e.Message)
		}
	}
}
