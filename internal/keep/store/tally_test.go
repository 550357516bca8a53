package store

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/queue"
	"github.com/pawl-dev/pawl/internal/decide/stats"
	"github.com/pawl-dev/pawl/internal/keep/journal"
	"github.com/pawl-dev/pawl/internal/keep/store/database"
	"github.com/pawl-dev/pawl/internal/keep/store/sqlite"
)

// old is a store with the schema of before the tallies.
func old(t testing.TB) *Store {
	t.Helper()
	db, _, err := sqlite.Open(filepath.Join(t.TempDir(), "pawl.db"))
	must(t, err)
	s := newStore(db)
	t.Cleanup(func() { _ = s.Close() })
	files, _ := db.Steps()
	steps, err := database.Migrations(files)
	must(t, err)
	must(t, s.migrateTo(t.Context(), steps[:7]))
	return s
}

// teller writes a history: each deed an hour after the one before.
type teller struct {
	t  testing.TB
	s  *Store
	at time.Time
	r  Run
	n  int64
}

func (w *teller) move(id string, a board.Action) {
	w.t.Helper()
	_, err := w.s.MoveCase(w.t.Context(), id, board.Change{Action: a, By: board.Pawl, At: w.at})
	must(w.t, err)
}

func (w *teller) begin(id, kind, name, agent string) {
	w.t.Helper()
	r := run(id, name)
	r.Kind, r.Agent, r.StartedAt = kind, agent, w.at
	e := event(id, 1, journal.RunCreated)
	e.At = w.at
	must(w.t, w.s.Create(w.t.Context(), r, e, nobody))
	w.r, w.n = r, 1
}

func (w *teller) tell(kind string, data any, rec *loop.Record) {
	w.t.Helper()
	w.n++
	e, err := journal.New(w.r.ID, w.n, w.at, kind, data)
	must(w.t, err)
	if rec != nil {
		w.r.Iteration = rec.Number
	}
	must(w.t, w.s.Commit(w.t.Context(), Step{Run: w.r, Event: e, Record: rec}))
}

func (w *teller) iterate(number, attempt int, outcome loop.Outcome, took time.Duration) *loop.Record {
	w.t.Helper()
	rec := record(number, attempt)
	rec.StartedAt, rec.Elapsed, rec.Outcome, rec.Agent = w.at, took, outcome, w.r.Agent
	rec.Cost, rec.CostSource, rec.TokensIn, rec.TokensOut = 100, "reported", 10, 1
	if number == 1 {
		rec.CostSource = "none"
	}
	w.tell(journal.IterationEnded, map[string]any{"next": map[string]any{"kind": "run"}}, rec)
	return rec
}

// history is a day at work: a procedure, then a sprint with two tasks.
func history(t testing.TB, s *Store) {
	t.Helper()
	ids := addAll(t, s, draft("one"), draft("two"))
	w := &teller{t: t, s: s, at: noon}
	w.begin("p1", "procedure", "build", "other")
	w.iterate(1, 1, loop.Success, time.Second)

	w.at = noon.Add(time.Hour)
	started := w.at
	must(t, s.SaveSprint(t.Context(), Sprint{ID: "2026-11-20-001", StartedAt: started, Stats: json.RawMessage(`{}`)}))
	w.move(ids[0], board.Start)
	w.begin("r1", "task", ids[0], "script")
	w.iterate(1, 1, loop.Failed, 2*time.Second)
	w.tell(journal.WaitStarted, journal.Wait{}, nil)
	w.at = w.at.Add(time.Minute)
	w.tell(journal.WaitOver, journal.Wait{}, nil)
	w.iterate(2, 1, loop.Waited, 9*time.Second)
	rec := w.iterate(2, 2, loop.Failed, 4*time.Second)
	rec.Outcome = loop.Success // its review is over: the same iteration is stored again
	w.tell(journal.IterationReviewed, nil, rec)
	w.tell(journal.QuestionAsked, journal.Question{Text: "?"}, nil)
	w.at = w.at.Add(2 * time.Minute)
	w.tell(journal.Answered, journal.Answer{Text: "!"}, nil)
	w.iterate(3, 1, loop.Failed, 3*time.Second)
	w.tell(journal.IterationEnded, map[string]any{"next": map[string]any{"guard": "thrashing"}}, nil)
	w.move(ids[0], board.Fail)
	w.begin("r2", "task", ids[0], "second")
	w.iterate(1, 1, loop.Success, time.Second)
	e, err := journal.New(QueueRun("refs/heads/main"), 0, w.at, "queue.conflict", queue.Note{Kind: queue.NoteConflict, ID: ids[0], Text: "both"})
	must(t, err)
	_, err = s.Append(t.Context(), e)
	must(t, err)
	w.begin("r4", "task", ids[0]+"-merge", "second")
	w.iterate(1, 1, loop.Success, time.Second)
	w.move(ids[0], board.Land)
	must(t, s.SaveSprint(t.Context(), Sprint{ID: "2026-11-20-001", StartedAt: started, EndedAt: w.at, Stats: json.RawMessage(`{}`)}))

	w.at = noon.Add(24 * time.Hour)
	w.move(ids[1], board.Start)
	w.begin("r3", "task", ids[1], "script")
	w.iterate(1, 1, loop.Neutral, 5*time.Second)
	w.move(ids[1], board.Expire)
}

