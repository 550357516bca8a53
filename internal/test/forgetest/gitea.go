// Package forgetest gives tests a forge: a real Gitea, built by scripts/gitea
// and started on loopback, with people, a repository and their deeds. It is in
// no program.
package forgetest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/do/forge"
)

// Site is a forge with one repository.
type Site struct {
	forge.Where
	// Remote is where the owner pushes to, with the token in it.
	Remote string

	t      testing.TB
	web    *http.Client
	tokens map[string]string // by login
	asked  int               // tokens made
}

// The people at a [Site].
const (
	Owner    = "olga"     // whose repository it is, and whose token pawl has
	Reviewer = "rita"     // may write
	Stranger = "stranger" // may look
)

const repository = "project"

// sites counts those of this process.
var sites atomic.Uint32

// environ is the user's own, before a test takes another home.
var environ = os.Environ()

// Gitea starts a real Gitea with a repository of one commit. Where none is built,
// the test is skipped.
func Gitea(t testing.TB) *Site {
	t.Helper()
	_, here, _, _ := runtime.Caller(0)
	script := filepath.Join(filepath.Dir(here), "..", "..", "..", "scripts", "gitea")
	cached := exec.CommandContext(t.Context(), script, "cached")
	cached.Env = environ
	out, err := cached.Output()
	if err != nil {
		t.Skip("no Gitea is built here; build it with: scripts/gitea")
	}
	where := strings.Fields(string(out))
	s := &Site{t: t, web: client(), tokens: map[string]string{}}
	t.Cleanup(s.web.CloseIdleConnections)
	s.start(where[0], where[1])
	s.people(Reviewer, Stranger)
	s.Kind, s.Repository = forge.Gitea, Owner+"/"+repository
	s.Do(Owner, http.MethodPost, "/user/repos", map[string]any{"name": repository, "default_branch": "main",
		"auto_init": true}, nil)
	s.Do(Owner, http.MethodPut, s.Repo("/collaborators/"+Reviewer), map[string]string{"permission": "write"}, nil)
	s.Remote = strings.Replace(s.URL, "://", "://"+Owner+":"+s.tokens[Owner]+"@", 1) + "/" + s.Repository + ".git"
	return s
}

func client() *http.Client {
	return &http.Client{Timeout: time.Minute, Transport: &http.Transport{}}
}

// start starts the program and makes its people.
func (s *Site) start(program, static string) {
	t := s.t
	dir := t.TempDir()
	// An address of its own: Gitea takes no listener, so another test's could get
	// the port before it does.
	pid := os.Getpid()
	host := net.IPv4(127, byte(64+sites.Add(1)%128), byte(pid>>8), byte(pid))
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", host.String()+":0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	_ = listener.Close()
	_, port, _ := net.SplitHostPort(address)
	s.URL = "http://" + address
	config := filepath.Join(dir, "app.ini")
	text := fmt.Sprintf(settings, host, port, s.URL, static, filepath.Join(dir, "gitea.db"),
		filepath.Join(dir, "repositories"))
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	command := func(ctx context.Context, args ...string) *exec.Cmd {
		c := exec.CommandContext(ctx, program, append(args, "--config", config, "--work-path", dir)...)
		c.Env = []string{"GITEA_I_AM_BEING_UNSAFE_RUNNING_AS_ROOT=true", "HOME=" + dir, "PATH=" + os.Getenv("PATH"),
			"TMPDIR=" + dir}
		return c
	}
	run := func(args ...string) string {
		out, err := command(t.Context(), args...).Output()
		if err != nil {
			t.Fatalf("gitea %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return strings.TrimSpace(string(out))
	}
	run("migrate")
	run("admin", "user", "create", "--admin", "--username", Owner, "--password", "pass-"+Owner, "--email",
		Owner+"@example.test",
		"--must-change-password=false")
	// What it logs comes before the token or after it: another thread writes that.
	token := regexp.MustCompile(`(?m)^[0-9a-f]{40}$`)
	s.tokens[Owner] = token.FindString(run("admin", "user", "generate-access-token", "--username", Owner,
		"--scopes", "all", "--raw", "--token-name", "test"))
	web := command(context.WithoutCancel(t.Context()), "web")
	var log bytes.Buffer
	web.Stdout, web.Stderr = &log, &log
	if err := web.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = web.Wait(); close(ended) }()
	t.Cleanup(func() {
		_ = web.Process.Kill()
		<-ended
		if t.Failed() {
			t.Logf("gitea said:\n%s", log.String())
		}
	})
	s.await(ended)
}

// await waits until the program answers.
func (s *Site) await(ended <-chan struct{}) {
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for began := time.Now(); time.Since(began) < time.Minute; {
		select {
		case <-ended:
			s.t.Fatal("gitea has ended")
		case <-again.C:
		}
		r, _ := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.URL+"/api/v1/version", nil)
		res, err := s.web.Do(r)
		if err == nil {
			_ = res.Body.Close()
			if res.StatusCode == http.StatusOK {
				return
			}
		}
	}
	s.t.Fatal("gitea does not answer")
}

