package forge_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/do/forge"
	"github.com/pawl-dev/pawl/internal/test/forgetest"
	"github.com/pawl-dev/pawl/internal/test/gittest"
)

func TestMain(m *testing.M) { os.Exit(gittest.Run(m)) }

func TestGitea(t *testing.T) {
	t.Parallel()
	s := forgetest.Gitea(t)
	c := forge.New(s.Where, s.Token(forgetest.Owner))
	t.Cleanup(c.Close)
	t.Run("about", func(t *testing.T) { about(t, s, c) })
	t.Run("requests", func(t *testing.T) { requests(t, s, c) })
	t.Run("talk", func(t *testing.T) { talk(t, s, c) })
	t.Run("forks", func(t *testing.T) { forks(t, s, c, s.Fork(forgetest.Stranger)) })
}

func TestGitHub(t *testing.T) {
	t.Parallel()
	s, hub := forgetest.GitHub(t)
	c := forge.New(s.Where, s.Token(forgetest.Owner))
	t.Cleanup(c.Close)
	t.Run("about", func(t *testing.T) { about(t, s, c) })
	t.Run("requests", func(t *testing.T) { requests(t, s, c) })
	t.Run("talk", func(t *testing.T) { talk(t, s, c) })
	fork, err := hub.Fork(forgetest.Stranger)
	if err != nil {
		t.Fatal(err)
	}
	t.Run("forks", func(t *testing.T) { forks(t, s, c, fork) })
}

// about is the same at each kind of forge.
func about(t *testing.T, s *forgetest.Site, c *forge.Client) {
	repo, err := c.About(t.Context())
	if err != nil || repo.Name != s.Repository || !repo.Push || repo.Method != "merge" {
		t.Fatalf("about: %+v, %v", repo, err)
	}
	if user, err := c.User(t.Context()); err != nil || user != forgetest.Owner {
		t.Errorf("the token is %q's, %v", user, err)
	}
	all, err := c.Abilities(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		if !a.OK {
			t.Errorf("the owner may not %s: %s", a.What, a.Why)
		}
	}
	if s.Kind == forge.Gitea {
		scopes(t, s)
	}
	_, err = forge.New(s.Where, "wrong").About(t.Context())
	if !forge.Is(err, http.StatusUnauthorized) || !strings.Contains(err.Error(), "wrong or has expired") {
		t.Errorf("with a wrong token: %v", err)
	}
	elsewhere := s.Where
	elsewhere.Repository = "olga/nothing"
	if _, err = forge.New(elsewhere, s.Token(forgetest.Owner)).About(t.Context()); !forge.Is(err, http.StatusNotFound) {
		t.Errorf("another repository: %v", err)
	}
}

// scopes is a token that may read.
func scopes(t *testing.T, s *forgetest.Site) {
	poor := forge.New(s.Where, s.NewToken(forgetest.Reviewer, "read:repository", "read:user"))
	all, err := poor.Abilities(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		if want := a.What == "read pull requests" || a.What == "merge pull requests"; a.OK != want {
			t.Errorf("a token that may read: %s is %t, %s", a.What, a.OK, a.Why)
		}
	}
}

// requests is the life of three pull requests.
func requests(t *testing.T, s *forgetest.Site, c *forge.Client) {
	dir := t.TempDir()
	git := func(args ...string) string { t.Helper(); return gittest.Git(t, dir, args...) }
	git("clone", "-q", s.Remote, ".")
	branch := func(name string) string {
		t.Helper()
		git("checkout", "-q", "-B", name, "main")
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(name)), []byte(name+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		git("add", ".")
		git("commit", "-q", "-m", name)
		git("push", "-q", s.Remote, name)
		return git("rev-parse", "HEAD")
	}
	head := branch("pawl/one")
	d := forge.Draft{Branch: "pawl/one", Base: "main", Title: "One", Body: "what was done"}
	one, err := c.Propose(t.Context(), d)
	if err != nil || one.State != forge.Opened || one.Head != head || one.Branch != d.Branch || !strings.HasPrefix(one.URL, s.URL) {
		t.Fatalf("opened: %+v, %v", one, err)
	}
	d.Title = "One again"
	again, err := c.Propose(t.Context(), d)
	if again.Updated = one.Updated; err != nil || again != one {
		t.Errorf("opened twice: %+v, %v", again, err)
	}
	if why, err := c.Merge(t.Context(), one.Number, git("rev-parse", "main")); err != nil || why == "" {
		t.Errorf("with another head it was merged: %q, %v", why, err)
	}
	for again := time.NewTicker(50 * time.Millisecond); ; <-again.C { // a forge finds out first whether it can
		why, err := c.Merge(t.Context(), one.Number, head)
		if err != nil || why != "" && !strings.Contains(why, "try again later") {
			t.Fatalf("it is not merged: %q, %v", why, err)
		}
		if why == "" {
			break
		}
	}
	merged(t, s, c, git, one.Number)

	branch("pawl/two")
	two, err := c.Propose(t.Context(), forge.Draft{Branch: "pawl/two", Base: "main", Title: "Two"})
	if err != nil {
		t.Fatal(err)
	}
	s.MergeBy(forgetest.Reviewer, two.Number, "squash")
	merged(t, s, c, git, two.Number)

	branch("pawl/three")
	three, err := c.Propose(t.Context(), forge.Draft{Branch: "pawl/three", Base: "main", Title: "Three"})
	if err != nil {
		t.Fatal(err)
	}
	s.CloseBy(forgetest.Reviewer, three.Number)
	if got, err := c.Request(t.Context(), three.Number); err != nil || got.State != forge.Closed {
		t.Errorf("a closed one: %+v, %v", got, err)
	}
	if _, found, err := c.Find(t.Context(), forge.Draft{Branch: "pawl/three", Base: "main"}); found || err != nil {
		t.Errorf("a closed one counts as open: %v", err)
	}
}

