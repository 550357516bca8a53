package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/pawl-dev/pawl/internal/ask/cli"
)

// There is a page for each command that --help lists, with all that its --help says.
func TestManualSaysWhatHelpSays(t *testing.T) {
	t.Parallel()
	root := cli.Root()
	pages := manual(root, time.Unix(1_700_000_000, 0))
	documented := 0
	var visit func(c *cobra.Command)
	visit = func(c *cobra.Command) {
		documented++
		plain := wordsOf(strings.NewReplacer(`\e`, `\`, `\-`, "-", `\(ga`, "`", `\(ha`, "^", `\(ti`, "~", `\fB`, "", `\fI`, "",
			`\fP`, "", `\&`, "").Replace(requests.ReplaceAllString(string(pages["man/man1/"+pageName(c)+".1"]), "")))
		says := []string{c.Short, c.UseLine(), c.Long, c.Example}
		for _, flags := range []*pflag.FlagSet{c.NonInheritedFlags(), c.InheritedFlags()} {
			flags.VisitAll(func(f *pflag.Flag) {
				if value, usage := pflag.UnquoteUsage(f); !f.Hidden {
					says = append(says, "--"+f.Name+" "+value, usage)
				}
			})
		}
		for _, s := range says {
			if !strings.Contains(plain, wordsOf(s)) {
				t.Errorf("the page of %s does not say %q", c.CommandPath(), s)
			}
		}
		for _, sub := range c.Commands() {
			if isDocumented(sub) {
				visit(sub)
			}
		}
	}
	visit(root)
	if len(pages) != documented {
		t.Errorf("%d pages for %d commands", len(pages), documented)
	}
}

// requests are what tells man how a text is set.
var requests = regexp.MustCompile(`(?m)^\.(TH .*|SH [A-Z ]*|TP|PP|nf|fi|BR?\b)`)

func wordsOf(text string) string { return strings.Join(strings.Fields(text), " ") }

// man has nothing to say about the pages, and no line is wider than the terminal but those that are set as they are.
func TestManualRenders(t *testing.T) {
	t.Parallel()
	mandoc, err := exec.LookPath("mandoc")
	if err != nil {
		t.Skip("mandoc is not installed")
	}
	dir := t.TempDir()
	for name, text := range manual(cli.Root(), time.Unix(1_700_000_000, 0)) {
		file := filepath.Join(dir, filepath.Base(name))
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.CommandContext(t.Context(), mandoc, "-T", "lint", "-W", "warning", file).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
		shown, err := exec.CommandContext(t.Context(), mandoc, "-T", "utf8", "-O", "width=80", file).Output()
		if err != nil || !bytes.Contains(shown, []byte("S\bSY\bYN\bNO\bOP\bPS\bSI\bIS\bS")) {
			t.Errorf("%s is shown as (%v)\n%s", name, err, shown)
		}
		if bytes.Contains(shown, []byte(`\e`)) || bytes.Contains(shown, []byte(`\fB`)) {
			t.Errorf("%s shows its own marks:\n%s", name, shown)
		}
	}
}

// What a text says is text to man, and what is indented keeps its lines.
func TestParagraphs(t *testing.T) {
	t.Parallel()
	got := paragraphs("One\\two.\n.three\n\n  a  b\n\tc\n\n'four\n")
	want := "One\\etwo.\n\\&.three\n.PP\n.nf\n  a  b\n\tc\n.PP\n.fi\n\\&'four"
	if got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}