// people makes those who are not there yet.
func (s *Site) people(logins ...string) {
	for _, name := range logins {
		s.Do(Owner, http.MethodPost, "/admin/users", map[string]any{
			"username": name, "password": "pass-" + name, "email": name + "@example.test", "must_change_password": false,
		}, nil)
		s.tokens[name] = s.NewToken(name, "all")
	}
}

// NewToken is one of somebody's that may do some things, such as read:issue.
func (s *Site) NewToken(login string, scopes ...string) string {
	s.t.Helper()
	var made struct {
		Token string `json:"sha1"`
	}
	s.asked++
	s.Do(login+":pass-"+login, http.MethodPost, "/users/"+login+"/tokens",
		map[string]any{"name": fmt.Sprint("test", s.asked), "scopes": scopes}, &made)
	return made.Token
}

// Token is that of somebody.
func (s *Site) Token(login string) string { return s.tokens[login] }

// Repo is the path of something in the repository.
func (s *Site) Repo(path string) string { return "/repos/" + s.Repository + path }

// Do is a call of the API in somebody's name, or "name:password", which has to succeed.
func (s *Site) Do(login, method, path string, what, into any) {
	s.t.Helper()
	data, err := json.Marshal(what)
	if err != nil {
		s.t.Fatal(err)
	}
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	status, answer := s.send(login, method, path, data)
	for status == http.StatusMethodNotAllowed && bytes.Contains(answer, []byte("try again later")) {
		<-again.C // it still finds out what can be merged
		status, answer = s.send(login, method, path, data)
	}
	if status >= 300 {
		s.t.Fatalf("%s %s: %d %s", method, path, status, answer)
	}
	if into != nil {
		if err := json.Unmarshal(answer, into); err != nil {
			s.t.Fatalf("%s %s: %v", method, path, err)
		}
	}
}

func (s *Site) send(login, method, path string, data []byte) (status int, answer []byte) {
	s.t.Helper()
	var body io.Reader
	if string(data) != "null" {
		body = bytes.NewReader(data)
	}
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.api()+path, body)
	if err != nil {
		s.t.Fatal(err)
	}
	if name, password, ok := strings.Cut(login, ":"); ok {
		r.SetBasicAuth(name, password)
	} else {
		r.Header.Set("Authorization", "token "+s.tokens[login])
	}
	r.Header.Set("Content-Type", "application/json")
	res, err := s.web.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	if answer, err = io.ReadAll(res.Body); err != nil {
		s.t.Fatalf("%s %s: %v", method, path, err)
	}
	return res.StatusCode, answer
}

func (s *Site) api() string {
	if s.Kind == forge.GitHub {
		return s.URL + "/api/v3"
	}
	return s.URL + "/api/v1"
}

// MergeBy has somebody merge a pull request: merge, squash or rebase.
func (s *Site) MergeBy(login string, number int64, method string) {
	s.t.Helper()
	verb, what := http.MethodPut, map[string]string{"merge_method": method}
	if s.Kind == forge.Gitea {
		verb, what = http.MethodPost, map[string]string{"Do": method}
		s.awaitMergeable(login, number)
	}
	s.Do(login, verb, s.Repo(fmt.Sprintf("/pulls/%d/merge", number)), what, nil)
}

