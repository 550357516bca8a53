package store

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/keep/journal"
	"github.com/pawl-dev/pawl/internal/keep/store/rows"
)

func TestEventsArePaged(t *testing.T) {
	t.Parallel()
	s, r := begun(t, "r1")
	ctx := t.Context()
	must(t, s.Create(ctx, run("r2", "other"), event("r2", 1, "run.created"), nobody))
	for n := int64(2); n <= 5; n++ {
		must(t, s.Commit(ctx, stepOf(r, n)))
	}
	beside := journal.Event{Run: "r1", At: noon, Kind: journal.Warning}
	first, err := s.Append(ctx, beside)
	must(t, err)
	second, err := s.Append(ctx, beside) // the same again is another one
	must(t, err)
	if second <= first {
		t.Errorf("seqs %d, %d", first, second)
	}

	var seen []journal.Event
	for after := int64(0); ; {
		page, err := s.Events(ctx, "r1", after, 2)
		must(t, err)
		if len(page) == 0 {
			break
		}
		seen = append(seen, page...)
		after = page[len(page)-1].Seq
	}
	if len(seen) != 7 {
		t.Fatalf("%d events of r1", len(seen))
	}
	if e := seen[6]; e.N != 0 || e.Data != nil || !e.At.Equal(noon) || e.Seq != second {
		t.Errorf("beside: %+v", e)
	}
	all, err := s.Events(ctx, "", 0, 100)
	must(t, err)
	if len(all) != 8 || all[1].Run != "r2" {
		t.Errorf("all events: %+v", all)
	}
	if none, err := s.Events(ctx, "r1", 0, 0); err != nil || none != nil {
		t.Errorf("a limit of zero: %v, %v", none, err)
	}
	if _, err := s.Append(ctx, event("r1", 6, "x")); err == nil {
		t.Error("a numbered event without its state")
	}
}

func TestDataVersionSeesEveryCommit(t *testing.T) {
	t.Parallel()
	s, r := begun(t, "r1")
	other, ctx := open(t, s.Path()), t.Context()
	last := int64(0)
	version := func() int64 {
		v, err := s.DataVersion(ctx)
		must(t, err)
		for until := time.Now().Add(time.Minute); s.shared && v == last && time.Now().Before(until); {
			v, err = s.DataVersion(ctx) // a server's notice may come a little later
			must(t, err)
		}
		last = v
		return v
	}
	before := version()
	if now, err := s.DataVersion(ctx); err != nil || now != before {
		t.Errorf("nothing happened, but %d is %d (%v)", before, now, err)
	}
	must(t, s.Commit(ctx, stepOf(r, 2))) // our own
	mine := version()
	if mine == before {
		t.Error("our own commit was not seen")
	}
	must(t, other.Commit(ctx, stepOf(r, 3)))
	theirs := version()
	if theirs == mine {
		t.Error("another store's commit was not seen")
	}
	p := start(t, "create", s.Path(), "r9")
	if l := p.line(); l != "done" {
		t.Fatalf("child says %q", l)
	}
	if version() == theirs {
		t.Error("another process's commit was not seen")
	}
}

func TestControlsAreTakenOnce(t *testing.T) {
	t.Parallel()
	s, r := begun(t, "r1")
	other, ctx := open(t, s.Path()), t.Context()
	must(t, s.Create(ctx, run("r2", "other"), event("r2", 1, "x"), nobody))
	for _, kind := range []string{ControlPause, ControlAnswer, ControlStop} {
		_, err := other.AddControl(ctx, Control{Run: "r1", Kind: kind, Text: "text of " + kind, At: noon})
		must(t, err)
	}
	if _, err := s.AddControl(ctx, Control{Run: "none", Kind: ControlStop}); !errors.Is(err, ErrNotFound) {
		t.Errorf("a control for no run: %v", err)
	}

	open, err := s.Controls(ctx, "r1")
	must(t, err)
	if len(open) != 3 || open[1].Kind != ControlAnswer || open[1].Text != "text of answer" || !open[1].At.Equal(noon) {
		t.Fatalf("open: %+v", open)
	}
	// The answer is carried out by a commit, and belongs to it.
	step := stepOf(r, 2)
	step.Taken = []int64{open[1].ID}
	must(t, s.Commit(ctx, step))

	for _, st := range []*Store{s, other} {
		left, err := st.Controls(ctx, "r1")
		must(t, err)
		if len(left) != 2 || left[0].Kind != ControlPause || left[1].Kind != ControlStop {
			t.Errorf("left: %+v", left)
		}
	}
}

