package failure

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/decide/failure/words"
)

// What is found in typical outputs of tools: testdata/formats.txt.
func TestFormatsOfTools(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/formats.txt")
	if err != nil {
		t.Fatal(err)
	}
	cases := strings.Split(string(data), "\n=== ")[1:]
	for _, c := range cases {
		head, rest, _ := strings.Cut(c, "\n? ")
		summary, rest, _ := strings.Cut(rest, "\n? ")
		item, output, _ := strings.Cut(rest, "\n")
		name, status, _ := strings.Cut(head, " | ")
		exit, _ := words.Number(status, 0)
		a := Analyse(Evidence{Source: "gate", Name: "check", ExitCode: exit, Output: output, Now: labelledAt})
		if a.Summary != summary {
			t.Errorf("%s: the summary is %q, not %q", name, a.Summary, summary)
		}
		i := append(a.Items, Item{})[0]
		if got := fmt.Sprintf("%s:%d | %s | %s | %s", i.File, i.Line, i.Test, i.Expected, i.Received); got != item {
			t.Errorf("%s: the first item is %q, not %q", name, got, item)
		}
	}
	if len(cases) < 25 {
		t.Errorf("only %d outputs", len(cases))
	}
}
