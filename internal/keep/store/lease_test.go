package store

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/keep/store/postgres"
	"github.com/pawl-dev/pawl/internal/test/pgtest"
)

// A machine is lost for good: what it owned can be taken once its lease is over, and
// nobody is shown as its owner.
func TestALeaseIsOver(t *testing.T) {
	t.Parallel()
	if another() != "" {
		t.Skip("it has a server of its own")
	}
	server := pgtest.Start(t)
	address := server.New(t)
	open := func(lease time.Duration) *Store {
		s, err := OpenShared(t.Context(), Shared{Address: address, Repository: "acme/shop", Place: "p", Lease: lease})
		must(t, err)
		t.Cleanup(func() { must(t, s.Close()) })
		return s
	}
	lost, here := Owner{PID: 1, Start: "2", Boot: "b", Host: "lost"}, Owner{PID: 2, Start: "2", Boot: "c", Host: "here"}
	alive := func(Owner) bool { return true }
	first, patient, second := open(time.Hour), open(time.Hour), open(time.Millisecond)
	_, err := first.TakeAutopilot(t.Context(), Autopilot{Session: "one", Owner: lost, State: []byte("{}")}, alive)
	must(t, err)
	_, err = first.TakeQueue(t.Context(), "main", lost, time.Now(), alive)
	must(t, err)
	schema := postgres.SchemaOf("acme/shop")
	beaten := func(when string) {
		server.SQL(t, "t1", `UPDATE `+schema+`.leases SET beat_at = now() + interval '`+when+`'`)
	}
	next := Autopilot{Session: "two", Owner: here, State: []byte("{}")}

	beaten("-2 hours")
	first.beatLeases(t.Context())
	if n := server.SQL(t, "t1", `SELECT count(*) FROM `+schema+`.leases WHERE beat_at > now() - interval '1 hour'`); n != "1" {
		t.Errorf("%s leases were beaten", n)
	}
	beaten("1 hour")
	if _, err := second.TakeAutopilot(t.Context(), next, alive); !errors.Is(err, ErrRunning) {
		t.Errorf("an autopilot whose lease is beaten was taken: %v", err)
	}
	if a, _, err := second.Autopilot(t.Context()); err != nil || a.Owner != lost {
		t.Errorf("its owner is %+v (%v)", a.Owner, err)
	}
	beaten("-2 hours")
	if _, err := patient.TakeAutopilot(t.Context(), next, alive); !errors.Is(err, ErrRunning) {
		t.Errorf("a lease is over that could not be beaten, since the server was away: %v", err)
	}
	if a, _, err := second.Autopilot(t.Context()); err != nil || a.Owner.PID != 0 {
		t.Errorf("the owner that is lost is still shown as %+v (%v)", a.Owner, err)
	}
	_, err = second.TakeAutopilot(t.Context(), next, alive)
	must(t, err)
	_, err = second.TakeQueue(t.Context(), "main", here, time.Now(), alive)
	must(t, err)
	if err := first.SaveAutopilot(t.Context(), Autopilot{Session: "one", Owner: lost, State: []byte("{}")}); !errors.Is(err, ErrNotOwner) {
		t.Errorf("the lost one came back and stored: %v", err)
	}
}

// The same procedure works in the clones of several machines at once, in each of them once. A task works on one only.
func TestAProcedureOnSeveralMachines(t *testing.T) {
	t.Parallel()
	if another() != "" {
		t.Skip("it has a server of its own")
	}
	s := openShared(t, pgtest.Start(t).New(t))
	for _, kind := range []string{"procedure", "task"} {
		for i, host := range []string{"m1", "m2", "m1"} {
			r := run(fmt.Sprint(kind, i), kind)
			r.Kind, r.Owner = kind, Owner{PID: 7, Start: "1", Boot: "b", Host: host}
			err := s.Create(t.Context(), r, event(r.ID, 1, "x"), everybody)
			if isFirst := i == 0 || i == 1 && kind == "procedure"; isFirst == errors.Is(err, ErrRunning) {
				t.Errorf("run %d of a %s, on %s: %v", i, kind, host, err)
			}
		}
	}
}