// A step that is refused takes nothing with it.
func TestControlOfARefusedStepStays(t *testing.T) {
	t.Parallel()
	s, r := begun(t, "r1")
	ctx := t.Context()
	id, err := s.AddControl(ctx, Control{Run: "r1", Kind: ControlAnswer, Text: "yes", At: noon})
	must(t, err)
	step := stepOf(r, 5) // leaves a gap
	step.Taken = []int64{id}
	if err := s.Commit(ctx, step); !errors.Is(err, ErrOutOfOrder) {
		t.Fatalf("a gap: %v", err)
	}
	if open, err := s.Controls(ctx, "r1"); err != nil || len(open) != 1 {
		t.Errorf("open: %v, %v", open, err)
	}
}

// The queries that run at every step or poll use an index, whatever the size.
func TestQueriesUseTheirIndex(t *testing.T) {
	t.Parallel()
	fileOnly(t)
	s := fresh(t)
	for query, index := range map[string]string{
		`SELECT data FROM events WHERE run = 'r' AND seq > 5 ORDER BY seq LIMIT 10`:                          "events_of_run (run=? AND rowid>?)",
		`SELECT data FROM events WHERE seq > 5 ORDER BY seq LIMIT 10`:                                        "INTEGER PRIMARY KEY (rowid>?)",
		`SELECT data FROM events WHERE run = 'r' AND n IS NOT NULL ORDER BY n DESC LIMIT 1`:                  "events_once (run=?",
		`SELECT 1 FROM events WHERE run = 'r' AND n = 5 AND at = 1 AND kind = 'x' AND data = ''`:             "events_once (run=? AND n=?)",
		`SELECT id FROM controls WHERE run = 'r' AND taken_at = 0 ORDER BY id`:                               "controls_open (run=?)",
		`SELECT id FROM runs WHERE root = 'a' AND name = 'b' AND owner_pid <> 0 ORDER BY rowid`:              "runs_owned (root=? AND name=?)",
		`SELECT id FROM runs WHERE root = 'a' AND name = 'b' ORDER BY started_at DESC, rowid DESC LIMIT 1`:   "runs_by_name (root=? AND name=?)",
		`SELECT id FROM runs WHERE ended_at = 0 ORDER BY started_at DESC, rowid DESC LIMIT 10`:               "runs_open",
		`SELECT id FROM runs ORDER BY started_at DESC, rowid DESC LIMIT 10`:                                  "runs_by_start",
		`SELECT id FROM runs WHERE id >= 'a' AND id < 'b' ORDER BY id LIMIT 3`:                               "sqlite_autoindex_runs_1 (id>? AND id<?)",
		`SELECT record FROM iterations WHERE run = 'r' ORDER BY number DESC, attempt DESC LIMIT 20`:          "sqlite_autoindex_iterations_1 (run=?)",
		`SELECT id FROM runs WHERE root = 'a' AND ended_at = 0 ORDER BY started_at DESC, rowid DESC LIMIT 9`: "INDEX runs_",
	} {
		var plan []string
		must(t, s.reads.Each(t.Context(), func(row rows.Row) error {
			var a, b, c int
			var detail string
			err := row.Scan(&a, &b, &c, &detail)
			plan = append(plan, detail)
			return err
		}, `EXPLAIN QUERY PLAN `+query))
		if got := strings.Join(plan, "; "); !strings.Contains(got, index) {
			t.Errorf("%s\n plan %s\n want %s", query, got, index)
		}
	}
}

// What others write is seen, right after the last look and long after it.
func TestDataVersionSeesEveryWrite(t *testing.T) {
	fileOnly(t)
	t.Parallel()
	path := newPath(t)
	var both [2]*Store
	for i := range both {
		s, err := Open(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		both[i] = s
	}
	look := func() int64 {
		t.Helper()
		v, err := both[0].DataVersion(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	for i := range 50 {
		if old := time.Now().Add(-time.Hour); i%2 == 0 {
			if err := os.Chtimes(path+"-wal", old, old); err != nil {
				t.Fatal(err)
			}
		}
		before := look()
		if again := look(); again != before {
			t.Fatalf("write %d: %d and then %d, and nobody wrote", i, before, again)
		}
		draft := []board.Draft{{Case: board.Case{Type: board.Task, Title: "x"}}}
		if _, err := both[1].AddCases(t.Context(), draft, board.Person, time.Now()); err != nil {
			t.Fatal(err)
		}
		if look() == before {
			t.Fatalf("write %d was not seen", i)
		}
	}
}
