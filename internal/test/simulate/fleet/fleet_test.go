package fleet

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/queue"
	"github.com/pawl-dev/pawl/internal/decide/schedule"
)

// Nothing is broken, whatever happens; and enough happens.
func TestLaws(t *testing.T) {
	t.Parallel()
	for _, o := range []Options{
		{Tasks: 1, Agents: 1}, {Tasks: 40, Agents: 1}, {Tasks: 300, Agents: 10}, {Tasks: 300, Agents: 40}, {Tasks: 600, Agents: 60},
	} {
		t.Run(fmt.Sprintf("%d tasks, %d agents", o.Tasks, o.Agents), func(t *testing.T) {
			t.Parallel()
			sum := Report{}
			for o.Seed = 1; o.Seed <= 6; o.Seed++ {
				r, v := Play(o)
				if v != nil {
					t.Fatal(Explain(v).Tell())
				}
				for what, n := range r {
					sum[what] += n
				}
			}
			for _, what := range []string{
				"crashes", "adopted runs", "lost iterations", "waits for a provider", "conflicts", "red verdicts",
				"times that the clock is set", "moves of the target", "rewritten targets", "actions of people",
			} {
				if sum[what] == 0 && o.Tasks >= 600 {
					t.Errorf("there are no %s", what)
				}
			}
		})
	}
}

// A seed is a history.
func TestSameSeed(t *testing.T) {
	t.Parallel()
	o := Options{Seed: 7, Tasks: 200, Agents: 8}
	first, _ := Play(o)
	second, _ := Play(o)
	o.Watch = []string{"task-001"} // to listen changes nothing
	heard, _ := Play(o)
	if !maps.Equal(first, second) || !maps.Equal(first, heard) {
		t.Errorf("one seed, three histories:\n%+v\n%+v\n%+v", first, second, heard)
	}
	o.Seed = 8
	if other, _ := Play(o); maps.Equal(other, first) {
		t.Error("two seeds, one history")
	}
}