// A container that is started again, and another machine with the same name, are told
// apart from this one: only their leases say whether they live.
func TestAnOwnerWithTheSameHostName(t *testing.T) {
	t.Parallel()
	if another() != "" {
		t.Skip("it has a server of its own")
	}
	server := pgtest.Start(t)
	host, err := os.Hostname()
	must(t, err)
	address := server.New(t)
	open := func(lease time.Duration) *Store {
		s, err := OpenShared(t.Context(), Shared{Address: address, Repository: "acme/shop", Place: "p", Boot: "here", Lease: lease})
		must(t, err)
		t.Cleanup(func() { must(t, s.Close()) })
		return s
	}
	first, second := open(time.Hour), open(time.Millisecond)
	byLook := func(o Owner) bool { return o.Host != host } // what is called so here has ended
	for _, c := range []struct {
		boot, beaten string
		alive        bool
	}{{"here", "1 hour", false}, {"there", "1 hour", true}, {"there", "-2 hours", false}} {
		o := Owner{PID: 1, Start: "2", Boot: c.boot, Host: host}
		server.SQL(t, "t1", fmt.Sprintf(`UPDATE %[1]s.autopilot SET owner_pid = 0; DELETE FROM %[1]s.leases`, postgres.SchemaOf("acme/shop")))
		_, err := first.TakeAutopilot(t.Context(), Autopilot{Session: "one", Owner: o, State: []byte("{}")}, byLook)
		must(t, err)
		server.SQL(t, "t1", fmt.Sprintf(`UPDATE %s.leases SET beat_at = now() + interval '%s'`, postgres.SchemaOf("acme/shop"), c.beaten))
		o.PID, o.Boot = 2, "here"
		_, err = second.TakeAutopilot(t.Context(), Autopilot{Session: "two", Owner: o, State: []byte("{}")}, byLook)
		if errors.Is(err, ErrRunning) != c.alive {
			t.Errorf("%+v: %v", c, err)
		}
		if a, _, err := first.Autopilot(t.Context()); err != nil || c.alive != (a.Owner.Host == host+" (another one)") {
			t.Errorf("%+v: its owner is shown as %v (%v)", c, a.Owner, err)
		}
	}
	// What the one whose lease is over had in use is free.
	for boot, want := range map[string]int{"here": 1, "there": 0} {
		one := Workspace{ID: "task-001", Dir: "d", Repo: "r", Owner: Owner{PID: 1, Start: "2", Boot: boot, Host: host}}
		must(t, second.EditWorkspaces(t.Context(), func([]Workspace) (WorkspaceChange, error) {
			return WorkspaceChange{Put: []Workspace{one}}, nil
		}))
		must(t, second.EditWorkspaces(t.Context(), func(all []Workspace) (WorkspaceChange, error) {
			if len(all) != 1 || all[0].Owner.PID != want {
				t.Errorf("a workspace that one of the boot %q has in use: %+v", boot, all)
			}
			return WorkspaceChange{}, nil
		}))
		if w, _, err := second.Workspace(t.Context(), "task-001"); err != nil || w.Owner.PID != want {
			t.Errorf("a workspace that one of the boot %q has in use: %+v (%v)", boot, w.Owner, err)
		}
	}
}

