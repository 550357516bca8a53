package main

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/pawl-dev/pawl/internal/ask/cli"
	"github.com/pawl-dev/pawl/internal/do/cluster"
)

// What is in deploy can be read, and its commands are pawl's.
func TestDeploy(t *testing.T) {
	var commands [][]string
	err := filepath.WalkDir(filepath.Join("..", "..", "deploy"), func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var found [][]string
		if strings.HasSuffix(path, ".yaml") {
			found, err = inYAML(data)
		} else {
			found = inUnit(string(data))
		}
		if err != nil {
			t.Errorf("%s: %v", path, err)
		}
		commands = append(commands, found...)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(commands) < 3 {
		t.Errorf("only these commands were found: %q", commands)
	}
	for _, args := range commands {
		var out bytes.Buffer
		code := cli.Main(cluster.Program{}, append(args[1:], "--help"), strings.NewReader(""), &out, &out, os.Environ())
		if usage := strings.Join(args[1:min(len(args), 2)], " "); code != 0 || !strings.Contains(out.String(), usage) {
			t.Errorf("%q: status %d\n%s", args, code, &out)
		}
	}
}

// inUnit are the commands of a unit of systemd.
func inUnit(text string) (commands [][]string) {
	for line := range strings.Lines(text) {
		if command, ok := strings.CutPrefix(strings.TrimSpace(line), "ExecStart="); ok {
			commands = append(commands, strings.Fields(command))
		}
	}
	return commands
}

// inYAML are the lists in documents that begin with pawl's name.
func inYAML(data []byte) (commands [][]string, err error) {
	d := yaml.NewDecoder(bytes.NewReader(data))
	for {
		var document any
		err := d.Decode(&document)
		if errors.Is(err, io.EOF) {
			return commands, nil
		}
		if err != nil {
			return nil, err
		}
		commands = append(commands, within(document)...)
	}
}

func within(value any) (commands [][]string) {
	switch v := value.(type) {
	case map[string]any:
		for _, one := range v {
			commands = append(commands, within(one)...)
		}
	case []any:
		var words []string
		for _, one := range v {
			commands = append(commands, within(one)...)
			if word, ok := one.(string); ok {
				words = append(words, word)
			}
		}
		if len(words) > 0 && words[0] == "pawl-cluster" {
			commands = append(commands, words)
		}
	}
	return commands
}
