package store

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/keep/store/database"
	"github.com/pawl-dev/pawl/internal/test/pgtest"
)

// What servers, networks and operators do to a board.
func TestFaultsOfAServer(t *testing.T) {
	if another() != "" {
		t.Skip("it has a server of its own")
	}
	server := pgtest.Start(t)
	for name, try := range map[string]func(*testing.T, *pgtest.Server){
		"a wrong password": wrongPassword, "a network that is cut": networkCut, "a server that is put back": putBack,
		"a server without TLS": withoutTLS, "a server that is back soon": backSoon, "a lock that somebody holds": heldLock,
		"a server that loses power": powerLost,
	} {
		t.Run(name, func(t *testing.T) { try(t, server) })
	}
}

// A wrong password is said, and what to do, and the password is not.
func wrongPassword(t *testing.T, server *pgtest.Server) {
	address := server.New(t)
	server.SQL(t, "postgres", `CREATE ROLE keyed LOGIN PASSWORD 'right'`)
	server.SQL(t, "postgres", `COPY (VALUES ('local all keyed scram-sha-256'), ('local all all trust')) TO '`+
		server.SQL(t, "postgres", `SHOW hba_file`)+`'`)
	server.SQL(t, "postgres", `SELECT pg_reload_conf()`)
	server.Stop() // a reload takes its time
	must(t, server.Run())
	for user, says := range map[string]string{"keyed:hunter2": "check the user and the password", "keyed": "~/.pgpass"} {
		_, err := OpenShared(t.Context(), Shared{Address: strings.Replace(address, "pawl@", user+"@", 1), Repository: "acme/shop"})
		if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", user, err)
		}
	}
}

// An address that asks for TLS, where the server has none, is what is to be changed.
func withoutTLS(t *testing.T, server *pgtest.Server) {
	u, err := url.Parse(server.New(t))
	must(t, err)
	c := newCutter(t, filepath.Join(u.Query().Get("host"), ".s.PGSQL.5432"))
	t.Cleanup(func() { must(t, c.Close()) })
	_, err = OpenShared(t.Context(), Shared{
		Address: "postgres://pawl@" + c.Addr().String() + u.Path + "?sslmode=require", Repository: "acme/shop",
	})
	if err == nil || !strings.Contains(err.Error(), "sslmode") {
		t.Errorf("it says %v", err)
	}
}

// cutter passes connections to a server on, until it sees some words of the client: these
// it passes on, and keeps the answer.
type cutter struct {
	net.Listener
	server string
	word   atomic.Pointer[string]
	all    sync.WaitGroup
}

func newCutter(t *testing.T, server string) *cutter {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	c := &cutter{Listener: l, server: server}
	c.all.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			c.all.Go(func() { c.pass(client) })
		}
	})
	return c
}

func (c *cutter) pass(client net.Conn) {
	defer func() { _ = client.Close() }()
	server, err := net.Dial("unix", c.server)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	var cut atomic.Bool
	c.all.Go(func() {
		buf := make([]byte, 64<<10)
		for {
			n, err := server.Read(buf)
			if err != nil || cut.Load() {
				_ = client.Close()
				return
			}
			_, _ = client.Write(buf[:n])
		}
	})
	buf := make([]byte, 64<<10)
	for {
		n, err := client.Read(buf)
		if err != nil {
			return
		}
		word := c.word.Load()
		if word != nil && bytes.Contains(buf[:n], []byte(*word)) {
			c.word.Store(nil)
			cut.Store(true)
			_, _ = server.Write(buf[:n])
			_, _ = io.Copy(io.Discard, client) // until it has seen the end
			return
		}
		_, _ = server.Write(buf[:n])
	}
}