// Workers say what they have. A task that needs labels is served by one that has all of
// them, and is heard of.
func TestWorkers(t *testing.T) {
	t.Parallel()
	if another() != "" {
		t.Skip("it has a server of its own")
	}
	server := pgtest.Start(t)
	address := server.New(t)
	open := func() *Store {
		s, err := OpenShared(t.Context(), Shared{Address: address, Repository: "acme/shop", Place: "p"})
		must(t, err)
		t.Cleanup(func() { must(t, s.Close()) })
		return s
	}
	s := open()
	drafts := []board.Draft{
		{Case: board.Case{Title: "any"}},
		{Case: board.Case{Title: "big", Tags: []string{"needs:GPU", "needs:big"}}},
	}
	_, err := s.AddCases(t.Context(), drafts, board.Person, time.Now())
	must(t, err)
	unserved := func(want string, workers ...Worker) {
		t.Helper()
		for _, w := range workers {
			must(t, s.SaveWorker(t.Context(), w))
		}
		list, err := s.Unserved(t.Context())
		must(t, err)
		got := ""
		for _, c := range list {
			got += c.ID
		}
		if got != want {
			t.Errorf("with %+v nobody serves %q, not %q", workers, got, want)
		}
	}
	unserved("task-002", Worker{Name: "a", Labels: []string{"gpu"}}, Worker{Name: "b", Labels: []string{"big"}})
	before, err := s.DataVersion(t.Context())
	must(t, err)
	unserved("", Worker{Name: "b", Labels: []string{"big", "gpu"}, Slots: 2, OwnRules: "pawl.yaml has changes"})
	for now := before; now == before; {
		now, err = s.DataVersion(t.Context()) // who watches hears of it
		must(t, err)
	}
	all, err := s.Workers(t.Context())
	must(t, err)
	isOwn := len(all) == 2 && all[0].OwnRules == "" && all[1].OwnRules == "pawl.yaml has changes"
	if !isOwn || all[1].Slots != 2 || all[1].Silent || all[1].Behind > 60 || all[1].Behind < -60 {
		t.Errorf("the workers are %+v", all)
	}
	unserved("task-002", Worker{Name: "b", Labels: []string{"big", "gpu"}, Drains: true})
	unserved("", Worker{Name: "b", Labels: []string{"big", "gpu"}})
	server.SQL(t, "t1", `UPDATE `+postgres.SchemaOf("acme/shop")+`.workers SET beat_at = now() - interval '2 minutes'`)
	unserved("task-002")
	s = open() // a process that has beaten itself takes this for an older copy of the board
	unserved("", Worker{Name: "b", Labels: []string{"big", "gpu"}})
	must(t, s.DropWorker(t.Context(), "b"))
	unserved("task-002")
}

// Two machines with the same host name and the same folder are one worker by name. The first
// that said so has it, until it ends or is silent; the other one takes nothing from it.
func TestTwoMachinesAreCalledTheSame(t *testing.T) {
	t.Parallel()
	if another() != "" {
		t.Skip("it has a server of its own")
	}
	server := pgtest.Start(t)
	address := server.New(t)
	open := func(boot string) *Store {
		s, err := OpenShared(t.Context(), Shared{Address: address, Repository: "acme/shop", Place: "p", Boot: boot})
		must(t, err)
		t.Cleanup(func() { must(t, s.Close()) })
		return s
	}
	host, err := os.Hostname()
	must(t, err)
	one, two, again := open("one"), open("two"), open("one")
	w := Worker{Name: host + "-1", Host: host, PID: 7}
	refused := func(s *Store, want bool) {
		t.Helper()
		var twin *TwinError
		err := s.SaveWorker(t.Context(), w)
		if errors.As(err, &twin) != want || want && twin.Worker.PID != 7 || !want && err != nil {
			t.Errorf("it was refused with %v", err)
		}
	}
	twins := func(s *Store) (n int) {
		t.Helper()
		all, err := s.Workers(t.Context())
		must(t, err)
		for _, w := range all {
			if w.Twin {
				n++
			}
		}
		return n
	}

	refused(one, false)
	refused(two, true)
	refused(again, false) // the machine's next worker
	if mine, others := twins(one), twins(two); mine != 0 || others != 1 {
		t.Errorf("one sees %d twins, and two sees %d", mine, others)
	}
	must(t, two.DropWorker(t.Context(), w.Name)) // it is not its own
	refused(two, true)
	must(t, again.DropWorker(t.Context(), w.Name))
	refused(two, false)
	refused(one, true)
	server.SQL(t, "t1", `UPDATE `+postgres.SchemaOf("acme/shop")+`.workers SET beat_at = now() - interval '1 minute'`)
	refused(one, false)
	refused(two, true)
}

