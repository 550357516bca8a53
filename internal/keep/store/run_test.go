package store

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/queue"
)

// A run is created, goes on step by step, and ends; what was stored is what
// comes back, also through another connection.
func TestLifeOfARun(t *testing.T) {
	t.Parallel()
	s, r := begun(t, "r1")
	ctx := t.Context()

	got, err := s.Run(ctx, "r1")
	must(t, err)
	want := r
	want.N, want.UpdatedAt = 1, noon.Add(time.Second)
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("created\n got %+v\nwant %+v", got, want)
	}

	step := stepOf(r, 2)
	step.Run.Status, step.Run.Why = "waiting", "usage limit of claude"
	step.Run.Cost, step.Run.CostKnown, step.Run.TokensIn, step.Run.TokensOut = 1_250_000, true, 7, 8
	step.Run.MaxIterations, step.Run.Agent, step.Run.Elapsed = 20, "codex", 90*time.Second
	step.Run.Name, step.Run.Kind, step.Run.Root = "other", "other", "other" // cannot change
	step.Run.Setup = nil                                                    // keeps the stored one
	must(t, s.Commit(ctx, step))
	got, err = s.Run(ctx, "r1")
	must(t, err)
	want = step.Run
	want.Name, want.Kind, want.Root, want.Setup = r.Name, r.Kind, r.Root, r.Setup
	want.N, want.UpdatedAt = 2, noon.Add(2*time.Second)
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("after a step\n got %+v\nwant %+v", got, want)
	}

	end := stepOf(got, 3)
	end.Run.Status, end.Run.EndedAt, end.Run.UpdatedAt = "completed", noon.Add(time.Hour), noon.Add(2*time.Hour)
	end.Run.Setup = []byte(`{"flags":[]}`)
	must(t, s.Commit(ctx, end))
	got, err = open(t, s.Path()).Run(ctx, "r1")
	must(t, err)
	want = end.Run
	want.N, want.Owner = 3, Owner{Host: r.Owner.Host} // a run that ended belongs to nobody
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("at the end\n got %+v\nwant %+v", got, want)
	}
}

func TestCreateRefusesWhatIsRunning(t *testing.T) {
	t.Parallel()
	s, _ := begun(t, "first")
	ctx := t.Context()
	second := run("second", "build")
	second.Owner = them

	err := s.Create(ctx, second, event("second", 1, "run.created"), func(o Owner) bool { return o == us })
	var running *RunningError
	if !errors.As(err, &running) || !errors.Is(err, ErrRunning) || running.Run != "first" || running.Owner != us {
		t.Fatalf("second start: %v", err)
	}
	if !strings.Contains(err.Error(), "run first, process 100") {
		t.Errorf("the message names neither run nor process: %v", err)
	}
	if _, err := s.Run(ctx, "second"); !errors.Is(err, ErrNotFound) {
		t.Errorf("the refused run is there: %v", err)
	}

	elsewhere := second
	elsewhere.ID, elsewhere.Root = "elsewhere", "/other"
	must(t, s.Create(ctx, elsewhere, event("elsewhere", 1, "run.created"), everybody))
	other := second
	other.ID, other.Name = "other", "deploy"
	must(t, s.Create(ctx, other, event("other", 1, "run.created"), everybody))
	must(t, s.Create(ctx, second, event("second", 1, "run.created"), nobody)) // the first one's process is dead
}

func TestCreateTwiceIsOnce(t *testing.T) {
	t.Parallel()
	s, r := begun(t, "r1")
	ctx := t.Context()
	must(t, s.Create(ctx, r, event("r1", 1, "run.created"), everybody))
	if events, err := s.Events(ctx, "r1", 0, 10); err != nil || len(events) != 1 {
		t.Fatalf("events %v, %v", events, err)
	}
	if err := s.Create(ctx, r, event("r1", 1, "another"), nobody); err == nil {
		t.Error("another run got the same id")
	}
	r.Owner = them
	if err := s.Create(ctx, r, event("r1", 1, "run.created"), nobody); err == nil {
		t.Error("another process got the same id")
	}
}

func TestCreateNeedsItsParts(t *testing.T) {
	t.Parallel()
	s, ctx := fresh(t), t.Context()
	unowned := run("r1", "build")
	unowned.Owner = Owner{}
	if err := s.Create(ctx, unowned, event("r1", 1, "x"), nobody); err == nil {
		t.Error("a run without an owner")
	}
	if err := s.Create(ctx, run("r1", "build"), event("r2", 1, "x"), nobody); err == nil {
		t.Error("an event of another run")
	}
	if err := s.Create(ctx, run("r1", "build"), event("r1", 2, "x"), nobody); err == nil {
		t.Error("a first event with number 2")
	}
}

