package jsonline

import (
	"slices"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/agent"
	"github.com/pawl-dev/pawl/internal/loop"
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
		{`[]`, "", nil},
		{``, "", nil},
	} {
		var e agent.Event
		Input(&e, []byte(c.input))
		if e.Command != c.command || !slices.Equal(e.Files, c.files) {
			t.Errorf("%s: command %q, files %q", c.input, e.Command, e.Files)
		}
	}
	var e agent.Event
	Input(&e, []byte(`{"commands":["`+strings.Repeat(`x`, 3*agent.CommandCap)+`","more"],"path":"`+strings.Repeat("y", 3*maxPath)+`"}`))
	if len(e.Command) > agent.CommandCap+1 || len(e.Files) != 1 || len(e.Files[0]) != maxPath {
		t.Errorf("command of %d bytes, files %d", len(e.Command), len(e.Files))
	}
}

func TestCost(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]loop.MicroUSD{"0": 0, "0.5": 500_000, "1000000": 1e12, "2e-6": 2} {
		if got, ok := Cost([]byte(in)); !ok || got != want {
			t.Errorf("%s is %d, %v", in, got, ok)
		}
	}
	for _, in := range []string{"", "null", "-1", "1e12", `"1"`, "NaN"} {
		if got, ok := Cost([]byte(in)); ok {
			t.Errorf("%s is %d", in, got)
		}
	}
}
