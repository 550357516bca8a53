package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/test/forgetest"
)

// story is a person's checkout of a repository at a forge, in which pawl works.
type story struct {
	*forgetest.Site
	t         *testing.T
	dir, home string
}

// An issue becomes a merged pull request, and is closed, with pawl killed at each step:
// while the agent works, between its work and the request, while what is red is
// repaired, while what a review wants is done, and as the merge is seen.
func TestStoryAtGitea(t *testing.T) {
	t.Parallel()
	newStory(t, forgetest.Gitea(t)).told()
}

// The same at a GitHub that holds each call to GitHub's description.
func TestStoryAtGitHub(t *testing.T) {
	t.Parallel()
	site, _ := forgetest.GitHub(t)
	newStory(t, site).told()
}

func (s *story) told() {
	t := s.t
	issue := s.Issue(forgetest.Reviewer, "Greet", "Say hello.")
	s.Mark(issue, "pawl")

	s.agentHeld("autopilot")
	s.killedAt("goes to the merge queue", "autopilot")
	s.pawl("autopilot")
	first := s.head()

	s.Status(first, "build", "failure")
	s.agentKilled("queue", "land")
	s.pawl("queue", "land")
	repaired := s.head()
	if repaired == first {
		t.Fatal("what was red is not repaired")
	}

	s.Status(repaired, "build", "success")
	s.ReviewBy(forgetest.Reviewer, s.request().Number, "say more", "greet.txt", 1, "and in French")
	s.agentKilled("queue", "land")
	s.pawl("queue", "land")
	reviewed := s.head()
	if reviewed == repaired {
		t.Fatal("what the review wants is not done")
	}
	if said := s.git("show", "origin/pawl/task-001:said"); !strings.Contains(said, "> and in French") {
		t.Errorf("the agent was told %q", said)
	}

	s.Status(reviewed, "build", "success")
	for range 50 {
		s.killedAt("task-001", "queue", "land")
		if s.request().State == "closed" {
			break
		}
	}
	s.pawl("queue", "land")
	s.pawl("case", "sync")
	s.ended(issue)
}

