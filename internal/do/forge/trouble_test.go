package forge_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/pawl-dev/pawl/internal/do/forge"
	"github.com/pawl-dev/pawl/internal/test/forgetest"
)

// A forge that cannot answer now is told from one that says no.
func TestTrouble(t *testing.T) {
	t.Parallel()
	say := func(status int, body string, headers ...string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, _ *http.Request) bool {
			for i := 0; i < len(headers); i += 2 {
				w.Header().Set(headers[i], headers[i+1])
			}
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
			return true
		}
	}
	for name, c := range map[string]struct {
		trouble func(http.ResponseWriter, *http.Request) bool
		later   bool          // an answer is to come
		wait    time.Duration // at least, where the forge says how long
		says    string
	}{
		"500":             {say(500, "oops"), true, 0, "500 Internal Server Error"},
		"a page":          {say(200, "<html>", "Content-Type", "text/html; charset=utf-8"), true, 0, "it answers with text/html where JSON is expected"},
		"limit":           {say(429, "", "Retry-After", "90"), true, 89 * time.Second, "its rate limit is reached; try again at "},
		"secondary limit": {say(403, `{"message":"You have exceeded a secondary rate limit."}`), true, 59 * time.Second, "its rate limit is reached"},
		"a year":          {say(429, "", "Retry-After", "99999999999"), true, 59 * time.Second, "its rate limit is reached"},
		"403":             {say(403, `{"message":"Resource not accessible by personal access token"}`), false, 0, "403 Forbidden: Resource not accessible by"},
		"expired":         {say(401, `{"message":"Bad credentials"}`), false, 0, "the token is wrong or has expired"},
		"broken":          {say(200, `{"full_name":`, "Content-Type", "application/json"), true, 0, "it answers with JSON that cannot be read: unexpected end"},
		"other JSON":      {say(200, `[]`, "Content-Type", "application/json"), true, 0, "it answers with unexpected JSON: its value is of type array"},
		"elsewhere": {say(302, "", "Location", "https://ann:secret@evil.test/a?token=x"), false, 0,
			"302 Found; it leads to https://evil.test/a, which is not followed: check forge.url"},
		"nowhere": {say(302, ""), false, 0, "302 Found; it leads nowhere"},
		"limit of hours": {func(w http.ResponseWriter, r *http.Request) bool {
			soon := time.Now().Add(10 * time.Minute) // from the answer on: this test may have waited for its turn
			return say(403, "{}", "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", fmt.Sprint(soon.Unix()))(w, r)
		}, true, 9 * time.Minute, "its rate limit is reached"},
		"hung up": {func(http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) }, true, 0, "it does not answer: EOF"},
		"endless": {func(w http.ResponseWriter, r *http.Request) bool {
			for r.Context().Err() == nil {
				if _, err := w.Write(make([]byte, 1<<20)); err != nil {
					break
				}
			}
			return true
		}, false, 0, "too large"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, hub := forgetest.GitHub(t)
			hub.Trouble = c.trouble
			client := forge.New(s.Where, s.Token(forgetest.Owner))
			defer client.Close()
			asked := time.Now()
			_, err := client.About(t.Context())
			var later *forge.LaterError
			if errors.As(err, &later) != c.later || !strings.Contains(fmt.Sprint(err), c.says) {
				t.Fatalf("got %v", err)
			}
			if c.wait == 0 {
				return
			}
			if later.Until.Before(asked.Add(c.wait)) || time.Until(later.Until) > time.Hour {
				t.Errorf("asked at %s, it waits until %s", asked, later.Until)
			}
			hub.Trouble = nil
			if _, err := client.User(t.Context()); !errors.As(err, &later) || len(hub.Calls()) > 0 {
				t.Errorf("it asks again before the time: %v, %q", err, hub.Calls())
			}
		})
	}
}

