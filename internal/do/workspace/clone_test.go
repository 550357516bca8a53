package workspace

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/pawl-dev/pawl/internal/do/git"
)

// An agent may do with the .git of its clone what it likes: snapshots go on, what is
// checked out is what it was when that could be read last, and Broken says why. With a
// new repository work goes on, and the person's own is as it was.
func TestACloneWhoseRepositoryAnAgentBroke(t *testing.T) {
	t.Parallel()
	for name, attack := range map[string]func(p *place){
		"gone":                  func(p *place) { p.remove(".git") },
		"a file":                func(p *place) { p.remove(".git"); p.write(".git", "gitdir: /\n") },
		"a link to another":     func(p *place) { p.remove(".git"); p.link(newPlace(p.t, "evil", "1").path(".git"), ".git") },
		"a pipe":                func(p *place) { p.remove(".git"); p.pipe(".git") },
		"HEAD is gone":          func(p *place) { p.remove(".git/HEAD") },
		"HEAD is garbage":       func(p *place) { p.write(".git/HEAD", "\x00garbage\n") },
		"HEAD is a pipe":        func(p *place) { p.remove(".git/HEAD"); p.pipe(".git/HEAD") },
		"HEAD is a link":        func(p *place) { p.remove(".git/HEAD"); p.link("/etc/passwd", ".git/HEAD") },
		"HEAD leads out":        func(p *place) { p.write(".git/HEAD", "ref: refs/heads/../../../../x\n") },
		"HEAD leads to no head": func(p *place) { p.write(".git/HEAD", "ref: refs/pawl/x\n") },
		"HEAD names nothing":    func(p *place) { p.write(".git/HEAD", strings.Repeat("12", 20)+"\n") },
		"HEAD is a tree":        func(p *place) { p.write(".git/HEAD", p.git("rev-parse", "HEAD^{tree}")+"\n") },
		"HEAD is half":          func(p *place) { p.write(".git/HEAD", p.git("rev-parse", "HEAD")[:20]+"\n") },
		"the branch is garbage": func(p *place) { p.write(".git/refs/heads/main", "garbage\n") },
		"the branch is a folder": func(p *place) {
			p.remove(".git/refs/heads/main")
			p.write(".git/refs/heads/main/x", "1")
		},
		"packed refs are garbage": func(p *place) {
			p.remove(".git/refs/heads/main")
			p.write(".git/packed-refs", "garbage refs/heads/main\n")
		},
		"refs is a link": func(p *place) { p.remove(".git/refs"); p.link(p.t.TempDir(), ".git/refs") },
		"no objects":     func(p *place) { p.remove(".git/objects") },
		"objects is a link": func(p *place) {
			p.git("commit", "-q", "--allow-empty", "-m", "not read")
			must(p, os.Rename(p.path(".git/objects"), filepath.Join(p.state, "objects")))
			p.link(filepath.Join(p.state, "objects"), ".git/objects")
		},
		"a commit is missing": func(p *place) {
			p.git("commit", "-q", "--allow-empty", "-m", "lost")
			p.remove(p.loose("HEAD"))
		},
		"a file of a commit is another": func(p *place) {
			p.write("b", "true")
			p.git("add", "b")
			p.git("commit", "-qm", "false")
			must(p, os.Chmod(p.path(p.loose("HEAD:b")), 0o600))
			data := p.read(p.loose("HEAD:a"))
			p.write(p.loose("HEAD:b"), data)
		},
		"a tree has .git in it": func(p *place) {
			blob := p.git("rev-parse", "HEAD:a")
			p.write("list", "100644 blob "+blob+"\t.git\n")
			cmd := gitCommand(p, "mktree")
			f, err := os.Open(p.path("list"))
			must(p, err)
			defer f.Close()
			cmd.Stdin = f
			out, err := cmd.Output()
			must(p, err)
			p.remove("list")
			p.git("update-ref", "HEAD", p.git("commit-tree", "-m", "evil", strings.TrimSpace(string(out))))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			person := newPlace(t, "a", "1", "d/b", "2")
			before := person.private()
			p := person.clone()
			p.write("a", "agent")
			p.git("commit", "-qam", "good")
			good := p.snap(0)
			if good.Head != p.git("rev-parse", "HEAD") || good.Branch != "refs/heads/main" || p.c.Broken() != "" {
				t.Fatalf("%+v, broken: %q", good, p.c.Broken())
			}
			attack(p)
			p.write("d/b", "agent, after it")
			one := p.snap(1)
			if one.Head != good.Head || one.Branch != good.Branch || one.Tree == good.Tree {
				t.Errorf("snapshot %+v, the good one was %+v", one, good)
			}
			if p.c.Broken() == "" {
				t.Fatal("nobody says why")
			}
			if got := p.stored("cat-file", "blob", one.Commit+":d/b"); got != "agent, after it" {
				t.Errorf("it has %q", got)
			}
			p.stored("fsck", "--connectivity-only")
			if err := p.c.Clone().NewRepository(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			p.write("a", "agent again")
			p.git("commit", "-qam", "after the new one")
			two := p.snap(2)
			if two.Head != p.git("rev-parse", "HEAD") || p.c.Broken() != "" {
				t.Errorf("with a new repository: %+v, broken: %q", two, p.c.Broken())
			}
			sameMap(t, "the person's git directory", person.private(), before)
		})
	}
}