func newStory(t *testing.T, site *forgetest.Site) *story {
	s := &story{Site: site, t: t, home: t.TempDir()}
	s.Label("pawl")
	s.dir = filepath.Join(s.home, "project")
	s.run("git", "clone", "-q", s.Remote, s.dir)
	for _, name := range []string{"begun", "go"} {
		if err := syscall.Mkfifo(filepath.Join(s.home, name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s.write(filepath.Join(s.dir, "pawl.yaml"), fmt.Sprintf(`agent: mine
agents: {mine: {command: [sh, %[1]s/agent.sh], output: text}}
loop: {safety: permissive}
verification: ["true", {name: ci, forge: checks, required: [build]}]
merge: {mode: pull-request, auto_merge: true}
forge:
  kind: %[4]s
  url: %[2]s
  repository: %[3]s
  token_command: cat %[1]s/token
  issues: {label: pawl, safety: permissive}
`, s.home, s.URL, s.Repository, s.Kind))
	s.write(filepath.Join(s.home, "token"), s.Token(forgetest.Owner))
	s.write(filepath.Join(s.home, "agent.sh"), strings.ReplaceAll(`cat >HOME/prompt
echo $PAWL_RUN >>HOME/agents
case $(cat HOME/phase) in
held) echo >HOME/begun; cat HOME/go >/dev/null;;
killed) echo go >HOME/phase; echo $$ >>HOME/hanging; echo >HOME/begun; exec sleep 1000;;
esac
commit=$(grep -o 'git merge [0-9a-f]*' HOME/prompt | head -1 | cut -d' ' -f3)
if [ -n "$commit" ]; then
	git merge -q "$commit" >/dev/null 2>&1
	grep '^> ' HOME/prompt >said
else
	echo hello >greet.txt
fi
git add -A
git commit -q -m work
echo '<promise>COMPLETE</promise>'
`, "HOME", s.home))
	s.phase("go")
	s.git("add", "pawl.yaml")
	s.git("commit", "-qm", "pawl")
	s.git("push", "-q", "origin", "main")
	return s
}

func (s *story) write(path, text string) {
	s.t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

func (s *story) phase(word string) { s.write(filepath.Join(s.home, "phase"), word+"\n") }

func (s *story) command(name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(s.t.Context(), name, args...)
	cmd.Dir = s.home
	if _, err := os.Stat(filepath.Join(s.dir, "pawl.yaml")); err == nil {
		cmd.Dir = s.dir
	}
	own := func(kv string) bool { return strings.HasPrefix(kv, "PAWL_") || strings.HasPrefix(kv, "GITEA_") }
	cmd.Env = append(slices.DeleteFunc(os.Environ(), own), "HOME="+s.home, "GIT_CONFIG_NOSYSTEM=1",
		"XDG_STATE_HOME="+s.home+"/state", "XDG_CONFIG_HOME="+s.home+"/config",
		"GIT_AUTHOR_NAME=o", "GIT_AUTHOR_EMAIL=o@example.com", "GIT_COMMITTER_NAME=o", "GIT_COMMITTER_EMAIL=o@example.com")
	return cmd
}

func (s *story) run(name string, args ...string) string {
	s.t.Helper()
	cmd := s.command(name, args...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (s *story) git(args ...string) string {
	s.t.Helper()
	return s.run("git", append([]string{"-C", s.dir}, args...)...)
}

// pawl runs pawl to its end. That somebody is waited for is no failure.
func (s *story) pawl(args ...string) {
	s.t.Helper()
	cmd := s.command("pawl", args...)
	out, err := cmd.CombinedOutput()
	if code := cmd.ProcessState.ExitCode(); code != 0 && code != 4 {
		s.t.Fatalf("pawl %v: %v\n%s", args, err, out)
	}
	s.t.Logf("pawl %v\n%s", args, out)
}

// killedAt kills pawl as it prints a line; it may end before.
func (s *story) killedAt(words string, args ...string) {
	s.t.Helper()
	cmd := s.command("pawl", args...)
	out, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		s.t.Fatal(err)
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		s.t.Log(lines.Text())
		if strings.Contains(lines.Text(), words) {
			_ = cmd.Process.Kill()
		}
	}
	_ = cmd.Wait() // it was killed, or waits for somebody
}

// begin starts pawl and kills it when its agent is at work.
func (s *story) begin(phase string, args ...string) {
	s.t.Helper()
	s.phase(phase)
	cmd := s.command("pawl", args...)
	var said strings.Builder
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	err := exec.CommandContext(ctx, "cat", filepath.Join(s.home, "begun")).Run()
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if err != nil {
		s.t.Fatalf("no agent begins: %v\n%s", err, said.String())
	}
}

// agentHeld kills pawl while its agent works, which then goes on.
func (s *story) agentHeld(args ...string) {
	s.begin("held", args...)
	s.phase("go")
	s.write(filepath.Join(s.home, "go"), "go")
}

// agentKilled kills pawl while its agent works, which would hang for ever.
func (s *story) agentKilled(args ...string) { s.begin("killed", args...) }

type pull struct {
	Number int64
	State  string
	Head   struct{ Sha string }
}

// request is the only pull request that there is.
func (s *story) request() pull {
	s.t.Helper()
	var all []pull
	s.Do(forgetest.Owner, "GET", s.Repo("/pulls?state=all"), nil, &all)
	if len(all) != 1 {
		s.t.Fatalf("there are %d pull requests, want 1", len(all))
	}
	return all[0]
}

// head is the commit of the request, which the branch has too.
func (s *story) head() string {
	s.t.Helper()
	s.git("fetch", "-q", "origin")
	head := s.request().Head.Sha
	if branch := s.git("rev-parse", "origin/pawl/task-001"); branch != head {
		s.t.Fatalf("the request is at %s, its branch at %s", head, branch)
	}
	return head
}

// ended checks what the story has come to.
func (s *story) ended(issue int64) {
	s.t.Helper()
	var i struct{ State string }
	s.Do(forgetest.Owner, "GET", s.Repo(fmt.Sprintf("/issues/%d", issue)), nil, &i)
	if i.State != "closed" {
		s.t.Errorf("the issue is %s", i.State)
	}
	var said []struct{ Body string }
	s.Do(forgetest.Owner, "GET", s.Repo(fmt.Sprintf("/issues/%d/comments", issue)), nil, &said)
	if len(said) != 1 || !strings.Contains(said[0].Body, "has landed") {
		s.t.Errorf("pawl said %q at the issue", said)
	}
	if shown := s.run("pawl", "case", "show", "1"); !strings.Contains(shown, "done") {
		s.t.Errorf("the task is not done:\n%s", shown)
	}
	s.git("fetch", "-q", "origin")
	if n := s.git("rev-list", "--count", "--merges", "--first-parent", "origin/main"); n != "1" {
		s.t.Errorf("%s merges are on main, want 1", n)
	}
	hanging, err := os.ReadFile(filepath.Join(s.home, "hanging"))
	if err != nil || len(strings.Fields(string(hanging))) != 2 {
		s.t.Errorf("%q hung: %v", hanging, err)
	}
	for _, pid := range strings.Fields(string(hanging)) {
		if n, err := strconv.Atoi(pid); err != nil || syscall.Kill(n, 0) == nil {
			s.t.Errorf("an agent of a pawl that was killed still runs: process %s", pid)
		}
	}
	agents, err := os.ReadFile(filepath.Join(s.home, "agents"))
	if n := strings.Count(string(agents), "\n"); err != nil || n != 5 {
		s.t.Errorf("agents were started %d times, want 5: one for the task, two for what is red, two for the review", n)
	}
}