// broken are rules that are wrong on purpose, and the law that each breaks.
var broken = map[string]struct {
	rules Rules
	law   Law
	o     Options
}{
	"the autopilot takes one slot too many": {law: Slots, rules: Rules{
		Schedule: func(s schedule.State, e schedule.Event) (schedule.State, schedule.Command) {
			if e.Kind == schedule.Began {
				e.Settings.MaxParallel++
			}
			return schedule.Step(s, e)
		},
	}},
	"verified is stored before it is queued": {law: Kept, rules: Rules{Apart: true}},
	"an active task is forgotten at the start": {law: Kept, rules: Rules{
		Recover: func(found []schedule.Found, slots int) []schedule.Recovery {
			return schedule.Recover(found, slots)[:max(0, len(found)-1)]
		},
	}},
	"what landed stays in the queue": {law: Once, rules: Rules{
		Queue: func(s queue.State, e queue.Event) (queue.State, queue.Command) {
			var ids []string
			if e.Kind == queue.Landed && s.Batch != nil {
				ids = s.Batch.IDs
			}
			before := s.Entries
			s, c := queue.Step(s, e)
			for _, old := range before {
				if slices.Contains(ids, old.ID) && s.Command.Kind == queue.DoWait {
					s.Entries = append(s.Entries, old)
				}
			}
			return s, c
		},
	}},
	"what has landed is queued again": {law: Once, rules: Rules{Again: true}, o: Options{Tasks: 1000, Agents: 30}},
	"a second agent for a run that goes on": {law: Once, rules: Rules{
		Loop: func(s loop.State, e loop.Event) (loop.State, loop.Command) {
			s, c := loop.Step(s, e)
			if e.Kind == loop.PauseAsked && s.Status == loop.Running && s.Command.Kind == loop.Run {
				s.Seq++
				s.Command.Seq = s.Seq
			}
			return s, c
		},
	}},
	"a task starts without what it needs": {law: Order, rules: Rules{
		Ready: func(c *board.Case) bool { return c.Type == board.Task && c.Status == board.Pending },
		Move: func(c board.Case, ch board.Change) (board.Case, board.Entry, error) {
			bare := c
			bare.Unmet, bare.Held = 0, false
			after, e, err := board.Move(bare, ch)
			after.Unmet, after.Held = c.Unmet, c.Held
			return after, e, err
		},
	}},
	"the queue does not look at needs": {law: Order, rules: Rules{
		Queue: func(s queue.State, e queue.Event) (queue.State, queue.Command) {
			if e.Kind == queue.Added {
				bare := *e.Entry
				bare.Needs, e.Entry = nil, &bare
			}
			return queue.Step(s, e)
		},
	}},
	"red counts as green": {law: Verified, rules: Rules{
		Queue: func(s queue.State, e queue.Event) (queue.State, queue.Command) {
			if e.Kind == queue.Verified {
				v := *e.Verdict
				v.Green, e.Verdict = true, &v
			}
			return queue.Step(s, e)
		},
	}},
	"the board does not hear of landings": {law: Landed, rules: Rules{
		Queue: func(s queue.State, e queue.Event) (queue.State, queue.Command) {
			s, c := queue.Step(s, e)
			s.Out.Cases = slices.DeleteFunc(s.Out.Cases, func(m queue.CaseMove) bool { return m.Move == queue.MoveLanded })
			return s, c
		},
	}},
	"done without a landing": {law: Landed, rules: Rules{
		Move: func(c board.Case, ch board.Change) (board.Case, board.Entry, error) {
			after, e, err := board.Move(c, ch)
			if ch.Action == board.Expire && err == nil {
				after.Status = board.Done
			}
			return after, e, err
		},
	}, o: Options{Tasks: 1000, Agents: 50}},
	"the autopilot is deaf to the board": {law: Idle, rules: Rules{
		Schedule: func(s schedule.State, e schedule.Event) (schedule.State, schedule.Command) {
			if e.Kind == schedule.Changed || e.Kind == schedule.Landed {
				e.Kind = schedule.Did
			}
			return schedule.Step(s, e)
		},
	}},
	"the youngest goes first": {law: Fair, rules: Rules{
		Queue: func(s queue.State, e queue.Event) (queue.State, queue.Command) {
			if e.Kind == queue.Opened {
				p := *e.Policy
				p.Batch, e.Policy = 1, &p
			}
			s, c := queue.Step(s, e)
			for i := range s.Entries {
				s.Entries[i].Passed, s.Entries[i].Priority = 0, int(s.Entries[i].Order)
			}
			return s, c
		},
	}, o: Options{Tasks: 1000, Agents: 300}},
	"the target is never red": {law: Blame, rules: Rules{
		Queue: func(s queue.State, e queue.Event) (queue.State, queue.Command) {
			if e.Kind == queue.Verified && s.Batch != nil && s.Batch.Target {
				v := *e.Verdict
				v.Green, e.Verdict = true, &v
			}
			return queue.Step(s, e)
		},
	}, o: Options{Tasks: 1000, Agents: 20}},
	"a queue that stopped goes on no more": {law: Drained, rules: Rules{
		Queue: func(s queue.State, e queue.Event) (queue.State, queue.Command) {
			if e.Kind == queue.Asked && e.Ask.Wish == queue.WishResume {
				return s, queue.Command{}
			}
			return queue.Step(s, e)
		},
	}, o: Options{Tasks: 100, Agents: 3}},
	"the queue does not see that its clock is set": {law: Prompt, rules: Rules{
		Queue: func(s queue.State, e queue.Event) (queue.State, queue.Command) {
			s.Stepped, e.ClockSet = time.Time{}, 0
			return queue.Step(s, e)
		},
	}},
	"the board refuses what a run came to": {law: Table, rules: Rules{
		Move: func(c board.Case, ch board.Change) (board.Case, board.Entry, error) {
			if ch.Action == board.Block && ch.By == board.Pawl && c.Status == board.Active {
				return c, board.Entry{}, &board.RefusalError{ID: c.ID, Why: "no"}
			}
			return board.Move(c, ch)
		},
	}},
}

// Each law finds the rule that breaks it, in one of a few seeds.
func TestBrokenRules(t *testing.T) {
	t.Parallel()
	for name, b := range broken {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := b.o
			if o.Tasks == 0 {
				o.Tasks, o.Agents = 300, 10
			}
			o.Rules = b.rules
			var found []string
			for o.Seed = 1; o.Seed <= 40; o.Seed++ {
				_, v := Play(o)
				if v == nil {
					continue
				}
				if v.Law == b.law {
					return
				}
				found = append(found, v.Error())
			}
			t.Errorf("nobody sees it as %q; found: %v", b.law, found)
		})
	}
}

// What is found is told in a small world, with the story of whom it is about.
func TestExplain(t *testing.T) {
	t.Parallel()
	o := Options{Seed: 1, Tasks: 300, Agents: 10, Rules: broken["a task starts without what it needs"].rules}
	_, v := Play(o)
	if v == nil {
		t.Fatal("nothing was found")
	}
	small := Explain(v)
	text := small.Tell()
	if small.Law != v.Law || small.Options.Tasks >= o.Tasks {
		t.Errorf("not shrunk: %v", small)
	}
	for _, want := range []string{"seed ", string(v.Law), "pawl start: pending -> active", small.About[0]} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in the story:\n%s", want, text)
		}
	}
	if _, again := Play(small.Options); again == nil || again.Error() != small.Error() {
		t.Errorf("played again: %v, want %v", again, small)
	}
}