// awaitMergeable waits until the forge has found out that a request can be merged: it
// refuses to before.
func (s *Site) awaitMergeable(login string, number int64) {
	s.t.Helper()
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for {
		var request struct{ Mergeable bool }
		s.Do(login, http.MethodGet, s.Repo(fmt.Sprintf("/pulls/%d", number)), nil, &request)
		if request.Mergeable {
			return
		}
		<-again.C
	}
}

// ReviewBy has somebody want changes, with a comment on a line.
func (s *Site) ReviewBy(login string, number int64, body, path string, line int, text string) {
	s.t.Helper()
	event, at := "REQUEST_CHANGES", "line"
	if s.Kind == forge.Gitea {
		at = "new_position"
	}
	comment := map[string]any{"path": path, at: line, "body": text}
	s.Do(login, http.MethodPost, s.Repo(fmt.Sprintf("/pulls/%d/reviews", number)),
		map[string]any{"event": event, "body": body, "comments": []any{comment}}, nil)
}

// CommentBy has somebody say something in a conversation.
func (s *Site) CommentBy(login string, number int64, body string) {
	s.t.Helper()
	s.Do(login, http.MethodPost, s.Repo(fmt.Sprintf("/issues/%d/comments", number)), map[string]string{"body": body}, nil)
}

// Issue has somebody write an issue, and returns its number.
func (s *Site) Issue(login, title, body string) int64 {
	s.t.Helper()
	var i struct{ Number int64 }
	s.Do(login, http.MethodPost, s.Repo("/issues"), map[string]string{"title": title, "body": body}, &i)
	return i.Number
}

// Edit has the owner change an issue.
func (s *Site) Edit(number int64, what map[string]any) {
	s.t.Helper()
	s.Do(Owner, http.MethodPatch, s.Repo(fmt.Sprintf("/issues/%d", number)), what, nil)
}

// Label makes a label of the repository.
func (s *Site) Label(name string) {
	s.t.Helper()
	s.Do(Owner, http.MethodPost, s.Repo("/labels"), map[string]string{"name": name, "color": "#aabbcc"}, nil)
}

// Fork makes somebody's fork, and returns its address with the token in it.
func (s *Site) Fork(login string) string {
	s.t.Helper()
	s.Do(login, http.MethodPost, s.Repo("/forks"), map[string]string{}, nil)
	return strings.Replace(s.URL, "://", "://"+login+":"+s.tokens[login]+"@", 1) + "/" + login + "/" + repository + ".git"
}

// Mark gives an issue a label, and Unmark takes all away.
func (s *Site) Mark(number int64, label string) {
	s.t.Helper()
	s.Do(Owner, http.MethodPost, s.Repo(fmt.Sprintf("/issues/%d/labels", number)), map[string][]string{"labels": {label}}, nil)
}

// Unmark takes the labels of an issue away.
func (s *Site) Unmark(number int64) {
	s.t.Helper()
	s.Do(Owner, http.MethodPut, s.Repo(fmt.Sprintf("/issues/%d/labels", number)), map[string][]string{"labels": {}}, nil)
}

// Status is what a check says of a commit: pending, success or failure.
func (s *Site) Status(commit, name, state string) {
	s.t.Helper()
	s.Do(Owner, http.MethodPost, s.Repo("/statuses/"+commit),
		map[string]string{"context": name, "state": state, "description": name + " is " + state}, nil)
}

// CloseBy has somebody close a pull request without merging it.
func (s *Site) CloseBy(login string, number int64) {
	s.t.Helper()
	s.Do(login, http.MethodPatch, s.Repo(fmt.Sprintf("/pulls/%d", number)), map[string]string{"state": "closed"}, nil)
}

const settings = `
RUN_MODE = prod
[server]
HTTP_ADDR = %s
HTTP_PORT = %s
ROOT_URL = %s/
STATIC_ROOT_PATH = %s
DISABLE_SSH = true
OFFLINE_MODE = true
[database]
DB_TYPE = sqlite3
PATH = %s
[repository]
ROOT = %s
[security]
INSTALL_LOCK = true
PASSWORD_HASH_ALGO = pbkdf2_v2
[service]
DISABLE_REGISTRATION = true
[log]
LEVEL = Error
[cron]
ENABLED = false
[indexer]
ISSUE_INDEXER_TYPE = db
[actions]
ENABLED = true
`