// A process that drives the autopilot is stopped until another one has gone on with it.
// Nothing that it does then is stored.
func TestATurnIsOver(t *testing.T) {
	t.Parallel()
	if another() != "" {
		t.Skip("it has a server of its own")
	}
	server := pgtest.Start(t)
	address := server.New(t)
	open := func() *Store {
		s, err := OpenShared(t.Context(), Shared{Address: address, Repository: "acme/shop", Place: "p"})
		must(t, err)
		t.Cleanup(func() { must(t, s.Close()) })
		return s
	}
	here, there := Owner{PID: 1, Start: "2", Boot: "b", Host: "here"}, Owner{PID: 2, Start: "2", Boot: "c", Host: "there"}
	lives := func(o Owner) bool { return o == here }
	dead := func(Owner) bool { return false }
	first, second := open(), open()
	on := Autopilot{Session: "one", State: []byte("{}"), Options: []byte(`{"filter":{}}`)}
	if _, err := first.GoOnAutopilot(t.Context(), here, lives); !errors.Is(err, ErrNotOwner) {
		t.Errorf("none is on, and it goes on: %v", err)
	}
	_, err := second.TakeAutopilot(t.Context(), on, lives)
	must(t, err)
	if _, err := second.TakeAutopilot(t.Context(), on, lives); !errors.Is(err, ErrRunning) {
		t.Errorf("two are on: %v", err)
	}
	if _, err := first.TakeAutopilot(t.Context(), Autopilot{Session: "two", Owner: here, State: on.State}, lives); !errors.Is(err, ErrRunning) {
		t.Errorf("one that nobody drives yet was taken: %v", err)
	}
	_, err = second.AskAutopilot(t.Context(), AutopilotControl{Kind: AutopilotPause, At: time.Now()})
	must(t, err)
	a, err := first.GoOnAutopilot(t.Context(), here, lives)
	must(t, err)
	again, err := first.GoOnAutopilot(t.Context(), here, lives)
	must(t, err)
	if a.Session != "one" || again.Turn != a.Turn+1 {
		t.Errorf("it goes on with %+v, then with %+v", a, again)
	}
	must(t, first.SaveSlot(t.Context(), Slot{Case: "task-001"}))
	if _, err := second.GoOnAutopilot(t.Context(), there, lives); !errors.Is(err, ErrRunning) {
		t.Errorf("two drive it: %v", err)
	}
	b, err := second.GoOnAutopilot(t.Context(), there, dead)
	must(t, err)
	for what, err := range map[string]error{
		"its state":  first.SaveAutopilot(t.Context(), again),
		"a slot":     first.SaveSlot(t.Context(), Slot{Case: "task-001"}),
		"a task":     first.DropSlot(t.Context(), ""),
		"a queue":    first.LeaveQueue(t.Context(), "main", here),
		"its ending": first.SaveAutopilot(t.Context(), Autopilot{Session: "one", Turn: again.Turn, EndedAt: time.Now()}),
	} {
		if !errors.Is(err, ErrNotOwner) {
			t.Errorf("%s was stored after its turn: %v", what, err)
		}
	}
	if _, err := first.TakeAutopilotControls(t.Context()); !errors.Is(err, ErrNotOwner) {
		t.Errorf("it took what was asked after its turn: %v", err)
	}
	if asked, err := second.TakeAutopilotControls(t.Context()); err != nil || len(asked) != 1 {
		t.Errorf("what was asked meanwhile: %v (%v)", asked, err)
	}
	b.EndedAt = time.Now()
	must(t, second.SaveAutopilot(t.Context(), b))
	if _, err := first.GoOnAutopilot(t.Context(), here, lives); !errors.Is(err, ErrNotOwner) {
		t.Errorf("it goes on with one that has ended: %v", err)
	}
}

// Who remembers more than the database asks whether it may have lost something.
func TestTheServerWasRestarted(t *testing.T) {
	t.Parallel()
	if another() != "" {
		t.Skip("it has a server of its own")
	}
	for name, fault := range map[string]func(*pgtest.Server){
		"stopped":    func(s *pgtest.Server) { s.Stop(); must(t, s.Run()) },
		"taken over": func(s *pgtest.Server) { must(t, s.FailOver(func() {})) },
		"crashed": func(s *pgtest.Server) {
			pid, err := strconv.Atoi(s.SQL(t, "t1", `SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'pawl%' LIMIT 1`))
			must(t, err)
			must(t, syscall.Kill(pid, syscall.SIGKILL))
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := pgtest.Start(t)
			s, err := OpenShared(t.Context(), Shared{Address: server.New(t), Repository: "acme/shop", Place: "p"})
			must(t, err)
			t.Cleanup(func() { must(t, s.Close()) })
			_, err = s.DataVersion(t.Context())
			must(t, err)
			if again, err := s.Restarted(t.Context()); again || err != nil {
				t.Errorf("before: %v (%v)", again, err)
			}
			fault(server)
			for again := false; !again; {
				_, _ = s.DataVersion(t.Context()) // as who watches does
				again, _ = s.Restarted(t.Context())
				if t.Context().Err() != nil {
					t.Fatal("nobody noticed")
				}
			}
		})
	}
}
