package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/queue"
	"github.com/pawl-dev/pawl/internal/decide/stats"
	"github.com/pawl-dev/pawl/internal/keep/store/postgres"
	"github.com/pawl-dev/pawl/internal/test/pgtest"
)

// everything is what a person sees of a board, as text.
func everything(ctx context.Context, t *testing.T, s *Store) string {
	t.Helper()
	cases, err := s.Cases(ctx, CaseFilter{})
	must(t, err)
	runs, err := s.Runs(ctx, RunQuery{})
	must(t, err)
	tallies, err := s.Tallies(ctx, stats.All, noon.AddDate(-1, 0, 0), noon, noon.Location(), 10)
	must(t, err)
	events, err := s.Events(ctx, "", 0, 1000)
	must(t, err)
	changes, err := s.CaseChanges(ctx, 0, 1000)
	must(t, err)
	spaces, err := s.Workspaces(ctx)
	must(t, err)
	text, err := json.Marshal([]any{cases, runs, tallies, events, changes, spaces})
	must(t, err)
	return string(text)
}

// A board is brought to a server as it is, once, and goes on there with the next numbers.
func TestABoardIsBrought(t *testing.T) {
	if another() != "" {
		t.Skip("it has a server of its own")
	}
	server := pgtest.Start(t)
	ctx := t.Context()
	local, r := begun(t, "r1")
	addAll(t, local, draft("a"), draft("b"))
	step := stepOf(r, 2)
	step.Record = record(2, 1)
	must(t, local.Commit(ctx, step))
	must(t, local.EditWorkspaces(ctx, func([]Workspace) (WorkspaceChange, error) {
		return WorkspaceChange{Put: []Workspace{{ID: "task-001", Dir: "/d", Repo: "/r"}}}, nil
	}))
	address := server.New(t)
	shared, err := OpenShared(ctx, Shared{Address: address, Repository: "acme/shop", Place: "here:/repo"})
	must(t, err)
	defer func() { _ = shared.Close() }()

	if _, _, err := shared.Import(ctx, local, noon, everybody); !errors.Is(err, ErrRunning) {
		t.Errorf("while a run goes on: %v", err)
	}
	rows, was, err := shared.Import(ctx, local, noon, nobody)
	if err != nil || rows == 0 || !was.IsZero() {
		t.Fatalf("%d rows, brought before %v: %v", rows, was, err)
	}
	server.SQL(t, "t1", `INSERT INTO `+postgres.SchemaOf("acme/shop")+`.leases VALUES (100, 's100', 'b', 'h', now())`)
	if want, got := everything(ctx, t, local), everything(ctx, t, shared); got != want {
		t.Errorf("it had\n%s\nand has\n%s", want, got)
	}
	if rows, was, err := shared.Import(ctx, local, noon, nobody); rows != 0 || !was.Equal(noon) || err != nil {
		t.Errorf("again: %d rows, brought before %v: %v", rows, was, err)
	}
	if _, _, err := shared.Import(ctx, fresh(t), noon, nobody); !errors.Is(err, ErrNotEmpty) {
		t.Errorf("a second board: %v", err)
	}
	added := addAll(t, shared, draft("c"))
	if added[0] != "task-003" {
		t.Errorf("the next task is %s", added[0])
	}
	must(t, shared.Commit(ctx, stepOf(r, 3)))
	other, err := OpenShared(ctx, Shared{Address: address, Repository: "acme/shop", Place: "there:/repo"})
	must(t, err)
	defer func() { _ = other.Close() }()
	if spaces, err := other.Workspaces(ctx); err != nil || len(spaces) != 0 {
		t.Errorf("another machine has %v (%v)", spaces, err)
	}
	found, err := shared.Inspect(ctx)
	if err != nil || !found.Notified || found.Board != "acme/shop" || len(found.Others) != 0 {
		t.Errorf("found %+v (%v)", found, err)
	}
}

