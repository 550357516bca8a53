package agents

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/do/agent"
)

var update = flag.Bool("update", false, "write docs/agents.md")

const document = "../../../../docs/agents.md"

// The page is what the adapters say.
func TestDocument(t *testing.T) {
	t.Parallel()
	got := page()
	if *update {
		if err := os.WriteFile(document, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(document)
	if err != nil || string(want) != got {
		t.Errorf("docs/agents.md is not what the adapters say (%v); run go test ./internal/do/agent/agents -update", err)
	}
}

// A row tells what a user needs, in sentences that a table can hold.
func TestFacts(t *testing.T) {
	t.Parallel()
	rows := Table()
	for _, r := range rows {
		if r.Program == "" || r.Package == "" || r.Versions == "" || r.Tokens == "" || r.Cost == "" || r.Install == "" || len(r.Problems) == 0 {
			t.Errorf("%s: a fact is missing in %+v", r.Name, r)
		}
		if _, err := Parser(r.Format, ParserOptions{}); err != nil {
			t.Errorf("%s: %v", r.Name, err)
		}
		a, _ := Lookup(r.Name)
		start, err := a.Start(agent.Invocation{PromptFile: os.DevNull})
		if err != nil || start.Args[0] != r.Program || start.Parser != r.Format {
			t.Errorf("%s: starts %q for the parser %s, %v; the facts say %s, %s", r.Name, start.Args, start.Parser, err, r.Program, r.Format)
		}
		if r.PromptLimit > 0 {
			if _, err := a.Start(agent.Invocation{PromptFile: os.DevNull, PromptSize: 5 * r.PromptLimit}); err == nil {
				t.Errorf("%s: a prompt over the limit is let through", r.Name)
			}
		}
		for _, text := range append([]string{r.Versions, r.Tokens, r.Cost}, r.Problems...) {
			if strings.ContainsAny(text, "\n|") {
				t.Errorf("%s: %q breaks the page", r.Name, text)
			}
		}
	}
	if want := len(Names()) - 1; len(rows) != want { // all but script
		t.Errorf("%d rows, want %d", len(rows), want)
	}
}
