package store

import (
	"errors"
	"path"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/keep/store/postgres"
	"github.com/pawl-dev/pawl/internal/test/pgtest"
)

// A board that is dropped, made anew or put back from a copy while a process has it open is another one to
// that process: it says so, and changes nothing there, not even that it lives.
func TestABoardIsAnother(t *testing.T) {
	if another() != "" {
		t.Skip("it has a server of its own")
	}
	server := pgtest.Start(t)
	schema := postgres.SchemaOf("acme/shop")
	for name, replace := range map[string]func(t *testing.T, db string, at Shared){
		"dropped": func(t *testing.T, db string, _ Shared) { server.SQL(t, db, "DROP SCHEMA "+schema+" CASCADE") },
		"made anew": func(t *testing.T, db string, at Shared) {
			server.SQL(t, db, "DROP SCHEMA "+schema+" CASCADE")
			next, err := OpenShared(t.Context(), at)
			must(t, err)
			must(t, next.Close())
		},
		"put back": func(t *testing.T, db string, _ Shared) {
			server.PutBack(t, db, schema, server.Dump(t, db, schema))
		},
		"put back without its tables": func(t *testing.T, db string, _ Shared) {
			server.SQL(t, db, "SET search_path TO "+schema+"; CREATE TEMP TABLE copy AS SELECT * FROM identity; "+
				"TRUNCATE identity; INSERT INTO identity SELECT * FROM copy")
		},
	} {
		t.Run(name, func(t *testing.T) {
			address := server.New(t)
			db := databaseOf(address)
			at := Shared{Address: address, Repository: "acme/shop", Place: "here:/repo", Boot: "b1"}
			s, err := OpenShared(t.Context(), at)
			must(t, err)
			defer func() { _ = s.Close() }()
			addAll(t, s, draft("a"))
			must(t, s.SaveWorker(t.Context(), Worker{Name: "w", Host: "h"}))
			must(t, s.Same(t.Context()))
			replace(t, db, at)
			before := ""
			if name != "dropped" {
				before = server.Dump(t, db, schema)
			}
			_, err = s.AddCases(t.Context(), []board.Draft{draft("b")}, board.Person, noon)
			if !errors.Is(err, ErrGone) {
				t.Errorf("it stored a task: %v", err)
			}
			for what, err := range map[string]error{
				"looks": s.Same(t.Context()), "lives": s.SaveWorker(t.Context(), Worker{Name: "w", Host: "h"}),
				"orders": s.PlaceOrder(t.Context(), Order{Case: "task-001"}),
			} {
				if !errors.Is(err, ErrGone) {
					t.Errorf("who %s gets %v", what, err)
				}
			}
			s.beatLeases(t.Context())
			if _, err := s.DataVersion(t.Context()); !errors.Is(err, ErrGone) {
				t.Errorf("who watches gets %v", err)
			}
			if name != "dropped" && server.Dump(t, db, schema) != before {
				t.Error("the other board was changed")
			}
		})
	}
}

// All of a server's disk is put back: the board is the same by all that it says of itself, and has not heard
// of a worker for longer than a crash may have cost.
func TestADiskIsPutBack(t *testing.T) {
	if another() != "" {
		t.Skip("it has a server of its own")
	}
	server := pgtest.Start(t)
	address := server.New(t)
	db := databaseOf(address)
	s, err := OpenShared(t.Context(), Shared{Address: address, Repository: "acme/shop", Place: "here:/repo", Boot: "b1"})
	must(t, err)
	defer func() { _ = s.Close() }()
	w := Worker{Name: "w", Host: "h"}
	table := postgres.SchemaOf("acme/shop") + ".workers"
	for _, lost := range []string{"0 seconds", "50 seconds"} {
		must(t, s.SaveWorker(t.Context(), w))
		must(t, s.SaveWorker(t.Context(), w))
		server.SQL(t, db, "UPDATE "+table+" SET beat_at = beat_at - interval '"+lost+"'")
		if err := s.SaveWorker(t.Context(), w); err != nil {
			t.Errorf("with %s lost: %v", lost, err)
		}
	}
	must(t, s.SaveWorker(t.Context(), w))
	server.SQL(t, db, "UPDATE "+table+" SET beat_at = beat_at - interval '70 seconds'")
	if err := s.SaveWorker(t.Context(), w); !errors.Is(err, ErrGone) {
		t.Errorf("an older copy: %v", err)
	}
}

// databaseOf is the name of the database at an address.
func databaseOf(address string) string {
	before, _, _ := strings.Cut(address, "?")
	return path.Base(before)
}