// A redirect to another host would carry the token there.
func TestTheTokenStays(t *testing.T) {
	t.Parallel()
	told := make(chan string, 10)
	evil := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { told <- r.URL.Path }))
	defer evil.Close()
	s, hub := forgetest.GitHub(t)
	hub.Trouble = func(w http.ResponseWriter, r *http.Request) bool {
		w.Header().Set("Link", "<"+evil.URL+`/next>; rel="next"`)
		if r.URL.Path == "/api/v3/user" {
			http.Redirect(w, r, evil.URL+"/user", http.StatusTemporaryRedirect)
			return true
		}
		_, _ = w.Write([]byte("[]"))
		return true
	}
	c := forge.New(s.Where, s.Token(forgetest.Owner))
	defer c.Close()
	if _, err := c.User(t.Context()); err == nil {
		t.Error("a redirect to another host was followed")
	}
	if _, _, err := c.Find(t.Context(), forge.Draft{Branch: "b", Base: "main"}); err != nil {
		t.Error(err)
	}
	if len(told) > 0 {
		t.Errorf("another host was asked for %s", <-told)
	}
}

// Many large issues do not fit into an answer of many: they are asked for a few at a time.
func TestLargeIssues(t *testing.T) {
	t.Parallel()
	body := strings.Repeat("x", 1<<20)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		size, _ := strconv.Atoi(r.URL.Query().Get("limit"))
		first, _ := strconv.Atoi(r.URL.Query().Get("page"))
		var page []string
		for n := first + 1; n <= min(first+size, 25); n++ {
			page = append(page, fmt.Sprintf(`{"number":%d,"state":"open","title":"t","body":%q,"labels":[{"name":"pawl"}]}`, n, body))
		}
		if next := first + size; next < 25 {
			q := r.URL.Query()
			q.Set("page", strconv.Itoa(next))
			w.Header().Set("Link", fmt.Sprintf(`<http://%s%s?%s>; rel="next"`, r.Host, r.URL.Path, q.Encode()))
		}
		_, _ = fmt.Fprintf(w, "[%s]", strings.Join(page, ","))
	}))
	t.Cleanup(s.Close)
	c := forge.New(forge.Where{Kind: forge.Gitea, URL: s.URL, Repository: "olga/project"}, "")
	t.Cleanup(c.Close)
	if issues, err := c.Issues(t.Context(), "pawl"); err != nil || len(issues) != 25 || issues[24].Number != 25 {
		t.Errorf("%d issues are read: %v", len(issues), err)
	}
}

// An issue that is opened between two pages moves the others: the last of a page is read again.
func TestPagesThatMove(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		numbers := []int{3, 2}
		if r.URL.Query().Get("page") == "" {
			w.Header().Set("Link", fmt.Sprintf(`<http://%s%s?page=2>; rel="next"`, r.Host, r.URL.Path))
		} else {
			numbers = []int{2, 1}
		}
		var page []string
		for _, n := range numbers {
			page = append(page, fmt.Sprintf(`{"number":%d,"state":"open","labels":[{"name":"pawl"}]}`, n))
		}
		_, _ = fmt.Fprintf(w, "[%s]", strings.Join(page, ","))
	}))
	t.Cleanup(s.Close)
	c := forge.New(forge.Where{Kind: forge.Gitea, URL: s.URL, Repository: "olga/project"}, "")
	t.Cleanup(c.Close)
	issues, err := c.Issues(t.Context(), "pawl")
	var numbers []int64
	for _, i := range issues {
		numbers = append(numbers, i.Number)
	}
	if err != nil || !slices.Equal(numbers, []int64{1, 2, 3}) {
		t.Errorf("%d are read: %v", numbers, err)
	}
}

// A check counts wherever it is in a long list.
func TestManyChecks(t *testing.T) {
	t.Parallel()
	s, hub := forgetest.GitHub(t)
	for n := range 150 {
		hub.Check("c0ffee", fmt.Sprint("job ", n), "success", "")
	}
	c := forge.New(s.Where, s.Token(forgetest.Owner))
	t.Cleanup(c.Close)
	if checks, err := c.Checks(t.Context(), "c0ffee"); err != nil || len(checks) != 150 {
		t.Errorf("%d checks are read: %v", len(checks), err)
	}
}