func tallies(t testing.TB, s *Store, by stats.By) []stats.Tally {
	t.Helper()
	list, err := s.Tallies(t.Context(), by, time.Time{}, noon.AddDate(0, 0, 2), time.UTC, 10)
	must(t, err)
	return list
}

// What is summed up as it happens is what the history says, by whatever it is
// told apart.
func TestTallies(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	history(t, s)
	want := map[stats.By]string{
		stats.All: " i7 +4 -2 retries 1/1 26s 1s..5s cost 300/3 in 80 waited 1m0s asked 2m0s guards 1 started 2 landed 1 in 5 (5..5) failed 1 out 1 conflicts 1\n",
		stats.Day: "2026-11-20 i6 +4 -2 retries 1/1 21s 1s..4s cost 300/3 in 70 waited 1m0s asked 2m0s guards 1 started 1 landed 1 in 5 (5..5) failed 1 out 0 conflicts 1\n" +
			"2026-11-21 i1 +0 -0 retries 0/0 5s 5s..5s cost 0/0 in 10 waited 0s asked 0s guards 0 started 1 landed 0 in 0 (0..0) failed 0 out 1 conflicts 0\n",
		stats.Sprint: "2026-11-20-001 i5 +3 -2 retries 1/1 20s 1s..4s cost 300/3 in 60 waited 1m0s asked 2m0s guards 1 started 1 landed 1 in 5 (5..5) failed 1 out 0 conflicts 1\n",
	}
	for by, text := range want {
		if got := told(tallies(t, s, by)); got != text {
			t.Errorf("by %q:\n%swant\n%s", by, got, text)
		}
	}
	agents := tallies(t, s, stats.Agent)
	if len(agents) != 3 || agents[0].Key != "other" || agents[1].Key != "script" || agents[1].Iterations != 4 || agents[2].Landed != 1 {
		t.Errorf("agents:\n%s", told(agents))
	}
	tasks := tallies(t, s, stats.Task)
	if len(tasks) != 2 || tasks[0].Key != "task-002" || tasks[1].Iterations != 5 || tasks[1].Waited != time.Minute || tasks[1].Landed != 1 || tasks[1].Most != 5 || tasks[1].Conflicts != 1 {
		t.Errorf("tasks:\n%s", told(tasks))
	}
	// A task is started before it has an agent.
	sum := stats.Sum(agents)
	sum.Started = 2
	if all := tallies(t, s, stats.All); len(all) != 1 || sum != all[0] {
		t.Errorf("agents are %+v, all is %+v", sum, all)
	}
	late, err := s.Tallies(t.Context(), stats.All, noon.Add(12*time.Hour), noon.AddDate(0, 0, 2), time.UTC, 10)
	if err != nil || len(late) != 1 || late[0].Iterations != 1 {
		t.Errorf("%+v, %v", late, err)
	}
}

func told(list []stats.Tally) string {
	out := ""
	for _, t := range list {
		out += fmt.Sprintf("%s i%d +%d -%d retries %d/%d %v %v..%v cost %d/%d in %d waited %v asked %v guards %d started %d landed %d in %d (%d..%d) failed %d out %d conflicts %d\n",
			t.Key, t.Iterations, t.Succeeded, t.Failed, t.Retries, t.Cured, t.Elapsed, t.Fastest, t.Slowest, t.Cost, t.CostKnown, t.TokensIn,
			t.Waited, t.Asked, t.Guards, t.Started, t.Landed, t.TaskIterations, t.Fewest, t.Most, t.GaveUp, t.TimedOut, t.Conflicts)
	}
	return out
}

