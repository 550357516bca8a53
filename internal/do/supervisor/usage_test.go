package supervisor

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/do/agent"
)

// noted is a parser whose program notes what it uses, a line for each call.
type noted struct{ lines []string }

func (*noted) Line([]byte, bool, func(agent.Event)) {}
func (*noted) Close(func(agent.Event))              {}

func (n *noted) Record(line []byte, _ func(agent.Event)) { n.lines = append(n.lines, string(line)) }

// Of a program's own files only that of the session at hand is read, and no link is
// followed to it.
func TestUsageFile(t *testing.T) {
	t.Parallel()
	now := time.Now()
	day := filepath.Join("sessions", now.Format("2006/01/02"))
	put := func(t *testing.T, root, name, text string) {
		t.Helper()
		path := filepath.Join(root, day, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString(text); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	follow := func(n *noted, env ...string) *usage {
		where := &agent.UsageFile{Variable: "TOOL_HOME", Home: ".tool", Days: "sessions", Suffix: ".jsonl"}
		return newUsage(Job{Env: env, Usage: where}, now, n, func(agent.Event) {})
	}

	root, n := t.TempDir(), &noted{}
	u := follow(n, "HOME=/nowhere", "TOOL_HOME="+root)
	defer u.closeFile()
	u.readNewUsage("")
	u.readNewUsage("s1") // nothing is there yet
	put(t, root, "rollout-s2.jsonl", "another's\n")
	put(t, root, "rollout-s1.jsonl", "one\ntw")
	u.readNewUsage("s1")
	put(t, root, "rollout-s1.jsonl", "o\n")
	u.readNewUsage("s1")
	if !slices.Equal(n.lines, []string{"one", "two"}) {
		t.Errorf("read %q", n.lines)
	}

	home, n := t.TempDir(), &noted{}
	put(t, filepath.Join(home, ".tool"), "rollout-s1.jsonl", "at home\n")
	u = follow(n, "HOME="+home)
	defer u.closeFile()
	if u.readNewUsage("s1"); !slices.Equal(n.lines, []string{"at home"}) {
		t.Errorf("in the home folder: read %q", n.lines)
	}

	linked, n := t.TempDir(), &noted{}
	put(t, linked, "other", "")
	if err := os.Symlink(filepath.Join(root, day, "rollout-s1.jsonl"), filepath.Join(linked, day, "rollout-s1.jsonl")); err != nil {
		t.Fatal(err)
	}
	u = follow(n, "TOOL_HOME="+linked)
	if u.readNewUsage("s1"); len(n.lines) != 0 {
		t.Errorf("behind a link: read %q", n.lines)
	}
	once, n := filepath.Join(t.TempDir(), "usage.json"), &noted{}
	u = newUsage(Job{Usage: &agent.UsageFile{Path: once}}, now, n, func(agent.Event) {})
	if err := os.WriteFile(once, []byte("{\n}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	u.readNewUsage("s1")
	u.readFinalUsage("s1")
	if _, err := os.Stat(once); !slices.Equal(n.lines, []string{"{\n}\n"}) || err == nil {
		t.Errorf("written at the end: read %q, and afterwards %v", n.lines, err)
	}
	if err := os.Symlink(filepath.Join(root, day, "rollout-s1.jsonl"), once); err != nil {
		t.Fatal(err)
	}
	if u.readFinalUsage("s1"); len(n.lines) != 1 {
		t.Errorf("written at the end, behind a link: read %q", n.lines)
	}
	piped, n := t.TempDir(), &noted{}
	put(t, piped, "other", "")
	if err := errors.Join(os.RemoveAll(filepath.Join(piped, day)), syscall.Mkfifo(filepath.Join(piped, day), 0o600)); err != nil {
		t.Fatal(err)
	}
	u = follow(n, "TOOL_HOME="+piped)
	u.readNewUsage("s1") // it does not wait for somebody who writes
	if newUsage(Job{}, now, &noted{}, nil) != nil {
		t.Error("a program without a file has one")
	}
}