// A network that is cut in the middle: before the commit nothing is stored; where the
// answer to the commit is lost that is not known, and said. Then all goes on.
func networkCut(t *testing.T, server *pgtest.Server) {
	ctx := t.Context()
	u, err := url.Parse(server.New(t))
	must(t, err)
	c := newCutter(t, filepath.Join(u.Query().Get("host"), ".s.PGSQL.5432"))
	s, err := OpenShared(ctx, Shared{
		Address: "postgres://pawl@" + c.Addr().String() + u.Path + "?sslmode=disable", Repository: "acme/shop",
	})
	must(t, err)
	add := func(title string) error {
		_, err := s.AddCases(ctx, []board.Draft{draft(title)}, board.Person, noon)
		return err
	}
	must(t, add("before"))
	for _, cut := range []struct{ word, title, says string }{
		{"COMMIT", "at the end", "whether it was stored is not known, so look before you do it again"},
		{"in the middle", "in the middle", "nothing was stored"},
	} {
		c.word.Store(&cut.word)
		if err := add(cut.title); !errors.Is(err, ErrAway) || !strings.Contains(err.Error(), cut.says) {
			t.Errorf("cut at %s: %v", cut.word, err)
		}
	}
	must(t, add("after"))
	cases, err := s.Cases(ctx, CaseFilter{})
	must(t, err)
	var titles []string
	for _, one := range cases {
		titles = append(titles, one.Title)
	}
	if got := strings.Join(titles, ", "); got != "before, at the end, after" {
		t.Errorf("the board has: %s", got)
	}
	must(t, s.Close())
	_ = c.Close()
	c.all.Wait()
}

// A server that is put back to yesterday's copy under a run: the run's steps are refused,
// and none is stored after a gap. What yesterday had is there, and work goes on.
func putBack(t *testing.T, server *pgtest.Server) {
	ctx := t.Context()
	address := server.New(t)
	u, err := url.Parse(address)
	must(t, err)
	name := strings.TrimPrefix(u.Path, "/")
	s, err := OpenShared(ctx, Shared{Address: address, Repository: "acme/shop"})
	must(t, err)
	defer func() { _ = s.Close() }()
	old, today := run("r1", "build"), run("r2", "other")
	must(t, s.Create(ctx, old, event("r1", 1, "x"), nobody))
	server.SQL(t, "postgres", `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '`+name+`'`)
	server.SQL(t, "postgres", `CREATE DATABASE yesterday TEMPLATE `+name)
	for err = s.Commit(ctx, stepOf(old, 2)); errors.Is(err, ErrAway); {
		err = s.Commit(ctx, stepOf(old, 2))
	}
	must(t, err)
	must(t, s.Create(ctx, today, event("r2", 1, "x"), nobody))
	server.SQL(t, "postgres", `DROP DATABASE `+name+` WITH (FORCE)`)
	server.SQL(t, "postgres", `CREATE DATABASE `+name+` TEMPLATE yesterday`)
	again := func(do func() error) error {
		err := do()
		for errors.Is(err, ErrAway) {
			err = do()
		}
		return err
	}
	if err := again(func() error { return s.Commit(ctx, stepOf(old, 3)) }); !errors.Is(err, ErrOutOfOrder) {
		t.Errorf("a step after a gap: %v", err)
	}
	if err := again(func() error { return s.Commit(ctx, stepOf(today, 2)) }); !errors.Is(err, ErrNotFound) {
		t.Errorf("a step of a run that does not exist: %v", err)
	}
	must(t, again(func() error { return s.Commit(ctx, stepOf(old, 2)) }))
}

// setting is what a connection of the store has for a parameter of the server.
func setting(t *testing.T, s *Store, name string) (value string) {
	t.Helper()
	must(t, s.runWrite(t.Context(), crashSafe, func(ctx context.Context, _ *statements) error {
		return s.write.conn.QueryRowContext(ctx, "SHOW "+name).Scan(&value)
	}))
	return value
}

