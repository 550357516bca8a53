package action_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/ask/action"
	"github.com/pawl-dev/pawl/internal/ask/config"
	"github.com/pawl-dev/pawl/internal/ask/planner"
	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/control"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/engine/storedrun"
	"github.com/pawl-dev/pawl/internal/do/process"
	"github.com/pawl-dev/pawl/internal/keep/journal"
	"github.com/pawl-dev/pawl/internal/keep/store"
	"github.com/pawl-dev/pawl/internal/test/gittest"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// gone is a process of an earlier boot of the machine.
var gone = store.Owner{PID: 1, Start: "1", Boot: "an earlier one"}

// person is somebody at an empty folder that is no repository, with what is
// said to them.
func person(t *testing.T) (p *action.Operator, said *strings.Builder) {
	t.Helper()
	dir, said := t.TempDir(), &strings.Builder{}
	db, err := store.Open(t.Context(), filepath.Join(dir, "pawl.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	say := func(format string, args ...any) { fmt.Fprintf(said, format+"\n", args...) }
	return action.New(action.Options{
		Store: db, Root: dir, Env: []string{"HOME=" + dir, "XDG_STATE_HOME=" + dir}, Say: say, Result: say,
		Planner: func(string, planner.Flags) (*planner.Planner, error) {
			return nil, errors.New("nothing here needs the configuration")
		},
		Log: func(string) *slog.Logger { return slog.New(slog.DiscardHandler) },
	}), said
}

// run stores a run that nobody drives.
func run(t *testing.T, p *action.Operator, s loop.State) store.Run {
	t.Helper()
	return runOf(t, p, s, gone)
}

func runOf(t *testing.T, p *action.Operator, s loop.State, owner store.Owner) store.Run {
	t.Helper()
	return named(t, p, "r1", s, owner)
}

func named(t *testing.T, p *action.Operator, id string, s loop.State, owner store.Owner) store.Run {
	t.Helper()
	state, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	r := store.Run{
		ID: id, Kind: "procedure", Name: "build", Root: p.Root,
		Status: string(s.Status), Iteration: s.Iteration, State: state, Owner: owner,
	}
	e, err := journal.New(r.ID, 1, noon, journal.RunCreated, journal.Created{Kind: r.Kind, Name: r.Name})
	if err == nil {
		err = p.Store.Create(t.Context(), r, e, func(store.Owner) bool { return false })
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Of two runs with one name whose pawl died resume takes up the last, and only there it is named.
func TestWhatResumeTakesUp(t *testing.T) {
	t.Parallel()
	p, _ := person(t)
	self, err := process.Self()
	if err != nil {
		t.Fatal(err)
	}
	self.Boot = "an earlier one"
	dead := storedrun.OwnerOf(self)
	old := named(t, p, "r1", loop.State{Status: loop.Running}, dead)
	last := named(t, p, "r2", loop.State{Status: loop.Running}, dead)
	if is, _ := p.AsIs(t.Context(), old); is.Why != "its pawl process has ended" {
		t.Errorf("of the older run: %q", is.Why)
	}
	if is, _ := p.AsIs(t.Context(), last); is.Why != "its pawl process has ended; pawl resume build" {
		t.Errorf("of the last run: %q", is.Why)
	}
}

func task(t *testing.T, p *action.Operator, actions ...board.Action) string {
	t.Helper()
	added, err := p.Store.AddCases(t.Context(), []board.Draft{{Case: board.Case{Title: "Greet"}}}, board.Person, noon)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range actions {
		if _, err := p.Store.MoveCase(t.Context(), added[0].ID, board.Change{Action: a, By: board.Pawl, Why: "a test", At: noon}); err != nil {
			t.Fatal(err)
		}
	}
	return added[0].ID
}

// refused checks that an error is a refusal with these words, hints included.
func refused(t *testing.T, err error, words ...string) {
	t.Helper()
	var f *fault.Error
	if !errors.As(err, &f) || f.Kind != fault.Refused {
		t.Errorf("%v is no refusal", err)
		return
	}
	text := strings.Join(append([]string{f.Error()}, f.Hints...), "\n")
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("it lacks %q:\n%s", w, text)
		}
	}
}

// Who wants a run to go on that has just come to rest waits until its process has stored
// the last of it.
func TestARunIsLetGoOf(t *testing.T) {
	t.Parallel()
	p, _ := person(t)
	self, err := process.Self()
	if err != nil {
		t.Fatal(err)
	}
	r := runOf(t, p, loop.State{Status: loop.Paused, Iteration: 1}, storedrun.OwnerOf(self))
	type answer struct {
		run store.Run
		err error
	}
	got := make(chan answer)
	go func() {
		now, err := p.WaitUntilReleased(t.Context(), r)
		got <- answer{now, err}
	}()
	e, err := journal.New(r.ID, 2, noon, journal.Paused, nil)
	if err == nil {
		err = p.Store.Commit(t.Context(), store.Step{Run: r, Event: e, Release: true})
	}
	if err != nil {
		t.Fatal(err)
	}
	if a := <-got; a.err != nil || a.run.Owner.PID != 0 {
		t.Errorf("it is %+v, %v", a.run.Owner, a.err)
	}
}

// What does not fit how a run is says so, and changes nothing.
func TestRefusedToARun(t *testing.T) {
	t.Parallel()
	p, said := person(t)
	r := run(t, p, loop.State{Status: loop.Completed, Iteration: 2})
	refused(t, p.Pause(t.Context(), r), "run r1 is not running: it is completed")
	refused(t, p.Stop(t.Context(), r, true), "run r1 is not running: it is completed")
	_, err := p.Answer(t.Context(), r, "", []string{"yes"})
	refused(t, err, "run r1 asks nothing: it is completed")
	_, err = p.Answer(t.Context(), r, "", []string{" ", ""})
	refused(t, err, "needs words, or the number of an option")
	_, err = p.Apply(t.Context(), r, action.ApplyOptions{})
	refused(t, err, "run r1 has nothing to apply: its work is not kept")
	refused(t, p.Raise(t.Context(), r, planner.Flags{Max: "9", Agent: "other"}), "only --max-iterations, --max-cost and --timeout", "pawl pause build")
	rows, err := p.Store.Controls(t.Context(), r.ID)
	if err != nil || len(rows) != 0 || said.Len() != 0 {
		t.Errorf("%d wishes were stored (%v), and this was said: %s", len(rows), err, said)
	}
}

// An answer waits in the database until the run goes on; whoever answered is
// told so.
func TestAnswer(t *testing.T) {
	t.Parallel()
	p, said := person(t)
	r := run(t, p, loop.State{Status: loop.Pending, Iteration: 1, Asking: loop.Asking{Question: &loop.Question{Text: "Which port?"}}})
	goesOn, err := p.Answer(t.Context(), r, "", []string{"port", "8080"})
	if err != nil || !goesOn {
		t.Fatalf("%t, %v", goesOn, err)
	}
	rows, err := p.Store.Controls(t.Context(), r.ID)
	if err != nil || len(rows) != 1 || rows[0].Kind != store.ControlAnswer || rows[0].Text != "port 8080" {
		t.Errorf("stored are %+v, %v", rows, err)
	}
	if want := "The answer is kept and goes into the next prompt.\n"; said.String() != want {
		t.Errorf("said is %q, want %q", said, want)
	}
}

func TestReadReply(t *testing.T) {
	t.Parallel()
	asked := &loop.State{Asking: loop.Asking{Question: &loop.Question{Choices: []control.Choice{
		{Text: "Try again", Do: control.TryAgain, Advice: true}, {Text: "Send it back", Do: control.TryAgain, Advice: true, Needs: true}, {Text: "Give up", Do: control.GiveUp},
	}}}}
	for _, c := range []struct {
		words  []string
		number int
		text   string
		wrong  string
	}{
		{words: []string{"1"}, number: 1},
		{words: []string{"1.", "the", "fixture"}, number: 1, text: "the fixture"},
		{words: []string{" 2) ", "rename it"}, number: 2, text: "rename it"},
		{words: []string{"2"}, wrong: "option 2 (Send it back) needs words"},
		{words: []string{"3", "now"}, wrong: "option 3 (Give up) takes no words"},
		{words: []string{"4"}, wrong: "there is no option 4: the question has 1 to 3"},
		{words: []string{"0"}, wrong: "there is no option 0"},
		{words: []string{"use", "8080"}, text: "use 8080"},
	} {
		got, err := action.ReadReply(asked, c.words)
		if err == nil {
			err = got.CheckWords()
		}
		if c.wrong != "" {
			refused(t, err, c.wrong)
			continue
		}
		if err != nil || got.Number != c.number || got.Text != c.text {
			t.Errorf("%q is option %d with %q (%v), want %d with %q", c.words, got.Number, got.Text, err, c.number, c.text)
		}
	}
	if got, err := action.ReadReply(&loop.State{Asking: loop.Asking{Question: &loop.Question{}}}, []string{"8080"}); err != nil || got.Number != 0 || got.Text != "8080" {
		t.Errorf("a number is no answer to a question without options: %+v, %v", got, err)
	}
}

// What does not fit how a task is says so.
func TestRefusedToATask(t *testing.T) {
	t.Parallel()
	p, _ := person(t)
	id := task(t, p)
	_, err := p.Change(t.Context(), "start", id, "")
	refused(t, err, "no autopilot is running here", "pawl autopilot")
	refused(t, p.AskAutopilot(t.Context(), store.AutopilotPause, "", false), "no autopilot is running here")
	_, err = p.Change(t.Context(), "redo", id, " ")
	refused(t, err, "say what must change")
	for _, verb := range []string{"approve", "redo", "reject"} {
		_, err := p.Change(t.Context(), verb, id, "shorter")
		refused(t, err, "no review of "+id+" waits for you: it is pending", "pawl autopilot status")
	}
	_, err = p.Change(t.Context(), "retry", id, "")
	refused(t, action.Explain(err), id)
	_, err = p.Change(t.Context(), "retry", "task-999", "")
	refused(t, action.Explain(err), "task-999", "pawl case list --all")
}

// Of two people only the first decides: an approval that comes after a rejection
// lands nothing and says so, also when the rejection came while it was made ready.
func TestApproveAfterSomebodyElse(t *testing.T) {
	t.Parallel()
	p, _ := person(t)
	p.Root = filepath.Join(p.Root, "repo")
	gittest.Git(t, "", "init", "-q", "-b", "main", p.Root)
	gittest.Git(t, p.Root, "commit", "-q", "--allow-empty", "-m", "base")
	commit := gittest.Git(t, p.Root, "rev-parse", "HEAD")
	meanwhile := func() {}
	p.Planner = func(string, planner.Flags) (*planner.Planner, error) {
		meanwhile()
		return &planner.Planner{Config: &config.Config{Root: p.Root}}, nil
	}
	verified := func() string {
		id := task(t, p, board.Start)
		ask := store.CaseReview{Case: id, Run: "r1", Work: []byte(fmt.Sprintf(`{"id":%q,"commit":%q}`, id, commit)), AskedAt: noon}
		if err := p.Store.AskReview(t.Context(), ask, board.Change{Action: board.Verify, By: board.Pawl, At: noon}); err != nil {
			t.Fatal(err)
		}
		return id
	}
	check := func(id, decision string, queued int) {
		t.Helper()
		list, err := p.Store.CaseReviews(t.Context(), id)
		if err != nil || len(list) != 1 || list[0].Decision != decision {
			t.Errorf("reviews of %s: %+v, %v", id, list, err)
		}
		asks, err := p.Store.QueueAsks(t.Context(), "refs/heads/main", 10)
		if err != nil || len(asks) != queued {
			t.Errorf("asked of the queue: %+v, %v", asks, err)
		}
	}

	late := verified()
	meanwhile = func() {
		if _, err := p.Change(t.Context(), "reject", late, "too slow"); err != nil {
			t.Error(err)
		}
	}
	_, err := p.Change(t.Context(), "approve", late, "")
	refused(t, err, "no review of "+late+" waits for you: it was rejected at ", "(too slow), and it is blocked")
	check(late, store.Rejected, 0)

	id := verified()
	meanwhile = func() {}
	if done, err := p.Change(t.Context(), "approve", id, ""); err != nil || done.Case.Status != board.Review {
		t.Errorf("approved: %+v, %v", done, err)
	}
	_, err = p.Change(t.Context(), "reject", id, "no")
	refused(t, err, "it was approved at ")
	check(id, store.Approved, 1)

	for way, want := range map[action.Way]string{action.Browser: "approved in the browser", "": "approved at the terminal"} {
		id := verified()
		if _, err := p.Change(action.Over(t.Context(), way), "approve", id, ""); err != nil {
			t.Fatal(err)
		}
		history, err := p.Store.CaseHistory(t.Context(), id)
		last := history[len(history)-1]
		if err != nil || last.Action != board.Approve || last.By != board.Person || last.Why != want || last.To != board.Review {
			t.Errorf("the history ends with %+v, %v", last, err)
		}
	}
}

// A slot goes from one task to another, or nothing is asked at all.
func TestRedirect(t *testing.T) {
	t.Parallel()
	p, said := person(t)
	r, to := run(t, p, loop.State{Status: loop.Running, Iteration: 1}), task(t, p)
	refused(t, p.Redirect(t.Context(), r, to), "run r1 has no slot: it is a procedure", "pawl stop r1")
	r.Kind, r.Name, r.Owner = "task", "task-009", store.Owner{}
	refused(t, p.Redirect(t.Context(), r, to), "it is not running", "pawl case start "+to)
	self, err := process.Self()
	if err != nil {
		t.Fatal(err)
	}
	r.Owner = storedrun.OwnerOf(self)
	refused(t, p.Redirect(t.Context(), r, to), "no autopilot is running here")
	if _, err := p.Store.TakeAutopilot(t.Context(), store.Autopilot{Session: "s", Owner: r.Owner, StartedAt: noon, State: json.RawMessage(`{}`)}, func(store.Owner) bool { return false }); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Store.MoveCase(t.Context(), to, board.Change{Action: board.Defer, By: board.Person, At: noon}); err != nil {
		t.Fatal(err)
	}
	refused(t, p.Redirect(t.Context(), r, to), to+" cannot be started: "+to+" is deferred")
	asked := func() (wishes string) {
		rows, err := p.Store.Controls(t.Context(), r.ID)
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range rows {
			wishes += row.Kind + " " + row.Run + "; "
		}
		list, err := p.Store.TakeAutopilotControls(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range list {
			wishes += c.Kind + " " + c.Text
		}
		return wishes
	}
	if got := asked(); got != "" || said.Len() != 0 {
		t.Errorf("asked for %q, said %q", got, said)
	}
	ready := task(t, p)
	if err := p.Redirect(t.Context(), r, ready); err != nil {
		t.Fatal(err)
	}
	if got := asked(); got != "stop r1; start "+ready || !strings.Contains(said.String(), ready+" gets the slot.") {
		t.Errorf("asked for %q, said %q", got, said)
	}
}

// A resume follows a pause that the autopilot has not taken up yet; without one
// it is refused.
func TestResumeFollowsAPause(t *testing.T) {
	t.Parallel()
	p, _ := person(t)
	self, err := process.Self()
	if err != nil {
		t.Fatal(err)
	}
	a := store.Autopilot{Session: "s", Phase: "running", Owner: storedrun.OwnerOf(self), StartedAt: noon, State: json.RawMessage(`{}`)}
	if _, err := p.Store.TakeAutopilot(t.Context(), a, func(store.Owner) bool { return false }); err != nil {
		t.Fatal(err)
	}
	refused(t, p.AskAutopilot(t.Context(), store.AutopilotResume, "", false), "the autopilot is not paused: it is running")
	for _, kind := range []string{store.AutopilotPause, store.AutopilotResume} {
		if err := p.AskAutopilot(t.Context(), kind, "", false); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
	list, err := p.Store.TakeAutopilotControls(t.Context())
	if err != nil || len(list) != 2 || list[1].Kind != store.AutopilotResume {
		t.Errorf("the autopilot is asked %+v, %v", list, err)
	}
}

func TestExtend(t *testing.T) {
	t.Parallel()
	p, _ := person(t)
	id := task(t, p, board.Start, board.Expire)
	l, err := action.ReadLimits("80", "1h")
	if err != nil {
		t.Fatal(err)
	}
	d, err := p.Extend(t.Context(), id, l)
	if err != nil || d.Case.Status != board.Pending || !strings.Contains(d.Text, "its run continues where it was") {
		t.Errorf("%+v, %v", d, err)
	}
	got, err := p.Store.CaseLimits(t.Context(), id)
	if err != nil || got.MaxIterations != 80 || got.Timeout != time.Hour {
		t.Errorf("its limits are %+v, %v", got, err)
	}
	for _, c := range [][3]string{{"", "", "say by how much"}, {"0", "", "--max-iterations 0"}, {"x", "", "--max-iterations x"}, {"", "5", "--timeout 5"}, {"", "-1m", "--timeout -1m"}} {
		_, err := action.ReadLimits(c[0], c[1])
		refused(t, err, c[2])
	}
}

// A run that another process drives is resumed there: then nothing is left to do. A
// task's run never is the caller's.
func TestResumeElsewhere(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		status loop.Status
		kind   loop.Kind
		flags  planner.Flags
		done   bool
		said   string
	}{
		{"a task that is raised", loop.Stopped, loop.Task, planner.Flags{Max: "80"}, true, "its run continues where it was"},
		{"a task", loop.Stopped, loop.Task, planner.Flags{}, true, ""},
		{"a procedure that rests", loop.Stopped, "procedure", planner.Flags{Max: "80"}, false, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p, said := person(t)
			r := run(t, p, loop.State{Status: c.status, Iteration: 3})
			r.Kind, r.Name = string(c.kind), task(t, p, board.Start, board.Expire)
			done, err := p.ResumeElsewhere(t.Context(), r, c.flags)
			if done != c.done || !strings.Contains(said.String(), c.said) {
				t.Errorf("done is %v, %v; said is %q", done, err, said)
			}
		})
	}
}