func must(p *place, err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

func (p *place) pipe(name string) {
	p.t.Helper()
	must(p, syscall.Mkfifo(p.path(name), 0o600))
}

// loose is the file of an object, which has one of its own.
func (p *place) loose(name string) string {
	p.t.Helper()
	id := p.git("rev-parse", name)
	return filepath.Join(".git", "objects", id[:2], id[2:])
}

// What stands in an agent's .git is nothing for pawl's git: no program that it names runs,
// no rule of it hides a file, and no object that it calls by a wrong name gets in.
func TestNothingOfAnAgentsRepositoryIsObeyed(t *testing.T) {
	t.Parallel()
	person := newPlace(t, "a", "1", ".gitattributes", "* filter=evil diff=evil merge=evil\n")
	before := person.private()
	p := person.clone()
	mark := filepath.Join(p.state, "ran")
	evil := filepath.Join(p.state, "evil.sh")
	must(p, os.WriteFile(evil, []byte("#!/bin/sh\ntouch '"+mark+"'\ncat\n"), 0o755))
	config := "[core]\n\tfsmonitor = " + evil + "\n\thooksPath = " + p.state + "\n\tpager = " + evil + "\n\tworktree = /\n" +
		"\texcludesFile = " + p.path("all") + "\n[filter \"evil\"]\n\tclean = " + evil + "\n\tsmudge = " + evil + "\n[diff \"evil\"]\n" +
		"\ttextconv = " + evil + "\n[include]\n\tpath = /dev/stdin\n"
	zero := p.snap(0)
	for _, h := range []string{"post-index-change", "reference-transaction", "post-checkout"} {
		p.remove(".git/hooks/" + h)
		p.link(evil, ".git/hooks/"+h)
	}
	p.write("all", "*\n")
	p.write(".git/info/exclude", "*\n")
	p.write(".git/info/attributes", "* filter=evil\n")
	p.write(".git/info/grafts", zero.Head+"\n")
	p.write(".git/objects/info/alternates", "/nowhere\n")
	p.write(".git/index", "garbage")
	p.write(".git/index.lock", "")
	p.write(".git/packed-refs.lock", "")
	p.write(".git/config", config)
	p.write("new", "n")
	one := p.snap(1)
	sameList(t, "paths", p.names(one), ".gitattributes", "a", "all", "new")
	if diff, _, err := p.c.Diff(t.Context(), zero.Commit, one.Commit, 1<<20); err != nil || !strings.Contains(diff, "+n") {
		t.Errorf("diff: %v\n%s", err, diff)
	}
	if one.Head != zero.Head || p.c.Broken() != "" {
		t.Errorf("%+v, broken: %q", one, p.c.Broken())
	}
	p.back(0)
	sameList(t, "back", p.names(p.snap(2)), ".gitattributes", "a")
	if _, err := os.Stat(mark); err == nil {
		t.Error("a program that the agent's repository names was run")
	}
	sameMap(t, "the person's git directory", person.private(), before)
}

// A clone that is opened again knows from where it went on, until its repository can be
// read.
func TestACloneIsOpenedAgain(t *testing.T) {
	t.Parallel()
	person := newPlace(t, "a", "1")
	p := person.clone()
	p.write(".git/HEAD", "garbage\n")
	at := Place{Top: p.top, Root: p.top, Own: p.state, Base: person.git("rev-parse", "HEAD")}
	c, err := OpenClone(t.Context(), person.c.Repo, at, p.cloneOptions(person))
	must(p, err)
	head, err := c.Head(t.Context())
	if err != nil || head != (git.Head{Commit: at.Base}) || c.Broken() == "" {
		t.Errorf("head %+v, %v, broken: %q", head, err, c.Broken())
	}
	if _, err := c.Snapshot(t.Context(), "r1", 0, SnapshotOptions{}); err != nil {
		t.Error(err)
	}
}
