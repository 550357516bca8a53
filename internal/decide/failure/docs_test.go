package failure

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/decide/failure/printed"
	"github.com/pawl-dev/pawl/internal/decide/failure/runners"
)

const docs = "../../../docs/failures.md"

// kindsOf are the kinds that a class can have, by the flags of its rules and
// whoever failed, transient ones first.
func kindsOf(c Class) []Kind {
	flags := []flag{0}
	all, _ := readRules() // TestRules has the error
	for _, r := range all {
		if r.Class == c {
			flags = append(flags, r.Flags)
		}
	}
	switch c {
	case Crash:
		flags = append(flags, retries) // killed from outside
	case MissingCommand:
		flags = append(flags, ours)
	case ResourceExhausted:
		flags = append(flags, machine)
	default:
	}
	found := map[Kind]bool{}
	for _, source := range []string{"agent", "gate"} {
		for _, f := range flags {
			for _, waits := range []bool{false, c == QuotaExhausted} {
				k, _ := kindOfFailure(Evidence{Source: source}, c, f, waits)
				found[k] = true
			}
		}
	}
	var out []Kind
	for _, k := range []Kind{Transient, Work, Permanent} {
		if found[k] {
			out = append(out, k)
		}
	}
	return out
}

// The table of classes in the documentation is what the code does. The test
// prints the rows that it wants.
func TestDocumentedClasses(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(docs)
	if err != nil {
		t.Fatal(err)
	}
	rows := map[Class][]string{}
	for l := range strings.SplitSeq(string(data), "\n") {
		cells := strings.Split(l, "|")
		if len(cells) == 6 && strings.HasPrefix(strings.TrimSpace(cells[1]), "`") {
			c := Class(strings.Trim(cells[1], " `"))
			if rows[c] != nil {
				t.Errorf("%s is there twice", c)
			}
			rows[c] = cells
		}
	}
	for _, c := range Classes() {
		cells := rows[c]
		if cells == nil {
			t.Errorf("no row for %s", c)
			continue
		}
		var kinds, severities []string
		for _, k := range kindsOf(c) {
			kinds = append(kinds, string(k))
			if s := string(severityOf(c, k)); !slices.Contains(severities, s) {
				severities = append(severities, s)
			}
		}
		for i, want := range []string{strings.Join(kinds, ", "), strings.Join(severities, ", ")} {
			if got := strings.TrimSpace(cells[3+i]); got != want {
				t.Errorf("%s: documented as %q, is %q", c, got, want)
			}
		}
		if strings.TrimSpace(cells[2]) == "" {
			t.Errorf("%s is not explained", c)
		}
	}
	if len(rows) != len(Classes()) {
		t.Errorf("%d classes are documented, there are %d", len(rows), len(Classes()))
	}
}

// Every class and kind has something that can be done, for whoever asks, and
// without pawl's own words where pawl is not at work.
func TestActions(t *testing.T) {
	t.Parallel()
	for _, c := range Classes() {
		for _, k := range []Kind{Transient, Work, Permanent} {
			for _, source := range []string{"agent", "gate", "step", "log"} {
				acts := actionsFor(verdict{class: c, line: -1}, k, source, "", printed.Text{})
				if len(acts) == 0 {
					t.Errorf("%s %s %s: no action", c, k, source)
				}
				for _, a := range acts {
					if a == "" || strings.HasSuffix(a, " ") || !strings.HasSuffix(a, ".") {
						t.Errorf("%s %s %s: %q", c, k, source, a)
					}
					if source == "log" && strings.Contains(strings.ToLower(a), "pawl") {
						t.Errorf("%s: %q says pawl where it is not at work", c, a)
					}
				}
			}
		}
	}
}

func TestSubjects(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ output, want string }{
		{"sh: 1: jest: not found", "Install jest,"},
		{"bash: line 3: kubectl: command not found", "Install kubectl,"},
		{"Error: spawn wrangler ENOENT", "Install wrangler,"},
		{`exec: "helm": executable file not found in $PATH`, "Install helm,"},
		{"bash: ligne 3 : terraform : commande introuvable", "Install terraform,"},
		{"Error: listen EADDRINUSE: address already in use :::3000", "port 3000"},
		{"Bind for 0.0.0.0:5432 failed: port is already allocated", "port 5432"},
		{"ModuleNotFoundError: No module named 'torch'", "install torch,"},
		{"Error: Cannot find module './nope/helper'", "Write ./nope/helper,"},
		{"E: write /var/x: no space left on device", "Look what fills the disk"},
		{"java.lang.OutOfMemoryError: Java heap space", "more memory"},
		{"accept4: Too many open files", "ulimit -n"},
		{"fatal: Unable to create '/repo/.git/index.lock': File exists.", "remove /repo/.git/index.lock."},
		{"PermissionError: [Errno 13] Permission denied: '/etc/shadow'", "/etc/shadow"},
	} {
		a := Analyse(Evidence{Source: "log", ExitCode: 1, Output: c.output})
		if !strings.Contains(strings.Join(a.Actions, "\n"), c.want) {
			t.Errorf("%q: %s, actions %q, want %q", c.output, a.Class, a.Actions, c.want)
		}
	}
}

func TestExitStatus(t *testing.T) {
	t.Parallel()
	for output, want := range map[string]string{
		"2026-03-01T10:11:14.2000000Z ##[error]Process completed with exit code 127.":   "127 true",
		"ERROR: Job failed: exit code 2":                                                "2 true",
		"make: *** [Makefile:2: test] Error 2":                                          "2 true",
		"The command \"make test\" exited with 3.":                                      "3 true",
		"ERROR: process \"/bin/sh -c x\" did not complete successfully: exit code: 100": "100 true",
		"Error: error 404":        "0 false",
		"panic: x\nexit status 2": "2 true",
		"exit code 0":             "0 false",
		"":                        "0 false",
		"exit status 1\n" + strings.Repeat("a line\n", 40):                                  "0 false",
		"level=info msg=\"exit code 3\"\n" + strings.Repeat("later\n", 3) + "exit status 4": "4 true",
	} {
		n, ok := ExitStatus(output)
		if got := fmt.Sprint(n, ok); got != want {
			t.Errorf("%q: %s, want %s", output, got, want)
		}
	}
}

// The table of rules can be read, and asks for nothing that there is not.
func TestRules(t *testing.T) {
	t.Parallel()
	all, err := readRules()
	if err != nil || len(all) < 200 {
		t.Fatalf("%d rules: %v", len(all), err)
	}
	for _, r := range all {
		if !slices.Contains(Classes(), r.Class) || r.Weight < 0 || r.Weight > 100 || len(r.Words) == 0 {
			t.Errorf("%s %d %q", r.Class, r.Weight, r.Words)
		}
		for _, w := range r.Words {
			if len(w) < 2 {
				t.Errorf("%s: the word %q is too short", r.Class, w)
			}
		}
		for name := range r.When {
			if conditions[name] == nil {
				t.Errorf("%s %q: no condition is called %q", r.Class, r.Words, name)
			}
		}
		for _, e := range []runners.Expression{r.Match, r.Unless} {
			if e.Compiled != nil {
				e.Compiled()
			}
		}
	}
}