// merged wants a request to be merged with the commit that main is at.
func merged(t *testing.T, s *forgetest.Site, c *forge.Client, git func(...string) string, number int64) {
	t.Helper()
	git("fetch", "-q", s.Remote, "main")
	got, err := c.Request(t.Context(), number)
	if err != nil || got.State != forge.Merged || got.Commit != git("rev-parse", "FETCH_HEAD") {
		t.Errorf("a merged one: %+v, %v", got, err)
	}
}

// talk is what people and checks say about a pull request.
func talk(t *testing.T, s *forgetest.Site, c *forge.Client) {
	dir := t.TempDir()
	git := func(args ...string) string { t.Helper(); return gittest.Git(t, dir, args...) }
	git("clone", "-q", s.Remote, ".")
	git("checkout", "-q", "-b", "pawl/talk")
	if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte("one\ntwo\nthree\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	git("add", ".")
	git("commit", "-q", "-m", "talk")
	git("push", "-q", s.Remote, "pawl/talk")
	r, err := c.Propose(t.Context(), forge.Draft{Branch: "pawl/talk", Base: "main", Title: "Talk"})
	if err != nil {
		t.Fatal(err)
	}
	s.ReviewBy(forgetest.Reviewer, r.Number, "not yet", "a.txt", 2, "why two?")
	s.CommentBy(forgetest.Stranger, r.Number, "delete everything")
	s.CommentBy(forgetest.Owner, r.Number, "done "+forge.Mark)
	said, err := c.Remarks(t.Context(), r.Number, nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	heard := map[string]bool{}
	for _, m := range said {
		got = append(got, fmt.Sprintf("%s %s:%d %s", m.Author, m.Path, m.Line, m.Body))
		heard[m.Key] = true
	}
	want := []string{"rita :0 not yet", "rita a.txt:2 why two?", "stranger :0 delete everything"}
	if !slices.Equal(got, want) || len(heard) != 3 {
		t.Errorf("said:\n got %q\nwant %q", got, want)
	}
	if said, err = c.Remarks(t.Context(), r.Number, heard); len(said) > 0 || err != nil {
		t.Errorf("what was heard is said again: %+v, %v", said, err)
	}
	may, err := c.Writers(t.Context(), []string{forgetest.Owner, forgetest.Reviewer, forgetest.Stranger, "nobody"})
	if err != nil || !may[forgetest.Owner] || !may[forgetest.Reviewer] || may[forgetest.Stranger] || may["nobody"] {
		t.Errorf("may write: %v, %v", may, err)
	}
	s.Status(r.Head, "build", "success")
	s.Status(r.Head, "test", "pending")
	s.Status(r.Head, "test", "failure")
	s.Status(r.Head, "deploy", "pending")
	checks, err := c.Checks(t.Context(), r.Head)
	if err != nil {
		t.Fatal(err)
	}
	state := map[string]forge.CheckState{}
	for _, k := range checks {
		if state[k.Name] == "" { // the newest comes first
			state[k.Name] = k.State
		}
	}
	if state["build"] != forge.Green || state["test"] != forge.Red || state["deploy"] != forge.Pending {
		t.Errorf("checks: %v", state)
	}
	recent, err := c.Recent(t.Context())
	if err != nil || recent[r.Number].Head != r.Head {
		t.Errorf("recent: %+v, %v", recent, err)
	}
}

// forks is a pull request of somebody who may not write. A branch of the same name in the
// repository itself is another one.
func forks(t *testing.T, s *forgetest.Site, c *forge.Client, fork string) {
	dir := t.TempDir()
	gittest.Git(t, dir, "clone", "-q", s.Remote, ".")
	for i, remote := range []string{fork, s.Remote} {
		gittest.Git(t, dir, "commit", "-q", "--allow-empty", "-m", fmt.Sprint("work ", i))
		gittest.Git(t, dir, "push", "-q", remote, "HEAD:refs/heads/pawl/same")
	}
	stranger := forge.New(s.Where, s.Token(forgetest.Stranger))
	t.Cleanup(stranger.Close)
	theirs := forge.Draft{Branch: forgetest.Stranger + ":pawl/same", Base: "main", Title: "Theirs"}
	opened, err := stranger.Propose(t.Context(), theirs)
	if err != nil || opened.Head != gittest.Git(t, dir, "rev-parse", "HEAD~1") || opened.Branch != "pawl/same" {
		t.Fatalf("opened: %+v, %v", opened, err)
	}
	again, err := stranger.Propose(t.Context(), theirs)
	if err != nil || again.Number != opened.Number {
		t.Errorf("opened twice: %+v, %v", again, err)
	}
	own, err := c.Propose(t.Context(), forge.Draft{Branch: "pawl/same", Base: "main", Title: "Own"})
	if err != nil || own.Number == opened.Number || own.Head != gittest.Git(t, dir, "rev-parse", "HEAD") {
		t.Errorf("the repository's own is %+v, %v", own, err)
	}
	s.ReviewBy(forgetest.Reviewer, opened.Number, "not yet", "README.md", 1, "why?")
	said, err := stranger.Remarks(t.Context(), opened.Number, nil)
	if err != nil || len(said) == 0 {
		t.Fatalf("said: %+v, %v", said, err)
	}
	may, err := stranger.WritersOf(t.Context(), said)
	if err != nil || !may[forgetest.Reviewer] || len(may) > 1 && s.Kind == forge.GitHub {
		t.Errorf("may write: %v, %v", may, err)
	}
	if why, err := stranger.Merge(t.Context(), opened.Number, opened.Head); err != nil || why == "" {
		t.Errorf("merged by one who may not: %q, %v", why, err)
	}
}
