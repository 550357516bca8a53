package safety

import (
	"os"
	"strings"
	"testing"
)

var home = Rules{Level: Normal, Root: "/home/ann/work/app", Home: "/home/ann"}

// lines reads a data file: a command a line, ↵ for a newline.
func lines(t testing.TB, name string) []string {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" || strings.HasPrefix(line, "# ") && !strings.Contains(line, "only a comment") {
			continue
		}
		out = append(out, strings.ReplaceAll(line, "↵", "\n"))
	}
	return out
}

// Of what agents do all day at most two commands may be stopped.
func TestOrdinaryCommands(t *testing.T) {
	t.Parallel()
	stopped, all := 0, lines(t, "ordinary.txt")
	for _, c := range all {
		if f, ok := home.Command(c); ok {
			stopped++
			t.Logf("stopped: %s: %s", strings.ReplaceAll(c, "\n", "↵"), f.Reason())
		}
	}
	t.Logf("%d of %d ordinary commands stopped", stopped, len(all))
	if len(all) < 200 || stopped > 2 {
		t.Errorf("%d of %d ordinary commands are stopped", stopped, len(all))
	}
}

func TestDestructiveCommands(t *testing.T) {
	t.Parallel()
	all := lines(t, "destructive.txt")
	for _, c := range all {
		f, ok := home.Command(c)
		if !ok {
			t.Errorf("not found: %s", strings.ReplaceAll(c, "\n", "↵"))
			continue
		}
		if f.Pattern == "" || f.Pattern == "tangled" || f.Why == "" || f.Command == "" || f.Level != Normal {
			t.Errorf("%s: %+v", c, f)
		}
		if _, ok := (Rules{Level: Permissive, Root: home.Root}).Command(c); ok {
			t.Errorf("permissive stops %s", c)
		}
		strict := home
		strict.Level = Paranoid
		if _, ok := strict.Command(c); !ok {
			t.Errorf("paranoid allows %s", c)
		}
	}
	t.Logf("%d destructive commands", len(all))
	if len(all) < 120 {
		t.Errorf("only %d commands", len(all))
	}
}

// What each command is found to be.
func TestJudgedCommands(t *testing.T) {
	t.Parallel()
	strict := home
	strict.Level = Paranoid
	for _, line := range lines(t, "judged.txt") {
		want, c, _ := strings.Cut(line, ": ")
		normal, _ := home.Command(c)
		f, found := strict.Command(c)
		got := f.Pattern
		switch {
		case !found:
			got = "-"
		case normal.Pattern == "":
			got += "*"
		}
		if got != want {
			t.Errorf("%s: found %s, want %s", strings.ReplaceAll(c, "\n", "↵"), got, want)
		}
	}
}

// Tools that write files are judged by the files, tools that run by the command.
func TestTools(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		level         Level
		tool, command string
		file          string
		want          string // pattern
	}{
		{Normal, "Bash", "rm -rf /", "", "remove-outside"},
		{Normal, "run_shell_command", "git push -f", "", "git-push-force"},
		{Normal, "command_execution", "/bin/bash -lc 'git reset --hard'", "", "git-reset-hard"},
		{Normal, "str_replace_editor", "create", "src/a.go", ""},
		{Normal, "Grep", "rm -rf /", "", ""},
		{Normal, "Write", "", "/home/ann/work/app/src/a.go", ""},
		{Normal, "Write", "", "src/a.go", ""},
		{Normal, "Write", "", "/tmp/notes.md", ""},
		{Normal, "Write", "", "/home/ann/.claude/plans/a.md", ""},
		{Normal, "Edit", "", "/home/ann/.bashrc", "write-outside"},
		{Normal, "MultiEdit", "", "/etc/hosts", "write-outside"},
		{Normal, "write_file", "", ".git/hooks/pre-commit", "write-git-data"},
		{Normal, "file_change", "", "/home/ann/work/app2/x", "write-outside"},
		{Normal, "delete_file", "", ".env", "remove-secrets"},
		{Normal, "Read", "", "/etc/hosts", ""},
		{Normal, "TodoWrite", "", "/etc/x", ""},
		{Normal, "WebFetch", "", "", ""},
		{Paranoid, "WebFetch", "", "", "web-tool"},
		{Paranoid, "Bash", "curl https://example.com/x", "", "network"},
		{Paranoid, "Bash", "curl http://localhost:3000", "", ""},
		{Paranoid, "Bash", "git branch -D topic", "", "git-branch-delete"},
		{Normal, "Bash", "git branch -D topic", "", ""},
		{Paranoid, "Write", "", "/home/ann/x", "write-outside"},
		{Permissive, "Bash", "rm -rf /", "", ""},
	} {
		r := home
		r.Level = c.level
		var files []string
		if c.file != "" {
			files = []string{c.file}
		}
		f, _ := r.Tool(c.tool, c.command, files)
		if f.Pattern != c.want {
			t.Errorf("%s %s %s at %s: %q, want %q", c.tool, c.command, c.file, c.level, f.Pattern, c.want)
		}
	}
}

// A home folder is one wherever it is, and a workspace in a temporary folder too.
func TestHomeInATemporaryFolder(t *testing.T) {
	t.Parallel()
	r := Rules{Level: Normal, Root: "/tmp/a/work", Home: "/tmp/a/home"}
	for _, c := range []string{"rm -rf ~", "cd /tmp && X=rm; $X -r -f ~/", "rm -rf ~/src", "rm -rf /tmp/a", "rm -rf /tmp/a/work", "rm -rf /tmp"} {
		if _, ok := r.Command(c); !ok {
			t.Errorf("not found: %s", c)
		}
	}
	for _, c := range []string{"rm -rf /tmp/b", "rm -rf ~/.cache/x", "rm -rf /tmp/a/work/dist", "rm -rf /tmp/other/work"} {
		if f, ok := r.Command(c); ok {
			t.Errorf("%s: %s", c, f.Reason())
		}
	}
}

// The messages are those that documents name.
func TestMessages(t *testing.T) {
	t.Parallel()
	f, _ := home.Command("git push --force")
	if want := "Safety violation: Destructive operations not allowed at this safety level: git push --force (git-push-force: overwrites the history of a remote branch)"; f.Reason() != want {
		t.Errorf("%s", f.Reason())
	}
	strict := Rules{Level: Paranoid, Root: "/w", Home: "/h"}
	if f, _ := strict.Command("curl https://example.com"); !strings.HasPrefix(f.Reason(), "Safety violation: External API calls not allowed at this safety level: ") {
		t.Errorf("%s", f.Reason())
	}
	if f, _ := strict.Command("echo > /h/x"); !strings.HasPrefix(f.Reason(), "Safety violation: File system writes not allowed at this safety level: ") {
		t.Errorf("%s", f.Reason())
	}
}

func TestNear(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		used, limit int64
		want        bool
	}{{79, 100, false}, {80, 100, true}, {100, 100, true}, {5, 0, false}, {5, -1, false}, {0, 100, false}} {
		if got := Near(c.used, c.limit); got != c.want {
			t.Errorf("%d of %d: %v", c.used, c.limit, got)
		}
	}
}
