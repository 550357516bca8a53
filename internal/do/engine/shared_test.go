package engine

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/process"
	"github.com/pawl-dev/pawl/internal/do/ratelimit"
)

// works is an agent that speaks before it shows that a model answers.
const works = `
  - - say: up
    - append: {path: "{dir}/starts", content: "x"}
    - write: {path: a.txt, content: "more"}
`

// sharers are worlds whose runs have one account.
func sharers(t *testing.T, turns ...string) (dir string, worlds []*world) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "limits")
	for _, text := range turns {
		w := newWorld(t, text)
		w.o.Policy.MaxIterations, w.o.Accounts = 1, dir
		worlds = append(worlds, w)
	}
	return dir, worlds
}

// due writes a limit whose time is over.
func due(t *testing.T, dir string) {
	t.Helper()
	now := time.Now()
	data, err := json.Marshal(ratelimit.Limit{Class: failure.RateLimit, Met: now.Add(-time.Hour), Until: now.Add(-time.Minute), Times: 1, Run: "earlier"})
	if err == nil {
		err = os.MkdirAll(dir, 0o700)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "script.json"), data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestALimitIsWaitedForByAll(t *testing.T) {
	t.Parallel()
	dir, w := sharers(t, "\n  - rate_limit: {retry_after: 1h}\n"+strings.TrimPrefix(works, "\n"), works)
	p := w[0].start()
	p.await("wait started rate limit of script")
	q := w[1].start()
	q.await("wait started rate limit of script, hit by run " + w[0].run())
	if w[1].starts() != 0 || q.saw("iteration started") != 0 {
		t.Errorf("the second run spent a call: %q", q.seen)
	}
	if err := ratelimit.NewStore(dir).Clear(t.Context(), "script", time.Now()); err != nil {
		t.Fatal(err)
	}
	p.await("end completed")
	q.await("end completed")
	w[0].holds(loop.Completed, "1.1 waited", "1.2 success")
	w[1].holds(loop.Completed, "1.1 success")
	if n := w[0].starts() + w[1].starts(); n != 2 {
		t.Errorf("%d starts", n)
	}
}

// While one run tries whether a limit is over, no other calls its agent.
func TestOneRunTries(t *testing.T) {
	t.Parallel()
	dir, w := sharers(t, works, works)
	due(t, dir)
	self, err := process.Self()
	if err != nil {
		t.Fatal(err)
	}
	shelf, ctx := ratelimit.NewStore(dir), t.Context()
	if try, barred := shelf.Acquire(ctx, "script", "prober", self, false); !try || barred {
		t.Fatalf("try %v, barred %v", try, barred)
	}
	p, q := w[0].start(), w[1].start()
	for _, one := range []*pawl{p, q} {
		one.await("wait started rate limit of script, hit by run earlier; run prober checks")
	}
	if err := shelf.Record(ctx, "script", ratelimit.Meeting{Run: "prober", Class: failure.QuotaExhausted, Began: time.Now(), Until: time.Now().Add(time.Hour), Named: true}); err != nil {
		t.Fatal(err)
	}
	for i, one := range []*pawl{p, q} {
		one.await("wait started usage limit of script, hit by run prober")
		if w[i].starts() != 0 || one.saw("iteration started") != 0 {
			t.Errorf("a call was spent: %q", one.seen)
		}
	}
	if err := shelf.Clear(ctx, "script", time.Now()); err != nil {
		t.Fatal(err)
	}
	p.await("end completed")
	q.await("end completed")
}

// A model that answers is enough: the others do not wait for the iteration's end.
func TestAnAnswerLetsAllGoOn(t *testing.T) {
	t.Parallel()
	dir, w := sharers(t, held, works)
	w[0].fifo("go")
	due(t, dir)
	p := w[0].start()
	p.await("agent tool")
	q := w[1].start()
	q.await("end completed")
	if q.saw("wait started") != 0 {
		t.Errorf("it waited: %q", q.seen)
	}
	w[0].open("go")
	p.await("end completed")
}

// A prober that is killed holds up nobody, though its agent lives on.
func TestAKilledProberHoldsUpNobody(t *testing.T) {
	t.Parallel()
	dir, w := sharers(t, works, works)
	due(t, dir)
	w[0].o.Hold = "agent text up"
	p := w[0].start()
	p.await("agent text up")
	q := w[1].start()
	q.await("wait started rate limit of script, hit by run earlier; run " + w[0].run() + " checks")
	p.kill()
	q.await("end completed")
	w[1].holds(loop.Completed, "1.1 success")
	w[0].resume().await("end completed")
	w[0].holds(loop.Completed, "1.1 success")
}

// A limit that was over while nobody drove the run is not waited for when it goes on.
func TestALimitThatIsOverMeanwhile(t *testing.T) {
	t.Parallel()
	dir, w := sharers(t, "\n  - rate_limit: {retry_after: 1h}\n"+strings.TrimPrefix(works, "\n"))
	p := w[0].start()
	p.await("wait started rate limit of script")
	p.kill()
	if err := ratelimit.NewStore(dir).Clear(t.Context(), "script", time.Now()); err != nil {
		t.Fatal(err)
	}
	w[0].resume().await("end completed")
	w[0].holds(loop.Completed, "1.1 waited", "1.2 success")
}

// A wait of another run's making ends at once when a person asks; who resumes
// is believed, and everybody goes on when that works.
func TestAStopEndsASharedWaitAndAResumeTries(t *testing.T) {
	t.Parallel()
	dir, ws := sharers(t, works)
	w := ws[0]
	shelf := ratelimit.NewStore(dir)
	if err := shelf.Record(t.Context(), "script", ratelimit.Meeting{Run: "other", Class: failure.QuotaExhausted, Until: time.Now().Add(time.Hour), Named: true}); err != nil {
		t.Fatal(err)
	}
	h := w.within()
	h.on[string(WaitStarted)] = func() { h.stops <- loop.CauseTerminate }
	h.start()
	w.holds(loop.Interrupted)
	h.resume(loop.Event{Kind: loop.Resumed, Policy: &h.opts.Plan.Policy})
	w.holds(loop.Completed, "1.1 success")
	if _, limited := shelf.Look("script", time.Now()); limited {
		t.Error("the limit is still known")
	}
}

// Limits that cannot be shared are each run's own.
func TestLimitsThatCannotBeKept(t *testing.T) {
	t.Parallel()
	_, ws := sharers(t, strings.ReplaceAll(limited, "1s", "1ms"))
	w := ws[0]
	w.write("file", "")
	w.o.Accounts = w.path("file")
	w.within().start()
	w.holds(loop.Completed, "1.1 waited", "1.2 success")
}
