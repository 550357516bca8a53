package jsonline

import (
	"slices"
	"testing"

	"github.com/pawl-dev/pawl/internal/do/agent"
)

func TestInput(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		input, command string
		files          []string
	}{
		{`{"command":"ls","path":"a","file_path":"b","filePath":"c"}`, "ls", []string{"a", "b", "c"}},
		{`{"commands":["ls","cat a"]}`, "ls\ncat a", nil},
		{`{"command":7,"path":"","file_path":null,"commands":"ls"}`, "", nil},
		{`{"notebook_path":"n","absolute_path":"a","command":"ls"}`, "ls", []string{"n", "a"}},
		{`[]`, "", nil},
		{``, "", nil},
	} {
		var e agent.Event
		Input(&e, []byte(c.input))
		if e.Command != c.command || !slices.Equal(e.Files, c.files) {
			t.Errorf("%s: command %q, files %q", c.input, e.Command, e.Files)
		}
	}
}