// A database of before is summed up once, to what it would have been.
func TestTalliesOfOlder(t *testing.T) {
	t.Parallel()
	fileOnly(t)
	now, before := fresh(t), old(t)
	history(t, now)
	column := func(change string) { // what this pawl reads of a case, while it writes the history
		_, err := before.write.conn.ExecContext(t.Context(), `ALTER TABLE `+change)
		must(t, err)
	}
	added := map[string][]string{"case_texts": {"control", "verify", "sealed"}, "case_history": {"person", "host"}}
	for table, names := range added {
		for _, name := range names {
			column(table + ` ADD COLUMN ` + name + ` TEXT NOT NULL DEFAULT 'null'`)
		}
	}
	history(t, before)
	for table, names := range added {
		for _, name := range names {
			column(table + ` DROP COLUMN ` + name)
		}
	}
	must(t, before.migrateSchema(t.Context()))
	for _, by := range []stats.By{stats.All, stats.Day, stats.Sprint, stats.Task} {
		a, b := tallies(t, now, by), tallies(t, before, by)
		for i := range b { // what landed then was counted without its agents at conflicts
			b[i].TaskIterations, b[i].Fewest, b[i].Most = a[i].TaskIterations, a[i].Fewest, a[i].Most
		}
		if !reflect.DeepEqual(a, b) {
			t.Errorf("by %q: it was\n%safter the migration\n%s", by, told(a), told(b))
		}
	}
}

// Days begin where the zone's do, also around a change of the clocks.
func TestDaysOfZone(t *testing.T) {
	t.Parallel()
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Skipf("no zone files: %v", err)
	}
	s := fresh(t)
	w := &teller{t: t, s: s, at: time.Date(2026, 10, 24, 21, 59, 0, 0, time.UTC)} // 23:59 on the 24th
	w.begin("r1", "task", "task-1", "script")
	for i, at := range []time.Time{
		w.at,
		time.Date(2026, 10, 24, 22, 0, 0, 0, time.UTC),  // 00:00 on the 25th, which is 25 hours long
		time.Date(2026, 10, 25, 22, 59, 0, 0, time.UTC), // 23:59
		time.Date(2026, 10, 25, 23, 0, 0, 0, time.UTC),  // 00:00 on the 26th
	} {
		w.at = at
		w.iterate(i+1, 1, loop.Success, time.Second)
	}
	now := time.Date(2026, 10, 30, 12, 0, 0, 0, time.UTC)
	const want = "2026-10-24:1 2026-10-25:2 2026-10-26:1 "
	for _, since := range []time.Time{{}, stats.Since(now, 7, zone), stats.Since(now, 300, zone)} {
		list, err := s.Tallies(t.Context(), stats.Day, since, now, zone, 0)
		must(t, err)
		got := ""
		for _, d := range list {
			got += fmt.Sprintf("%s:%d ", d.Key, d.Iterations)
		}
		if got != want {
			t.Errorf("tallies since %v: %s", since, got)
		}
		usage, err := s.UsageByDay(t.Context(), since, now, zone)
		must(t, err)
		got = ""
		for _, d := range usage {
			got += fmt.Sprintf("%s:%d ", d.Day, d.Iterations)
		}
		if got != want {
			t.Errorf("usage since %v: %s", since, got)
		}
	}
	w.r.Status, w.r.EndedAt = "completed", w.at
	w.tell(journal.Finished, nil, nil)
	ended, err := s.ThroughputByDay(t.Context(), stats.Since(now, 30, zone), now, zone)
	if err != nil || len(ended) != 1 || ended[0].Day != "2026-10-26" {
		t.Errorf("%+v, %v", ended, err)
	}
}

// BenchmarkTallies sums up a year: 100,000 tasks with a million iterations.
//
//	go test ./internal/keep/store -run '^$' -bench Tallies -benchtime 5x
func BenchmarkTallies(b *testing.B) {
	s := fresh(b)
	const tasks = 100_000
	ctx := context.Background()
	must(b, s.runWrite(ctx, crashSafe, func(ctx context.Context, w *statements) error {
		for _, q := range []string{
			`CREATE TEMP TABLE n AS WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 99999) SELECT i FROM n`,
			`INSERT INTO sprints SELECT printf('2026-%03d', i), i * 315360000, (i + 1) * 315360000 - 1, '{}' FROM n WHERE i < 100`,
			`INSERT INTO cases (id, number, type, title, tags, priority, parent, ref, status, why, retries, created_at, updated_at, ready, score, unmet, unblocks, held, children, children_done)
				SELECT 'task-' || i, i, 'task', 'a task', '', 0, '', '', 'done', '', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 FROM n`,
			`INSERT INTO runs SELECT 'r' || i, 'task', 'task-' || i, '/repo', 'completed', '', 1, 10, 50, 'agent-' || (i % 4), 100, 1, 1, 1, 0, '', '', '', i * 315360, i * 315360, i * 315360 + 1, 1000, '{}' FROM n`,
			`INSERT INTO iterations SELECT 'r' || n.i, k.i + 1, 1, CASE (n.i + k.i) % 3 WHEN 0 THEN 'failed' ELSE 'success' END, n.i * 315360 + k.i * 1000, 900,
				json_object('agent', 'agent-' || (n.i % 4), 'cost_micro_usd', 100, 'cost_source', 'reported', 'tokens_in', 10, 'tokens_out', 1) FROM n JOIN n k ON k.i < 10`,
			`INSERT INTO case_history (id, at, action, actor, from_status, to_status, why) SELECT 'task-' || i, i * 315360, 'start', 'pawl', '', '', '' FROM n`,
			`INSERT INTO case_history (id, at, action, actor, from_status, to_status, why) SELECT 'task-' || i, i * 315360 + 9000, 'land', 'pawl', '', '', '' FROM n`,
		} {
			if _, err := w.Exec(ctx, q); err != nil {
				return fmt.Errorf("%s: %w", q, err)
			}
		}
		return nil
	}))
	now := time.UnixMilli(tasks * 315360)
	for _, by := range []stats.By{stats.All, stats.Day, stats.Agent, stats.Sprint, stats.Task} {
		b.Run("by="+string(by), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				list, err := s.Tallies(ctx, by, time.Time{}, now, time.UTC, 50)
				must(b, err)
				if by == stats.All && list[0].Iterations != 10*tasks {
					b.Fatalf("%+v", list)
				}
			}
		})
	}
}

