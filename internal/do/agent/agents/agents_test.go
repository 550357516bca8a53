package agents

import (
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/decide/safety"
	"github.com/pawl-dev/pawl/internal/do/agent"
)

func TestTable(t *testing.T) {
	t.Parallel()
	if !slices.IsSorted(Names()) || !slices.Contains(Names(), "claude") || !slices.Contains(Names(), "script") {
		t.Errorf("names are %q", Names())
	}
	for _, name := range Names() {
		a, ok := Lookup(name)
		if !ok || a.About().Name != name || a.About().Install == "" {
			t.Errorf("%s: %v, %v", name, a, ok)
			continue
		}
		in := agent.Invocation{PromptFile: os.DevNull, Command: []string{"x"}}
		start, err := a.Start(in)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := Parser(start.Parser, ParserOptions{}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, ok := Lookup("nobody"); ok {
		t.Error("an unknown agent is found")
	}
}

func TestCustom(t *testing.T) {
	t.Parallel()
	a, err := Custom("mine", []string{"./agent.sh"}, "")
	if err != nil || a.About().Structured || a.About().LiveUsage {
		t.Errorf("a text agent is %v, %v", a, err)
	}
	a, err = Custom("mine", []string{"./agent.sh"}, "claude")
	if err != nil || !a.About().Structured {
		t.Errorf("a claude wrapper is %v, %v", a, err)
	}
	if _, err = Custom("mine", []string{"./agent.sh"}, "json"); err == nil || !strings.Contains(err.Error(), "use one of acp, amp, ") {
		t.Errorf("error is %v", err)
	}
	if _, err = Parser("", ParserOptions{}); err == nil {
		t.Error("no format is a format")
	}
}

// Whatever an agent prints, its run has an outcome.
func TestTextAgents(t *testing.T) {
	t.Parallel()
	const prompt = "Fix the bug.\nThen say:\n<promise>COMPLETE</promise>\nalone on a line.\n"
	read := func(stream string) string {
		p, err := Parser("text", ParserOptions{Prompt: []byte(prompt)})
		if err != nil {
			t.Fatal(err)
		}
		c := agent.NewCollector()
		lines := agent.NewLines(0, func(b []byte, cut bool) { p.Line(b, cut, c.Add) })
		if _, err := lines.Write([]byte(stream)); err != nil {
			t.Fatal(err)
		}
		lines.Flush()
		p.Close(c.Add)
		return c.Outcome().Message
	}
	const sign = "<promise>COMPLETE</promise>"
	if got := read("> " + strings.ReplaceAll(prompt, "\n", "\n> ") + "\nI could not."); strings.Contains(got, sign) || !strings.Contains(got, "I could not.") {
		t.Errorf("with an echo: %q", got)
	}
	if got := read(prompt); strings.Contains(got, sign) {
		t.Errorf("with nothing but an echo: %q", got)
	}
	if got := read("\x1b[32mDone.\x1b[0m\n" + sign + "\n"); strings.TrimSpace(got) != "Done.\n"+sign {
		t.Errorf("with colours: %q", got)
	}
	if got := read("\xff\xfe\x00"); got == "" {
		t.Error("binary output is lost")
	}
}

// A program without folders has its login shown to all other agents, one without
// variables or services does not reach its provider at the stricter levels, and
// what it writes in a folder that safety does not know can end its iteration.
func TestEveryProgramIsWhole(t *testing.T) {
	t.Parallel()
	rules := safety.Rules{Level: safety.Paranoid, Root: "/repo", Home: "/home/ann"}
	for _, p := range Programs() {
		if len(p.Folders) == 0 || len(p.Variables) == 0 || len(p.Services) == 0 {
			t.Errorf("%s has %d folders, %d variables, %d services", p.Name, len(p.Folders), len(p.Variables), len(p.Services))
		}
		for _, f := range p.Folders {
			if path.Ext(strings.TrimPrefix(path.Base(f), ".")) != "" {
				continue // a file
			}
			if found, bad := rules.Command("rm -rf ~/" + f + "/old/x"); bad {
				t.Errorf("%s: what it removes in %s is %+v: name its folder in safety/lists.txt", p.Name, f, found)
			}
		}
		if p.Own == nil {
			continue
		}
		if p.Parser != p.Name {
			t.Errorf("%s has a format of its own that is called %s", p.Name, p.Parser)
		}
	}
}

// Every program's stream has an end of its own: one that breaks off before is no answer.
func TestProgramsAreStructured(t *testing.T) {
	t.Parallel()
	for _, p := range Programs() {
		if p.Own != nil && !p.Structured {
			t.Errorf("%s may break off anywhere", p.Name)
		}
	}
}
