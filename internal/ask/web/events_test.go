package web

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/ask/web/activity"
	"github.com/pawl-dev/pawl/internal/ask/web/hub"
	"github.com/pawl-dev/pawl/internal/ask/web/listen"
	"github.com/pawl-dev/pawl/internal/ask/web/rest"
	"github.com/pawl-dev/pawl/internal/ask/web/view"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/keep/journal"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// seen is one event of a stream.
type seen struct {
	id, kind, data string
}

// stream is an open one.
type stream struct {
	t     *testing.T
	lines *bufio.Scanner
	close func()
}

// open asks a serving rig for a stream.
func (r *rig) open(path, last string) *stream {
	r.t.Helper()
	ctx, cancel := context.WithCancel(r.t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.s.listener.URL()+rest.Base+path, http.NoBody)
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+testToken)
	if last != "" {
		req.Header.Set("Last-Event-ID", last)
	}
	res, err := client.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	if res.StatusCode != http.StatusOK || !strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		r.t.Fatalf("%s: %d %s", path, res.StatusCode, read(r.t, res.Body))
	}
	s := &stream{t: r.t, lines: bufio.NewScanner(res.Body), close: func() { cancel(); _ = res.Body.Close() }}
	s.lines.Buffer(nil, 4<<20)
	r.t.Cleanup(s.close)
	return s
}

// next is the next event; false at the stream's end.
func (s *stream) next() (e seen, ok bool) {
	for s.lines.Scan() {
		name, value, _ := strings.Cut(s.lines.Text(), ": ")
		switch name {
		case "id":
			e.id = value
		case "event":
			e.kind = value
		case "data":
			e.data = value
		case "":
			return e, true
		}
	}
	return e, false
}

// until passes over other events up to one of the kind.
func (s *stream) until(kind string) seen {
	s.t.Helper()
	for {
		e, ok := s.next()
		if !ok {
			s.t.Fatalf("the stream ended before %s", kind)
		}
		if e.kind == kind {
			return e
		}
	}
}

// say stores an event beside a run's story.
func (r *rig) say(run, text string) {
	r.t.Helper()
	if _, err := journal.Append(r.t.Context(), r.store, run, noon, journal.Warning, journal.Notice{Text: text}); err != nil {
		r.t.Fatal(err)
	}
}

func (s *stream) notice() string {
	s.t.Helper()
	var e struct{ Data journal.Notice }
	if err := json.Unmarshal([]byte(s.until("journal").data), &e); err != nil {
		s.t.Fatal(err)
	}
	return e.Data.Text
}

// Every reader gets what happens, in order, with what another process writes.
func TestEventsReachEveryReader(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.run("abc123", nil)
	r.serve()
	streams := []*stream{r.open("/events", ""), r.open("/events", ""), r.open("/events?run=abc", "")}
	for _, s := range streams {
		if e, _ := s.next(); e.kind != "hello" || !strings.Contains(e.data, `"cursor":"1-0"`) {
			t.Fatalf("the first is %+v", e)
		}
	}
	other, err := store.Open(t.Context(), r.store.Path())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Close() }()
	for n := range 10 {
		if _, err := journal.Append(t.Context(), other, "abc123", noon, journal.Warning, journal.Notice{Text: fmt.Sprint(n)}); err != nil {
			t.Fatal(err)
		}
		for i, s := range streams {
			if got := s.notice(); got != fmt.Sprint(n) {
				t.Fatalf("reader %d got %s, not %d", i, got, n)
			}
		}
	}
	var added view.CaseDetail
	r.ask(http.MethodPost, "/cases", `{"title":"<script>alert(1)</script>"}`, &added)
	if e := streams[0].until("case"); e.id != "11-1" || !strings.Contains(e.data, `"id":"task-001"`) || !strings.Contains(e.data, `"action":"add"`) {
		t.Errorf("got %+v", e)
	}
}

