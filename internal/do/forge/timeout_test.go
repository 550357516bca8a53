package forge

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// A forge that is silent, at first or in the middle of an answer, is told in plain words.
func TestNoAnswerInTime(t *testing.T) {
	t.Parallel()
	for begins, want := range map[bool]string{
		false: ": it does not answer within 30s", true: ": its answer is not complete within 30s",
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if begins {
				w.Header().Set("Content-Length", "7")
				w.WriteHeader(http.StatusOK)
				_ = http.NewResponseController(w).Flush()
			}
			<-r.Context().Done()
		}))
		t.Cleanup(s.Close)
		c := New(Where{Kind: GitHub, URL: s.URL, Repository: "olga/project"}, "")
		t.Cleanup(c.Close)
		c.web.Timeout = time.Second
		if _, err := c.User(t.Context()); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("it says %v", err)
		}
	}
}