func openShared(t *testing.T, address string) *Store {
	t.Helper()
	s, err := OpenShared(t.Context(), Shared{Address: address, Repository: "acme/shop", Place: "p"})
	must(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// Who waits for its turn while the server is away goes on when that is back.
func backSoon(t *testing.T, server *pgtest.Server) {
	s := openShared(t, server.New(t))
	addAll(t, s, draft("before"))
	var said []string
	s.OnWait(func(why string) {
		said = append(said, why)
		if err := server.Run(); err != nil {
			t.Error(err)
		}
	})
	server.Stop()
	addAll(t, s, draft("after"))
	if len(said) != 1 || !strings.HasPrefix(said[0], "which cannot be reached (postgres://") {
		t.Errorf("it said %q", said)
	}
}

// Somebody holds the lock of the board. Who waits says who it is, with the machine, and gives up after half a
// minute. Who hangs in the middle of a transaction loses the lock.
func heldLock(t *testing.T, server *pgtest.Server) {
	address := server.New(t)
	holder, waiter := openShared(t, address), openShared(t, address)
	addAll(t, waiter, draft("before"))
	patience, err := time.ParseDuration(setting(t, waiter, "lock_timeout"))
	if must(t, err); patience != 1500*time.Millisecond || patience*attempts != 30*time.Second {
		t.Errorf("it waits %d times for %s", attempts, patience)
	}
	if hang := setting(t, waiter, "idle_in_transaction_session_timeout"); hang != "1min" {
		t.Errorf("who hangs loses the lock after %s", hang)
	}
	_, err = waiter.write.conn.ExecContext(t.Context(), "SET lock_timeout = 1")
	must(t, err)
	var said []string
	waiter.OnWait(func(who string) { said = append(said, who) })
	host, err := os.Hostname()
	must(t, err)
	who := fmt.Sprintf("process %d on %s", os.Getpid(), host)
	must(t, holder.runWrite(t.Context(), crashSafe, func(ctx context.Context, _ *statements) error {
		_, err := waiter.AddCases(ctx, []board.Draft{draft("never")}, board.Person, noon)
		if !errors.Is(err, ErrBusy) || !strings.Contains(err.Error(), who+" has ") {
			t.Errorf("who gives up says %v", err)
		}
		return nil
	}))
	if len(said) != 1 || said[0] != "which "+who+" has locked" {
		t.Errorf("it said %q", said)
	}

	_, err = holder.write.conn.ExecContext(t.Context(), "SET idle_in_transaction_session_timeout = 1")
	must(t, err)
	err = holder.runWrite(t.Context(), crashSafe, func(ctx context.Context, _ *statements) error {
		for {
			_, err := waiter.AddCases(ctx, []board.Draft{draft("after")}, board.Person, noon)
			if !errors.Is(err, ErrBusy) {
				return err
			}
		}
	})
	if !errors.Is(holder.explainError(t.Context(), "hang", err), ErrAway) {
		t.Errorf("who hung gets %v", err)
	}
	cases, err := waiter.Cases(t.Context(), CaseFilter{})
	if must(t, err); len(cases) != 2 {
		t.Errorf("the board has %+v", cases)
	}
}

// noted keeps how the last transaction was begun, and what the server makes of that.
type noted struct {
	database.Database
	last    bool
	commits string
}

func (d *noted) Begin(ctx context.Context, c *sql.Conn, durable bool) error {
	d.last = durable
	err := d.Database.Begin(ctx, c, durable)
	if err == nil {
		err = c.QueryRowContext(ctx, "SHOW synchronous_commit").Scan(&d.commits)
	}
	return err
}

// The server loses what is not on disk: tasks, landings and what people decided are there, and of the steps of a run
// the last ones may be missing, but no part of one.
func powerLost(t *testing.T, server *pgtest.Server) {
	s := openShared(t, server.New(t))
	ctx, r := t.Context(), run("r1", "build")
	d := &noted{Database: s.db}
	s.db = d
	must(t, s.Create(ctx, r, event("r1", 1, "x"), nobody))
	steps := func(from, to int64) {
		for n := from; n <= to; n++ {
			step := stepOf(r, n)
			step.Record = record(int(n), 1)
			must(t, s.Commit(ctx, step))
		}
	}
	steps(2, 5)
	for _, move := range []board.Action{"", board.Start, board.Land} {
		if move == "" {
			addAll(t, s, draft("a"))
		} else {
			_, err := s.MoveCase(ctx, "task-001", board.Change{Action: move, By: board.Pawl, At: noon})
			must(t, err)
		}
		if move != board.Start && (!d.last || d.commits != "on") {
			t.Errorf("%q does not wait for the disk", move)
		}
	}
	_, err := s.AddControl(ctx, Control{Run: "r1", Kind: ControlAnswer, Text: "blue", At: noon})
	if must(t, err); !d.last || d.commits != "on" {
		t.Error("an answer does not wait for the disk")
	}
	steps(6, 30)
	server.Stop()
	must(t, server.Run())
	after, err := s.Run(ctx, "r1")
	for errors.Is(err, ErrAway) {
		after, err = s.Run(ctx, "r1")
	}
	if must(t, err); after.N < 5 {
		t.Errorf("of the steps before the answer only %d are there", after.N)
	}
	holds(t, s, after.N)
	if c, err := s.Case(ctx, "task-001"); err != nil || c.Status != board.Done {
		t.Errorf("the task that landed is %s (%v)", c.Status, err)
	}
	if asked, err := s.Controls(ctx, "r1"); err != nil || len(asked) != 1 || asked[0].Text != "blue" {
		t.Errorf("the run was asked %+v (%v)", asked, err)
	}
}