// Who comes back is sent what it missed: nothing is missing, nothing is there
// twice, also when the server was started anew meanwhile.
func TestReaderComesBack(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.run("abc123", nil)
	end := r.serve()
	s := r.open("/events", "")
	s.until("hello")
	r.say("abc123", "one")
	last := s.until("journal").id
	s.close()
	r.say("abc123", "two")
	var added view.CaseDetail
	r.ask(http.MethodPost, "/cases", `{"title":"x"}`, &added)
	s = r.open("/events?after="+last, "")
	if got := s.notice(); got != "two" {
		t.Errorf("missed: got %s", got)
	}
	if e := s.until("case"); e.id != "3-1" {
		t.Errorf("the case has id %s", e.id)
	}
	live := r.open("/events", "")
	live.until("hello")
	if err := end(); err != nil {
		t.Fatal(err)
	}
	if live.until("bye"); live.lines.Scan() {
		t.Error("the stream goes on after its end")
	}
	r.say("abc123", "three")
	listener, err := listen.Open(t.Context(), listen.Address{Address: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	again := &rig{t: t, store: r.store, dir: r.dir, s: New(listener, r.s.o), host: listener.Shown}
	again.serve()
	s = again.open("/events", "3-1")
	if got := s.notice(); got != "three" {
		t.Errorf("after the restart: got %s", got)
	}
	r.say("abc123", "four")
	if got := s.notice(); got != "four" {
		t.Errorf("live after the restart: got %s", got)
	}
}

// Who missed too much, or has seen another database, is told to load anew.
func TestReaderFromElsewhere(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.run("abc123", nil)
	r.serve()
	for _, last := range []string{"99-0", "0-99", "nonsense", "-1--1"} {
		s := r.open("/events", last)
		s.until("hello")
		if e, _ := s.next(); e.kind != "reset" || e.id != "1-0" {
			t.Errorf("last %s: %+v", last, e)
		}
		s.close()
	}
	w := r.send(r.asking(http.MethodGet, rest.Base+"/events?run=zzz", ""))
	if p := r.problem(w, http.StatusNotFound); p.Code != "RUN_NOT_FOUND" {
		t.Errorf("%+v", p)
	}
}

// follow tells a dropped reader so, and ends.
func TestDroppedReaderIsTold(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	slow := &hub.Reader{Queue: make(chan hub.Frame, 1)}
	slow.Queue <- hub.NewFrame("7-0", "journal", hub.Event{Seq: 7})
	close(slow.Queue)
	w := newRecorder()
	r.s.streams.sendStream(t.Context(), &wire{w, http.NewResponseController(w)}, slow, "", hub.Cursor{Event: 6})
	text := w.Body.String()
	if !strings.Contains(text, "id: 7-0") || !strings.Contains(text, "event: dropped") || !strings.HasPrefix(text, "retry: 1000\nevent: hello") {
		t.Errorf("got %s", text)
	}
}

// Streams have a number, and the next one is refused with what to do.
func TestTooManyStreams(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.s.streams.open.Store(maxReaders)
	w := r.send(r.asking(http.MethodGet, rest.Base+"/events", ""))
	if p := r.problem(w, http.StatusServiceUnavailable); p.Code != "TOO_MANY_STREAMS" {
		t.Errorf("%+v", p)
	}
	if r.s.streams.open.Load() != maxReaders || r.s.hub.Watched() {
		t.Error("the refused one counts")
	}
}

const agentLines = `{"kind":"session","session":"s","model":"m"}
{"kind":"text","text":"<script>alert(1)</script> \u001b[31mred"}
{"kind":"tool","tool":"bash","command":"go test ./..."}
{"kind":"usage","usage":{"input":10,"output":5}}
`

// What a run does just now is told to whoever watches. Its checks are those that
// it was started or resumed with, not those of today's configuration.
func TestActivity(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.run("abc123", func(row *store.Run, _ *loop.State) {
		row.Iteration, row.Setup = 1, json.RawMessage(`{"checks":[{"name":"units","command":"true","required":true,"timeout":90000000000}]}`)
	})
	r.left("abc123", 1, map[string]string{"begun.json": `{"attempt":2,"at":"2026-11-20T12:00:00Z"}`, activity.EventsFile: agentLines})
	r.serve()
	s := r.open("/events", "")
	var a view.Activity
	if err := json.Unmarshal([]byte(s.until("activity").data), &a); err != nil {
		t.Fatal(err)
	}
	if a.Run != "abc123" || a.Attempt != 2 || a.Phase != "agent" || !a.Since.Equal(noon) || a.Last == nil || a.Last.Command != "go test ./..." || a.TokensIn != 10 || a.TokensOut != 5 {
		t.Errorf("got %+v", a)
	}
	if g := a.Gates; len(g) != 1 || g[0].Name != "units" || g[0].Status != "waiting" || !g[0].Required {
		t.Errorf("while the agent works the checks are %+v", g)
	}
	r.left("abc123", 1, map[string]string{"agent.result.json": "{}", "gate-1.result.json.tmp": ""})
	for {
		if err := json.Unmarshal([]byte(s.until("activity").data), &a); err != nil {
			t.Fatal(err)
		}
		if a.Phase == "gates" && len(a.Gates) == 1 && a.Gates[0].Name == "units" && a.Gates[0].Status == "running" && a.Gates[0].Timeout == 90 {
			break
		}
	}
	if err := os.Remove(filepath.Join(r.dir, "runs", "abc123", "1", "gate-1.result.json.tmp")); err != nil {
		t.Fatal(err)
	}
	r.left("abc123", 1, map[string]string{"gate-1.result.json": `{"elapsed":2000000000,"exit":{"code":1}}`, "gate-1.out": "red"})
	for {
		if err := json.Unmarshal([]byte(s.until("activity").data), &a); err != nil {
			t.Fatal(err)
		}
		if g := a.Gates; len(g) == 1 && g[0].Status == "failed" && g[0].Elapsed == 2 && g[0].File == "gate-1.out" {
			break
		}
	}
}

// Before the first agent the checks run on the files as they are: that is told as iteration 0,
// also to who comes while nothing changes, until the first iteration begins.
func TestActivityBeforeTheFirstAgent(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.run("abc123", func(row *store.Run, _ *loop.State) {
		row.Iteration, row.Setup = 1, json.RawMessage(`{"checks":[{"name":"units","command":"true","required":true},{"name":"lint","command":"true","required":true}]}`)
	})
	r.left("abc123", 0, map[string]string{"gate-1.result.json": `{"exit":{"code":1}}`, "gate-1.out": "red"})
	r.serve()
	next := func(s *stream) (a view.Activity) {
		if err := json.Unmarshal([]byte(s.until("activity").data), &a); err != nil {
			t.Fatal(err)
		}
		return a
	}
	s := r.open("/events", "")
	if a := next(s); a.Iteration != 0 || a.Phase != "gates" || a.Gates[0].Status != "failed" || a.Gates[1].Status != "waiting" {
		t.Errorf("after a red check: %+v", a)
	}
	if a := next(r.open("/events", "")); a.Iteration != 0 {
		t.Errorf("a second reader: %+v", a)
	}
	r.left("abc123", 0, map[string]string{"gate-2.result.json.tmp": ""})
	for a := next(s); a.Gates[1].Status != "running"; a = next(s) {
		t.Log("not yet", a.Gates)
	}
	r.left("abc123", 1, map[string]string{"begun.json": `{"attempt":1}`})
	r.left("abc123", 0, map[string]string{"gate-2.result.json": `{"exit":{"code":0}}`})
	for a := next(s); a.Iteration != 1; a = next(s) {
		t.Log("not yet", a.Gates)
	}
}

// The server ends in a bounded time although pages are open.
func TestEndWithOpenStreams(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.run("abc123", nil)
	r.left("abc123", 1, map[string]string{"begun.json": `{"attempt":1}`})
	end := r.serve()
	events := r.open("/events", "")
	events.until("hello")
	ended := make(chan error, 1)
	go func() { ended <- end() }()
	events.until("bye")
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Fatal("it does not end")
	}
}