// A server that is restarted costs the transaction that it ended, and nothing else.
func TestAServerThatIsRestarted(t *testing.T) {
	if another() != "" {
		t.Skip("it has a server of its own")
	}
	server := pgtest.Start(t)
	ctx := t.Context()
	address := server.New(t)
	s, err := OpenShared(ctx, Shared{Address: address, Repository: "acme/shop"})
	must(t, err)
	defer func() { _ = s.Close() }()
	restart := func() {
		server.Stop()
		must(t, server.Run())
	}
	tasks := 0
	for what, do := range map[string]func() error{
		"a run": func() error {
			return s.Create(ctx, run("r1", "build"), event("r1", 1, "x"), func(Owner) bool { return false })
		},
		"a list":   func() error { _, err := s.Cases(ctx, CaseFilter{}); return err },
		"a change": func() error { _, err := s.DataVersion(ctx); return err },
		"a task": func() error {
			tasks++
			_, err := s.AddCases(ctx, []board.Draft{draft(fmt.Sprint("a", tasks))}, board.Person, noon)
			return err
		},
		"a landing": func() error {
			_, err := s.LandCases(ctx, []queue.Landing{{Task: "task-009", Commit: "c"}}, noon)
			return err
		},
	} {
		must(t, do())
		restart()
		if err := do(); err != nil && !errors.Is(err, ErrAway) {
			t.Errorf("%s after a restart: %v", what, err)
		}
		must(t, do())
	}

	// In the middle: an error that says what to do, and then it goes on.
	err = s.EditWorkspaces(ctx, func([]Workspace) (WorkspaceChange, error) {
		restart()
		return WorkspaceChange{Put: []Workspace{{ID: "task-001", Dir: "/d", Repo: "/r"}}}, nil
	})
	if !errors.Is(err, ErrAway) || !strings.Contains(err.Error(), "see that the server is up") {
		t.Errorf("in the middle: %v", err)
	}
	if spaces, err := s.Workspaces(ctx); err != nil || len(spaces) != 0 {
		t.Errorf("half of it is there: %v (%v)", spaces, err)
	}
	addAll(t, s, draft("b"))

	server.Stop()
	if _, err := s.Cases(ctx, CaseFilter{}); !errors.Is(err, ErrAway) {
		t.Errorf("without a server: %v", err)
	}
	if _, err := OpenShared(ctx, Shared{Address: address, Repository: "acme/shop"}); !errors.Is(err, ErrAway) {
		t.Errorf("opened without a server: %v", err)
	}
}

// A board that could be written once is tried anew.
func TestInspectWrites(t *testing.T) {
	t.Parallel()
	if another() != "" {
		t.Skip("it has a server of its own")
	}
	server := pgtest.Start(t)
	shared := Shared{Address: server.New(t), Repository: "acme/shop"}
	inspect := func() error {
		s, err := OpenShared(t.Context(), shared)
		must(t, err)
		defer func() { must(t, s.Close()) }()
		_, err = s.Inspect(t.Context())
		return err
	}
	must(t, inspect())
	if n := server.SQL(t, "t1", `SELECT count(*) FROM `+postgres.SchemaOf("acme/shop")+`.leases`); n != "0" {
		t.Errorf("it left %s rows", n)
	}
	server.SQL(t, "postgres", `ALTER DATABASE t1 SET default_transaction_read_only = on`)
	if err := inspect(); !errors.Is(err, ErrUnwritable) {
		t.Errorf("a database that only reads: %v", err)
	}
}

// What a server or an address refuses is said, with what to do and without the password.
func TestRefusedByTheServer(t *testing.T) {
	if another() != "" {
		t.Skip("it has a server of its own")
	}
	server := pgtest.Start(t)
	ctx := t.Context()
	server.New(t) // t1
	server.SQL(t, "postgres", `CREATE DATABASE odd ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0`)
	server.SQL(t, "postgres", `CREATE DATABASE still`)
	server.SQL(t, "postgres", `ALTER DATABASE still SET default_transaction_read_only = on`)
	server.SQL(t, "postgres", `CREATE DATABASE newer`)
	server.SQL(t, "postgres", `CREATE ROLE guest LOGIN`)
	s, err := OpenShared(ctx, Shared{Address: server.Address("newer"), Repository: "acme/shop"})
	must(t, err)
	must(t, s.execOne(ctx, powerSafe, "be newer",
		`INSERT INTO migrations (number, name, checksum, applied_at) VALUES (99, 'x', 'x', 0)`))
	must(t, s.Close())
	secret := func(address string) string { return strings.Replace(address, "pawl@", "pawl:hunter2@", 1) }
	for name, c := range map[string]struct {
		address string
		kind    error
		says    string
	}{
		"no database":    {server.Address("none"), ErrRefused, "createdb"},
		"no rights":      {strings.Replace(server.Address("t1"), "pawl@", "guest@", 1), ErrRefused, "GRANT CREATE"},
		"read-only":      {server.Address("still"), ErrUnwritable, "only reads"},
		"encoding":       {server.Address("odd"), ErrRefused, "UTF8"},
		"newer":          {server.Address("newer"), ErrNewer, "use the newer pawl"},
		"no server":      {"postgres://pawl@/t1?host=" + filepath.Join(t.TempDir(), "none"), ErrAway, "see that the server is up"},
		"no address":     {"postgres://pawl@host:port/x", ErrRefused, "postgres://user@host/database"},
		"another scheme": {"mysql://pawl@host/x", ErrRefused, "postgres://user@host/database"},
	} {
		s, err := OpenShared(ctx, Shared{Address: secret(c.address), Repository: "acme/shop"})
		if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", name, err)
		}
		if s != nil {
			_ = s.Close()
		}
	}
	if _, err := OpenShared(ctx, Shared{Address: server.Address("t1")}); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "remote") {
		t.Errorf("a board without a name: %v", err)
	}
}
