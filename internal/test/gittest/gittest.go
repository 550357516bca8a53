// Package gittest gives tests real git without the settings of whoever runs
// them:
//
//	func TestMain(m *testing.M) { os.Exit(gittest.Run(m)) }
//
//	dir := t.TempDir()
//	gittest.Git(t, dir, "init", "-q")
package gittest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Run runs the tests with a home folder of their own: the user Ann, the branch
// main, and nothing else configured, not even a language, with which git takes a third
// longer to start; env has more variables, each NAME=value. It returns their exit status.
func Run(m *testing.M, env ...string) int {
	home, err := os.MkdirTemp("", "pawl-test-home-")
	if err == nil {
		defer os.RemoveAll(home)
		err = settle(home, env)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

func settle(home string, env []string) error {
	config := filepath.Join(home, ".gitconfig")
	const settings = "[user]\n\tname = Ann\n\temail = ann@example.com\n[init]\n\tdefaultBranch = main\n" +
		"[maintenance]\n\tauto = false\n" // else each commit starts a program to see whether there is something to tidy
	if err := os.WriteFile(config, []byte(settings), 0o600); err != nil {
		return err
	}
	for _, kv := range append([]string{
		"HOME=" + home, "XDG_CONFIG_HOME=" + filepath.Join(home, ".config"), "GIT_CONFIG_NOSYSTEM=1",
		"GIT_CONFIG_GLOBAL=" + config, "LC_ALL=C",
	}, env...) {
		name, value, _ := strings.Cut(kv, "=")
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	return nil
}

// Git runs git in dir, and returns what it prints without the last line break.
// The test ends when git fails.
func Git(t testing.TB, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimRight(string(out), "\n")
}

// Commit makes a commit on top of base, and a ref to it, and touches no checkout: in one
// call of git, since a clone for it would take ten. Files are names and texts in turn; "-"
// as text deletes one. It returns the commit's id.
func Commit(t testing.TB, dir, ref, title, base string, files ...string) string {
	t.Helper()
	var in strings.Builder
	fmt.Fprintf(&in, "commit %s\nmark :1\ncommitter Ann <ann@example.com> %d +0000\ndata %d\n%s\nfrom %s^0\n",
		ref, time.Now().Unix(), len(title), title, base)
	for i := 0; i+1 < len(files); i += 2 {
		if name, text := files[i], files[i+1]; text == "-" {
			fmt.Fprintf(&in, "D %s\n", name)
		} else {
			fmt.Fprintf(&in, "M 100644 inline %s\ndata %d\n%s\n", name, len(text), text)
		}
	}
	in.WriteString("get-mark :1\n")
	return Import(t, dir, in.String())
}

// Import has git fast-import read a stream, and returns what that prints.
func Import(t testing.TB, dir, stream string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", "fast-import", "--quiet")
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(stream)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git fast-import: %v\n%s", err, out)
	}
	return strings.TrimSpace(string(out))
}

// ManyFiles stores a tree that stands for more files than any disk has, in nine objects:
// each is a hundred times in the next. It returns the tree's id.
func ManyFiles(t testing.TB, dir string) string {
	t.Helper()
	entry := "100644 blob " + Git(t, dir, "hash-object", "-w", "-t", "blob", os.DevNull)
	for range 8 {
		var list strings.Builder
		for n := range 100 {
			fmt.Fprintf(&list, "%s\tf%d\n", entry, n)
		}
		cmd := exec.CommandContext(t.Context(), "git", "mktree")
		cmd.Dir, cmd.Stdin = dir, strings.NewReader(list.String())
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		entry = "040000 tree " + strings.TrimSpace(string(out))
	}
	return strings.TrimPrefix(entry, "040000 tree ")
}
