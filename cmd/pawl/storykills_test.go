package main

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/pawl-dev/pawl/internal/test/forgetest"
)

var (
	storySeeds = flag.Int("story-seeds", 1, "how many stories TestStoryUnderKills tells, from -story-seed on")
	storySeed  = flag.Uint64("story-seed", 1, "the seed of the first story of TestStoryUnderKills")
)

// cutter is between pawl and its forge, API and pushes. Of the calls that it is set for, it lets one go wrong.
type cutter struct {
	forge *httputil.ReverseProxy

	mu    sync.Mutex
	calls int // until it happens; below zero: nothing does
	how   cut
	kill  func()
	seen  map[cut]int
}

// cut is how a call goes wrong.
type cut string

const (
	killedBefore cut = "killed before it"         // the forge does not get it
	killedAfter  cut = "killed before its answer" // the forge has done it
	answerLost   cut = "its answer lost"          // and pawl lives
)

func (c *cutter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	c.calls--
	strikes, how, kill := c.calls == 0, c.how, c.kill
	if strikes {
		c.seen[how]++
	}
	c.mu.Unlock()
	if !strikes {
		c.forge.ServeHTTP(w, r)
		return
	}
	if how == killedBefore {
		kill()
		panic(http.ErrAbortHandler)
	}
	c.forge.ServeHTTP(httptest.NewRecorder(), r)
	if how == killedAfter {
		kill()
	}
	panic(http.ErrAbortHandler)
}

// arm sets it for one of the next calls of a pawl.
func (c *cutter) arm(calls int, how cut, kill func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls, c.how, c.kill = calls, how, kill
}

// before is a forge behind a cutter.
func before(t *testing.T, site *forgetest.Site) (*forgetest.Site, *cutter) {
	t.Helper()
	at, err := url.Parse(site.URL)
	if err != nil {
		t.Fatal(err)
	}
	c := &cutter{forge: httputil.NewSingleHostReverseProxy(at), seen: map[cut]int{}}
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	behind := *site
	behind.URL = server.URL
	behind.Remote = strings.Replace(site.Remote, at.Host, strings.TrimPrefix(server.URL, "http://"), 1)
	return &behind, c
}

// until starts pawl again and again, and has a call of each go wrong, until something is so; then it may work in peace.
func (s *story) until(c *cutter, random *rand.Rand, is func() bool, args ...string) {
	s.t.Helper()
	for try := range 40 {
		cmd := s.command("pawl", args...)
		var said strings.Builder
		cmd.Stdout, cmd.Stderr = &said, &said
		how := []cut{killedBefore, killedAfter, answerLost}[random.IntN(3)]
		if err := cmd.Start(); err != nil {
			s.t.Fatal(err)
		}
		if try < 25 {
			c.arm(1+random.IntN(14), how, func() { _ = cmd.Process.Kill() })
		}
		err := cmd.Wait()
		c.arm(0, "", nil)
		s.t.Logf("pawl %v, %s: %v\n%s", args, how, err, said.String())
		if is() && !wasKilled(err) {
			s.pawl(args...)
			return
		}
	}
	s.t.Fatalf("pawl %v comes to no end:\n%s", args, s.run("pawl", "queue"))
}

// underKills is the story of an issue with an answer lost or a kill at any of its calls: nothing is opened, said, paid or
// lost twice, and nobody is asked.
func (s *story) underKills(c *cutter, random *rand.Rand) {
	t := s.t
	issue := s.Issue(forgetest.Reviewer, "Greet", "Say hello.")
	s.Mark(issue, "pawl")
	s.until(c, random, func() bool { return s.requests() == 1 }, "autopilot")
	first := s.head()

	s.Status(first, "build", "failure")
	s.until(c, random, func() bool { return s.hasMoved(first) }, "queue", "land")
	repaired := s.head()

	s.Status(repaired, "build", "success")
	s.ReviewBy(forgetest.Reviewer, s.request().Number, "say more", "greet.txt", 1, "and in French")
	s.until(c, random, func() bool { return s.hasMoved(repaired) }, "queue", "land")
	reviewed := s.head()

	s.Status(reviewed, "build", "success")
	s.until(c, random, func() bool { return s.request().State == "closed" }, "queue", "land")
	s.pawl("case", "sync")

	agents, err := os.ReadFile(filepath.Join(s.home, "agents"))
	if n := strings.Count(string(agents), "\n"); err != nil || n != 3 {
		t.Errorf("agents were started %d times, want 3: for the task, for what is red, for the review", n)
	}
	if shown := s.run("pawl", "case", "show", "1"); !strings.Contains(shown, "done") {
		t.Errorf("the task is not done:\n%s", shown)
	}
	var i struct{ State string }
	s.Do(forgetest.Owner, "GET", s.Repo(fmt.Sprintf("/issues/%d", issue)), nil, &i)
	var said []struct{ Body string }
	s.Do(forgetest.Owner, "GET", s.Repo(fmt.Sprintf("/issues/%d/comments", issue)), nil, &said)
	if i.State != "closed" || len(said) != 1 || !strings.Contains(said[0].Body, "has landed") {
		t.Errorf("the issue is %s, and pawl said %q there", i.State, said)
	}
	s.git("fetch", "-q", "origin")
	if n := s.git("rev-list", "--count", "--merges", "--first-parent", "origin/main"); n != "1" {
		t.Errorf("%s merges are on main, want 1", n)
	}
	if _, err := s.command("git", "-C", s.dir, "cat-file", "-e", "origin/main:greet.txt").Output(); err != nil {
		t.Errorf("the work is not on main: %v", err)
	}
}

// hasMoved is true when the request has another commit than it had, which its branch has too. A forge looks after a push.
func (s *story) hasMoved(from string) bool {
	s.t.Helper()
	s.git("fetch", "-q", "origin")
	head := s.request().Head.Sha
	return head != from && head == s.git("rev-parse", "origin/pawl/task-001")
}

func (s *story) requests() int {
	s.t.Helper()
	var all []pull
	s.Do(forgetest.Owner, "GET", s.Repo("/pulls?state=all"), nil, &all)
	return len(all)
}

// A call to the forge, or a push, is cut off at each step of propose, review, repair and merge: pawl is killed before it
// or before its answer, or lives and does not get the answer.
func TestStoryUnderKills(t *testing.T) {
	t.Parallel()
	for name, at := range map[string]func(t *testing.T) *forgetest.Site{
		"Gitea": func(t *testing.T) *forgetest.Site { t.Helper(); return forgetest.Gitea(t) },
		"GitHub": func(t *testing.T) *forgetest.Site {
			t.Helper()
			site, _ := forgetest.GitHub(t)
			return site
		},
	} {
		for i := range *storySeeds {
			seed := *storySeed + uint64(i) //nolint:gosec // a small number
			t.Run(fmt.Sprintf("%s seed %d", name, seed), func(t *testing.T) {
				defer func() {
					if t.Failed() {
						t.Logf("repeat with: go test ./cmd/pawl -run TestStoryUnderKills -count=1 -story-seed %d", seed)
					}
				}()
				site, c := before(t, at(t))
				newStory(t, site).underKills(c, rand.New(rand.NewPCG(seed, 0))) //nolint:gosec // it repeats
				t.Logf("%v", c.seen)
			})
		}
	}
}
