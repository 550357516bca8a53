package web

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"testing"

	"github.com/pawl-dev/pawl/internal/ask/web/rest"
	"github.com/pawl-dev/pawl/internal/decide/board"
)

// On a thin line what counts are bytes: the pages and long lists come compressed.
func TestAnswersAreCompressed(t *testing.T) {
	r := newRig(t)
	drafts := make([]board.Draft, 1000)
	for i := range drafts {
		drafts[i].Case = board.Case{Title: fmt.Sprintf("Case number %d of many", i+1), Tags: []string{fmt.Sprintf("t%d", i%50)}}
	}
	if _, err := r.store.AddCases(t.Context(), drafts, board.Person, noon); err != nil {
		t.Fatal(err)
	}
	page := r.send(r.asking(http.MethodGet, "/", "")).Body.String()
	script := regexp.MustCompile(`/assets/index-[\w-]+\.js`).FindString(page)
	for path, most := range map[string]int{rest.Base + "/cases?limit=1000": 15_000, script: 60_000} {
		req := r.asking(http.MethodGet, path, "")
		plain := r.send(req).Body.Len()
		req.Header.Set("Accept-Encoding", "gzip, deflate, br, zstd")
		w := r.send(req)
		sent := w.Body.Len()
		if w.Header().Get("Content-Encoding") != "gzip" || w.Header().Get("Vary") != "Accept-Encoding" || sent > most {
			t.Errorf("%s: %d of %d bytes are sent, more than %d; %v", path, sent, plain, most, w.Header())
			continue
		}
		in, err := gzip.NewReader(w.Body)
		if err != nil {
			t.Fatal(err)
		}
		if n, err := io.Copy(io.Discard, in); err != nil || int(n) != plain {
			t.Errorf("%s: %d bytes come out, not %d; %v", path, n, plain, err)
		}
	}
}

// Events arrive when they happen, so nothing collects them first; a part of a file is of its bytes.
func TestEventsAndPartsAreNotCompressed(t *testing.T) {
	r := newRig(t)
	r.serve()
	ask := func(path, header, value string) *http.Response {
		req := r.asking(http.MethodGet, "http://"+r.host+path, "")
		req.RequestURI = ""
		req.Header.Set("Accept-Encoding", "gzip")
		req.Header.Set(header, value)
		res, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = res.Body.Close() })
		if got := res.Header.Get("Content-Encoding"); got != "" {
			t.Errorf("%s is sent as %s", path, got)
		}
		return res
	}
	events := ask(rest.Base+"/events", "Accept", "text/event-stream")
	first := make([]byte, 12)
	if _, err := io.ReadFull(events.Body, first); err != nil || string(first) != "retry: 1000\n" {
		t.Errorf("the first event is %q, %v", first, err)
	}
	part := ask("/index.html", "Range", "bytes=1-8")
	if text, err := io.ReadAll(part.Body); err != nil || part.StatusCode != http.StatusPartialContent || string(text) != "!doctype" {
		t.Errorf("status %d, %q, %v", part.StatusCode, text, err)
	}
}