// What a forge says is text: nothing of it steers a terminal, forges a line or turns the direction.
func TestNothingOfAForgeSteersATerminal(t *testing.T) {
	t.Parallel()
	const evil = `a\u001b[31m\u001b[2Jb\u0007\u009b\u202ec\nd`
	for status, kind := range map[int]string{500: "message", 403: "message", 401: "message", 422: "errors"} {
		body := `{"message":"` + evil + `"}`
		if kind == "errors" {
			body = `{"message":"no","errors":[{"message":"` + evil + `"},"` + evil + `"]}`
		}
		c := answering(t, status, body)
		if _, err := c.User(t.Context()); err == nil || !strings.Contains(err.Error(), "a[31m[2Jbc d") || !isClean(err.Error()) {
			t.Errorf("%d: %q", status, err)
		}
	}
	c := answering(t, 200, "<html>", "Content-Type", "text/\u202ehtml")
	if _, err := c.User(t.Context()); err == nil || !isClean(err.Error()) {
		t.Errorf("a kind of content: %q", err)
	}
	c = answering(t, 302, "", "Location", "https://evil.test/\u202e")
	if _, err := c.User(t.Context()); err == nil || !isClean(err.Error()) {
		t.Errorf("a redirect: %q", err)
	}

	c = answering(t, 200, fmt.Sprintf(`{"login":"%s","full_name":"%[1]s","number":7,"state":"open","title":"%[1]s",
		"html_url":"%[1]s","body":"%[1]s","user":{"login":"%[1]s"},"labels":[{"name":"%[1]s"}],"updated_at":"%[1]s",
		"head":{"ref":"%[1]s"},"statuses":[{"context":"%[1]s","description":"%[1]s"}],
		"check_runs":[{"name":"%[1]s","html_url":"%[1]s"}]}`, evil))
	user, _ := c.User(t.Context())
	repo, _ := c.About(t.Context())
	issue, _ := c.Issue(t.Context(), 7)
	request, _ := c.Request(t.Context(), 7)
	checks, err := c.Checks(t.Context(), "c0ffee")
	if err != nil || len(checks) != 2 {
		t.Fatalf("checks: %v, %v", checks, err)
	}
	const clean = "a[31m[2Jbc d"
	for _, text := range []string{user, repo.Name, issue.Title, issue.URL, issue.Author, issue.Labels[0], issue.Updated,
		request.URL, request.Branch, checks[0].Name, checks[0].Text, checks[1].Name, checks[1].Text} {
		if text != clean {
			t.Errorf("it is %q", text)
		}
	}
	if issue.Body != "a[31m[2Jbc\nd" {
		t.Errorf("the body is %q", issue.Body)
	}
}

func isClean(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) })
}

// answering is a client of a GitHub that gives one answer to all.
func answering(t *testing.T, status int, body string, headers ...string) *forge.Client {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(s.Close)
	c := forge.New(forge.Where{Kind: forge.GitHub, URL: s.URL, Repository: "olga/project"}, "")
	t.Cleanup(c.Close)
	return c
}

// What is to be written is not sent to the new name of a repository.
func TestARenamedRepositoryIsNotWrittenTo(t *testing.T) {
	t.Parallel()
	c := answering(t, 307, "", "Location", "/api/v3/repositories/7/issues/1")
	err := c.SetIssueOpen(t.Context(), 1, false)
	want := "it leads to " + c.URL + "/api/v3/repositories/7/issues/1, which is not followed: if the repository was renamed, " +
		"set forge.repository to its new name"
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("it says %v", err)
	}
}

// A log has lines and colors; the lines are left.
func TestALogIsText(t *testing.T) {
	t.Parallel()
	s, hub := forgetest.GitHub(t)
	hub.Check("c0ffee", "build", "failure", "one\r\n\t\x1b[2Jtwo\a\n")
	c := forge.New(s.Where, s.Token(forgetest.Owner))
	t.Cleanup(c.Close)
	checks, err := c.Checks(t.Context(), "c0ffee")
	if err != nil || len(checks) != 1 {
		t.Fatalf("%v, %v", checks, err)
	}
	if text, err := c.Log(t.Context(), checks[0]); err != nil || text != "one\n\t[2Jtwo" {
		t.Errorf("it is %q, %v", text, err)
	}
}
