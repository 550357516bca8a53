package hook

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// posted is one request as the server saw it.
type posted struct {
	method, path, kind, auth, body string
}

// server answers the n-th request, from 0, with answer's status.
func server(t *testing.T, answer func(n int, w http.ResponseWriter)) (address string, requests chan posted) {
	t.Helper()
	requests = make(chan posted, 100)
	var count atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, _ := io.ReadAll(r.Body)
		requests <- posted{r.Method, r.URL.RequestURI(), r.Header.Get("Content-Type"), r.Header.Get("Authorization"), string(data)}
		answer(int(count.Add(1))-1, w)
	}))
	t.Cleanup(s.Close)
	return s.URL, requests
}

func send(t *testing.T, w Webhook, e Event) error {
	t.Helper()
	if w.Timeout == 0 {
		w.Timeout = time.Minute
	}
	s := newSender([]time.Duration{time.Millisecond, time.Millisecond})
	defer s.closeIdle()
	return s.sendWebhook(t.Context(), w, e.completeEvent(time.Now()))
}

func TestWebhookBody(t *testing.T) {
	t.Parallel()
	address, requests := server(t, func(int, http.ResponseWriter) {})
	e := Event{Name: Pause, Subject: "build", Run: "r1", Why: "asked"}
	if err := send(t, Webhook{Address: address + "/a/b?c=d", Headers: map[string]string{"Authorization": "Bearer x"}}, e); err != nil {
		t.Fatal(err)
	}
	got := <-requests
	if got.method != "POST" || got.path != "/a/b?c=d" || got.kind != "application/json" || got.auth != "Bearer x" {
		t.Errorf("%+v", got)
	}
	var b struct {
		Text, Content string
		Event         struct{ Event, Run, Why string }
	}
	if err := json.Unmarshal([]byte(got.body), &b); err != nil {
		t.Fatal(err)
	}
	if want := "build (run r1) is paused: asked"; b.Text != want || b.Content != want || b.Event.Event != "pause" || b.Event.Run != "r1" || b.Event.Why != "asked" {
		t.Errorf("%+v", b)
	}
	if err := send(t, Webhook{Address: address, Plain: true}, e); err != nil {
		t.Fatal(err)
	}
	if got := <-requests; got.body != "build (run r1) is paused: asked\n" || !strings.HasPrefix(got.kind, "text/plain") {
		t.Errorf("as text: %+v", got)
	}
}

// What may pass is tried again, as often as there are pauses.
func TestWebhookTriesAgain(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		statuses []int
		tries    int
		problem  string
	}{
		{[]int{200}, 1, ""},
		{[]int{204}, 1, ""},
		{[]int{500, 429, 200}, 3, ""},
		{[]int{408, 200}, 2, ""},
		{[]int{503, 503, 503, 200}, 3, "the server answered 503 Service Unavailable: no (tried 3 times)"},
		{[]int{404, 200}, 1, "the server answered 404 Not Found: no"},
		{[]int{400, 200}, 1, "the server answered 400 Bad Request: no"},
	} {
		address, requests := server(t, func(n int, w http.ResponseWriter) {
			w.WriteHeader(c.statuses[n])
			if c.statuses[n] >= 300 {
				_, _ = io.WriteString(w, "no\nmore of it")
			}
		})
		err := send(t, Webhook{Address: address}, Event{Name: Start})
		problem := ""
		if err != nil {
			problem = err.Error()
		}
		if problem != c.problem || len(requests) != c.tries {
			t.Errorf("%v: %d tries, %q; want %d, %q", c.statuses, len(requests), problem, c.tries, c.problem)
		}
	}
}

// A redirect leads nowhere: the event goes to the address that the person
// wrote, or nowhere.
func TestWebhookFollowsNoRedirect(t *testing.T) {
	t.Parallel()
	elsewhere, there := server(t, func(int, http.ResponseWriter) {})
	for _, code := range []int{301, 302, 303, 307, 308} {
		address, requests := server(t, func(_ int, w http.ResponseWriter) {
			w.Header().Set("Location", elsewhere+"/x")
			w.WriteHeader(code)
		})
		err := send(t, Webhook{Address: address, Headers: map[string]string{"Authorization": "Bearer x"}}, Event{Name: Start})
		if err == nil || !strings.Contains(err.Error(), "follows no redirect") {
			t.Errorf("%d: %v", code, err)
		}
		if len(requests) != 1 {
			t.Errorf("%d: %d tries", code, len(requests))
		}
	}
	if len(there) != 0 {
		t.Error("the event went elsewhere")
	}
}

// No error has what may be a secret: path, query, password or header, even
// when the server says it back.
func TestWebhookKeepsSecrets(t *testing.T) {
	t.Parallel()
	echo := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "no "+r.URL.String()+" "+r.URL.Path+" "+r.Header.Get("Authorization"), http.StatusForbidden)
	}))
	t.Cleanup(echo.Close)
	for _, address := range []string{
		"http://user:hunter2pass@127.0.0.1:1/services/T000/hunter2path?key=hunter2query", echo.URL + "/services/hunter2path?key=hunter2query",
		"http://127.0.0.1:1/\x7fhunter2path", "ftp://hunter2host/hunter2path", "://hunter2path", "http://[::1/hunter2path",
	} {
		err := send(t, Webhook{Address: address, Headers: map[string]string{"Authorization": "Bearer hunter2token"}}, Event{Name: Start})
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("the error for %q is %v", address, err)
		}
		if errors.Unwrap(err) != nil {
			t.Error("the error holds another one")
		}
	}
}

// A server that says nothing is given up after the time of one try, each time.
func TestWebhookThatHangs(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	address, requests := server(t, func(int, http.ResponseWriter) { <-release })
	t.Cleanup(func() { close(release) })
	err := send(t, Webhook{Address: address, Timeout: 10 * time.Millisecond}, Event{Name: Start})
	if err == nil || err.Error() != "no answer within 10ms (tried 3 times)" {
		t.Errorf("%v after %d requests", err, len(requests))
	}
}

// An answer without end is read to a bound.
func TestWebhookThatFloods(t *testing.T) {
	t.Parallel()
	address, _ := server(t, func(_ int, w http.ResponseWriter) {
		w.WriteHeader(http.StatusBadRequest)
		for _, err := io.WriteString(w, strings.Repeat("x", 4096)); err == nil; {
			_, err = io.WriteString(w, strings.Repeat("x", 4096))
		}
	})
	err := send(t, Webhook{Address: address}, Event{Name: Start})
	if err == nil || len(err.Error()) > 300 {
		t.Errorf("%v", err)
	}
}

// Events reach a receiver in their order, also when one must be tried again.
func TestWebhookOrder(t *testing.T) {
	t.Parallel()
	address, requests := server(t, func(n int, w http.ResponseWriter) {
		if n == 0 {
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	r, h := runner(t, Options{Backoff: []time.Duration{time.Millisecond}, Receivers: []Receiver{
		{Label: "notify[0]", Events: Names(), Webhook: &Webhook{Address: address, Plain: true, Timeout: time.Minute}},
	}})
	for _, text := range []string{"one", "two", "three"} {
		r.Fire(t.Context(), Event{Name: Start, Text: text})
	}
	r.Close(t.Context())
	close(requests)
	var got []string
	for p := range requests {
		got = append(got, strings.TrimSpace(p.body))
	}
	if strings.Join(got, " ") != "one one two three" || h.all() != "" {
		t.Errorf("sent %v, said %q", got, h.all())
	}
}
