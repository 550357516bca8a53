package forge_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/forge"
	"github.com/pawl-dev/pawl/internal/forge/forgetest"
	"github.com/pawl-dev/pawl/internal/gittest"
)

func TestMain(m *testing.M) { os.Exit(gittest.Run(m)) }

func TestGitea(t *testing.T) {
	t.Parallel()
	s := forgetest.Gitea(t)
	c := forge.New(s.Where, s.Token(forgetest.Owner))
	t.Cleanup(c.Close)
	t.Run("about", func(t *testing.T) { about(t, s, c) })
	t.Run("requests", func(t *testing.T) { requests(t, s, c) })
}

func TestGitHub(t *testing.T) {
	t.Parallel()
	s, _ := forgetest.GitHub(t)
	c := forge.New(s.Where, s.Token(forgetest.Owner))
	t.Cleanup(c.Close)
	t.Run("about", func(t *testing.T) { about(t, s, c) })
	t.Run("requests", func(t *testing.T) { requests(t, s, c) })
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
	git("init", "-q", "-b", "main")
	git("commit", "-q", "--allow-empty", "-m", "first")
	git("push", "-q", s.Remote, "main")
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
	if again, err := c.Propose(t.Context(), d); err != nil || again != one {
		t.Errorf("opened twice: %+v, %v", again, err)
	}
	if why, err := c.Merge(t.Context(), one.Number, git("rev-parse", "main")); err != nil || why == "" {
		t.Errorf("with another head it was merged: %q, %v", why, err)
	}
	if why, err := c.Merge(t.Context(), one.Number, head); err != nil || why != "" {
		t.Fatalf("it is not merged: %q, %v", why, err)
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