// Many take the same abandoned run at once, through two stores. One gets it.
func TestTakeIsWonOnce(t *testing.T) {
	t.Parallel()
	s, _ := begun(t, "r1")
	other, ctx := open(t, s.Path()), t.Context()
	const takers = 8
	errs := make([]error, takers)
	var wg sync.WaitGroup
	for i := range takers {
		wg.Go(func() {
			mine := Owner{PID: 1000 + i, Start: "now", Boot: "b", Host: "h"}
			_, errs[i] = []*Store{s, other}[i%2].Take(ctx, "r1", mine, func(o Owner) bool { return o != us })
		})
	}
	wg.Wait()
	winner := -1
	for i, err := range errs {
		switch {
		case err == nil && winner < 0:
			winner = i
		case err == nil:
			t.Fatalf("both %d and %d took it", winner, i)
		case !errors.Is(err, ErrRunning):
			t.Errorf("loser %d: %v", i, err)
		}
	}
	if winner < 0 {
		t.Fatal("nobody took it")
	}
	r, err := s.Run(ctx, "r1")
	must(t, err)
	if r.Owner.PID != 1000+winner {
		t.Errorf("owner %+v, but %d won", r.Owner, winner)
	}
}

func TestTakeGoesOnFromTheState(t *testing.T) {
	t.Parallel()
	s, r := begun(t, "r1")
	ctx := t.Context()
	step := stepOf(r, 2)
	step.Release = true
	step.Run.Status = "paused"
	must(t, s.Commit(ctx, step))

	taken, err := s.Take(ctx, "r1", them, everybody) // nobody owns it: alive is not asked
	must(t, err)
	if taken.Owner != them || taken.N != 2 || string(taken.State) != `{"at":2}` || string(taken.Setup) != string(r.Setup) || taken.Status != "paused" {
		t.Fatalf("taken %+v", taken)
	}
	must(t, s.Commit(ctx, stepOf(taken, 3)))
	if err := s.Commit(ctx, stepOf(r, 4)); !errors.Is(err, ErrNotOwner) {
		t.Errorf("the old owner's commit: %v", err)
	}
	// Its own event, stored before it lost the run, is no leave to go on.
	if err := s.Commit(ctx, step); !errors.Is(err, ErrNotOwner) {
		t.Errorf("the old owner's repeated commit: %v", err)
	}
	if _, err := s.Take(ctx, "nope", us, nobody); !errors.Is(err, ErrNotFound) {
		t.Errorf("take of no run: %v", err)
	}
	if _, err := s.Take(ctx, "r1", Owner{}, nobody); err == nil {
		t.Error("nobody took a run")
	}
}

func TestFindByPrefix(t *testing.T) {
	t.Parallel()
	s, ctx := fresh(t), t.Context()
	for _, id := range []string{"a1", "a12", "a2", "b_x", "bQx", "é1", "%"} {
		must(t, s.Create(ctx, run(id, id), event(id, 1, "x"), nobody))
	}
	for prefix, want := range map[string]string{
		"a1": "a1", "a12": "a12", "a2": "a2", "b_": "b_x", "bQ": "bQx", "é": "é1", "%": "%",
	} {
		if r, err := s.Run(ctx, prefix); err != nil || r.ID != want {
			t.Errorf("%s: %s, %v", prefix, r.ID, err)
		}
	}
	for _, none := range []string{"", "A1", "a3", "_", "a1%", "c"} {
		if r, err := s.Run(ctx, none); !errors.Is(err, ErrNotFound) {
			t.Errorf("%q: %s, %v", none, r.ID, err)
		}
	}
	_, err := s.Run(ctx, "a")
	var ambiguous *AmbiguousError
	if !errors.As(err, &ambiguous) || !errors.Is(err, ErrAmbiguous) || strings.Join(ambiguous.Runs, " ") != "a1 a12 a2" || ambiguous.More {
		t.Errorf("a: %v", err)
	}
}

func TestManyCandidatesAreCut(t *testing.T) {
	t.Parallel()
	s, ctx := fresh(t), t.Context()
	for i := range 12 {
		id := fmt.Sprintf("x%02d", i)
		must(t, s.Create(ctx, run(id, id), event(id, 1, "x"), nobody))
	}
	_, err := s.Run(ctx, "x")
	var ambiguous *AmbiguousError
	if !errors.As(err, &ambiguous) || len(ambiguous.Runs) != maxCandidates || !ambiguous.More {
		t.Fatalf("%v", err)
	}
}