// What a person landed took no iterations, and is not part of the mean.
func TestTallyOfWhatAPersonLanded(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	w := &teller{t: t, s: s, at: noon}
	ids := addAll(t, s, draft("a"), draft("b"))
	w.move(ids[0], board.Start)
	w.begin("r1", "task", ids[0], "script")
	r := w.r
	r.Iteration, r.Agent = 3, "" // it has ended, and nobody works
	must(t, s.Commit(t.Context(), Step{Run: r, Event: event("r1", 2, "x")}))
	for _, a := range []board.Action{board.Verify, board.Land} {
		w.move(ids[0], a)
	}
	for _, a := range []board.Action{board.Start, board.Verify, board.Land} {
		w.move(ids[1], a)
	}
	for by, landed := range map[stats.By]int{stats.All: 2, stats.Day: 2, stats.Agent: 1} {
		list, err := s.Tallies(t.Context(), by, time.Time{}, noon, time.UTC, 10)
		must(t, err)
		all := stats.Sum(list)
		if mean, _ := all.MeanIterations(); all.Landed != landed || mean != 3 || all.Fewest != 3 {
			t.Errorf("%v: %d landed after %g iterations: %+v", by, all.Landed, mean, all)
		}
	}
}

// A landing that was reverted is not counted any more, neither on its own day nor for its task. One that follows is.
func TestTallyOfALandingThatWasReverted(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	w := &teller{t: t, s: s, at: noon}
	ids := addAll(t, s, draft("a"), draft("b"))
	for _, id := range ids {
		w.move(id, board.Start)
		w.begin("r-"+id, "task", id, "script")
		w.iterate(1, 1, loop.Success, time.Second)
		r := w.r
		r.Iteration, r.Agent = 1, ""
		must(t, s.Commit(t.Context(), Step{Run: r, Event: event(r.ID, 3, "x")}))
		w.move(id, board.Verify)
		w.move(id, board.Land)
	}
	check := func(want int) {
		t.Helper()
		for _, by := range []stats.By{stats.All, stats.Day, stats.Agent, stats.Task} {
			all := stats.Sum(tallies(t, s, by))
			if all.Landed != want || all.TaskIterations != want || all.Worked != want {
				t.Errorf("%q: %d landed, %d with a loop in %d iterations, want %d", by, all.Landed, all.Worked, all.TaskIterations, want)
			}
		}
		days, err := s.ThroughputByDay(t.Context(), time.Time{}, noon, time.UTC)
		must(t, err)
		landed := 0
		for _, d := range days {
			landed += d.Landed
		}
		if landed != want {
			t.Errorf("by day %d landed, want %d", landed, want)
		}
	}
	check(2)
	w.at = w.at.Add(24 * time.Hour)
	w.move(ids[0], board.Revert)
	check(2)
	w.move(ids[0], board.Reopen)
	check(1)
	for _, a := range []board.Action{board.Start, board.Verify, board.Land} {
		w.move(ids[0], a)
	}
	check(2)
	w.move(ids[0], board.Revert)
	w.move(ids[0], board.Block)
	w.move(ids[0], board.Keep) // the revert was dropped
	check(2)
}

// A wait begins when an iteration's end orders it; an event of its own has only the limit of another run.
func TestTallyOfWaits(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	w := &teller{t: t, s: s, at: noon}
	w.begin("r1", "procedure", "build", "script")
	for attempt := range 2 {
		w.iterate(1, attempt+1, loop.Waited, time.Second)
		w.at = w.at.Add(time.Minute)
		w.tell(journal.WaitOver, journal.Wait{}, nil)
	}
	w.iterate(1, 3, loop.Success, time.Second)
	list := tallies(t, s, stats.All)
	if got := stats.Sum(list); got.Waited != 2*time.Minute || got.Iterations != 1 {
		t.Errorf("waited %v in %d iterations", got.Waited, got.Iterations)
	}
}