func TestListings(t *testing.T) {
	t.Parallel()
	s, ctx := fresh(t), t.Context()
	add := func(id, name, root string, after time.Duration, ended bool) {
		r := run(id, name)
		r.Root, r.StartedAt = root, noon.Add(after)
		must(t, s.Create(ctx, r, event(id, 1, "x"), nobody))
		if ended {
			end := stepOf(r, 2)
			end.Run.EndedAt = noon
			must(t, s.Commit(ctx, end))
		}
	}
	add("r1", "build", "/a", 1*time.Hour, true)
	add("r2", "build", "/a", 3*time.Hour, false)
	add("r3", "build", "/b", 2*time.Hour, false)
	add("r4", "build", "/a", 3*time.Hour, true) // the same time as r2: created later is later
	for i, id := range []string{"g1", "g2"} {   // guards ended both; the first was begun anew
		add(id, "check", "/a", -time.Duration(2-i)*time.Hour, false)
		end := stepOf(run(id, "check"), 2)
		end.Run.Root, end.Run.Status, end.Run.EndedAt = "/a", "aborted", noon
		must(t, s.Commit(ctx, end))
	}
	for _, c := range []struct {
		filter RunQuery
		want   string
	}{
		{RunQuery{}, "r4 r2 r3 r1 g2 g1"},
		{RunQuery{Active: true}, "r2 r3 g2"},
		{RunQuery{Root: "/a"}, "r4 r2 r1 g2 g1"},
		{RunQuery{Root: "/a", Active: true}, "r2 g2"},
		{RunQuery{Root: "/none"}, ""},
	} {
		if s.shared && c.filter.Root != "" {
			continue // its roots are of several machines: a listing has all
		}
		runs, err := s.Runs(ctx, c.filter)
		must(t, err)
		ids := make([]string, len(runs))
		for i, r := range runs {
			ids[i] = r.ID
			if r.State != nil || r.Setup != nil {
				t.Errorf("%s: a listing read the state", r.ID)
			}
		}
		if got := strings.Join(ids, " "); got != c.want {
			t.Errorf("%+v: %q, want %q", c.filter, got, c.want)
		}
	}
	added := addAll(t, s, draft("one"), draft("two"))
	for i, id := range []string{"t1", "t2", "t3"} { // t1 was followed by t2
		r := run(id, added[max(i-1, 0)])
		r.Kind, r.Root, r.StartedAt = "task", "/c", noon.Add(time.Duration(i)*time.Hour)
		must(t, s.Create(ctx, r, event(id, 1, "x"), nobody))
		rest := stepOf(r, 2)
		rest.Release = true
		must(t, s.Commit(ctx, rest))
	}
	open := func() (ids []string) {
		runs, err := s.Runs(ctx, RunQuery{Root: "/c", Kind: "task", Active: true})
		must(t, err)
		page, _, _, err := s.RunPage(ctx, RunQuery{Root: "/c", Kind: "task", Active: true}, RunMark{}, 10)
		must(t, err)
		for i, r := range runs {
			ids = append(ids, r.ID)
			if len(page) != len(runs) || page[i].ID != r.ID {
				t.Errorf("a page of %d runs, a listing of %d", len(page), len(runs))
			}
		}
		return ids
	}
	if got := open(); !slices.Equal(got, []string{"t3", "t2"}) {
		t.Errorf("of tasks %q are open", got)
	}
	_, err := s.LandCases(ctx, []queue.Landing{{Task: added[0], Commit: "c"}}, noon)
	must(t, err)
	if got := open(); !slices.Equal(got, []string{"t3"}) {
		t.Errorf("when the first has landed, %q are open", got)
	}
	if r, err := s.Latest(ctx, "/a", "build"); err != nil || r.ID != "r4" || r.State == nil {
		t.Errorf("latest %s, %v", r.ID, err)
	}
	if _, err := s.Latest(ctx, "/a", "deploy"); !errors.Is(err, ErrNotFound) {
		t.Errorf("latest of none: %v", err)
	}
}

// The clock of the machine that started a run first is ahead. The later run is the last one of its name all the same:
// it is open and found by name, and the earlier one counts as replaced.
func TestTheLastRunIsNotByTheClock(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"task", "procedure"} {
		s, ctx := fresh(t), t.Context()
		addAll(t, s, draft("a"))
		ahead, now := run("r1", "task-001"), run("r2", "task-001")
		ahead.StartedAt = noon.Add(10 * time.Minute)
		for _, r := range []Run{ahead, now} {
			r.Kind = kind
			must(t, s.Create(ctx, r, event(r.ID, 1, "x"), nobody))
			end := stepOf(r, 2)
			end.Run.Status = "aborted"
			end.Run.EndedAt, end.Release = noon, true
			must(t, s.Commit(ctx, end))
		}
		open, err := s.Runs(ctx, RunQuery{Active: true})
		must(t, err)
		if len(open) != 1 || open[0].ID != "r2" {
			t.Errorf("of a %s %+v is open", kind, open)
		}
		if r, err := s.Latest(ctx, "/repo", "task-001"); err != nil || r.ID != "r2" {
			t.Errorf("the last run of a %s is %s (%v)", kind, r.ID, err)
		}
		ended, err := s.EndedRuns(ctx)
		must(t, err)
		for _, r := range ended {
			if r.Last != (r.ID == "r2") {
				t.Errorf("run %s of a %s is the last one: %v", r.ID, kind, r.Last)
			}
		}
	}
}
