package store

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/test/pgtest"
)

// On a disk without room a commit is refused with a clear error, nothing
// breaks, and it goes on when there is room again.
func TestAFullDisk(t *testing.T) {
	t.Parallel()
	fileOnly(t)
	dir := filepath.Join(t.TempDir(), "small")
	must(t, os.Mkdir(dir, 0o700))
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("cannot mount a small disk here: %v", err)
	}
	t.Cleanup(func() { // a program that another test starts has its files open until it begins
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	s := open(t, filepath.Join(dir, "pawl.db"))
	ctx, r := t.Context(), run("r1", "build")
	must(t, s.Create(ctx, r, event("r1", 1, "x"), nobody))
	n, err := fill(ctx, s, r)
	if !errors.Is(err, ErrUnwritable) {
		t.Fatalf("full: %v", err)
	}
	holds(t, s, n)

	// A second pawl finds no room even for what it needs to look.
	if other, err := Open(ctx, filepath.Join(dir, "other", "pawl.db")); err == nil {
		must(t, other.Close())
	} else if !errors.Is(err, ErrUnwritable) {
		t.Errorf("another database on a full disk: %v", err)
	}

	must(t, syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT, "size=4m"))
	step := stepOf(r, n+1)
	step.Record = record(int(n+1), 1)
	must(t, s.Commit(ctx, step))
	holds(t, s, n+1)
	must(t, s.Check(ctx))
}

// An import for which there is no room leaves no task, and can be made again.
func TestAnImportOnAFullDisk(t *testing.T) {
	t.Parallel()
	fileOnly(t)
	dir := filepath.Join(t.TempDir(), "small")
	must(t, os.Mkdir(dir, 0o700))
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("cannot mount a small disk here: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	s := open(t, filepath.Join(dir, "pawl.db"))
	drafts := make([]board.Draft, 3000)
	for i := range drafts {
		drafts[i].Case = board.Case{Title: fmt.Sprint("task ", i), Description: strings.Repeat("x", 200)}
	}
	if _, err := s.AddCases(t.Context(), drafts, board.Person, noon); !errors.Is(err, ErrUnwritable) {
		t.Fatalf("full: %v", err)
	}
	if all, err := s.Cases(t.Context(), CaseFilter{}); err != nil || len(all) != 0 {
		t.Errorf("half imported: %d, %v", len(all), err)
	}
	must(t, syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT, "size=32m"))
	if added, err := s.AddCases(t.Context(), drafts, board.Person, noon); err != nil || len(added) != len(drafts) {
		t.Errorf("with room again: %d, %v", len(added), err)
	}
	must(t, s.Check(t.Context()))
}

// The disk of a shared board is full: that is said, with what to do, and nothing is stored partially.
func TestAFullServer(t *testing.T) {
	t.Parallel()
	if another() != "" {
		t.Skip("it has a server of its own")
	}
	server := pgtest.Start(t)
	info, err := os.Stat(server.SQL(t, "postgres", `SHOW data_directory`))
	must(t, err)
	owner, _ := info.Sys().(*syscall.Stat_t)
	dir, err := os.MkdirTemp("/tmp", "full") //nolint:usetesting // the server's user has to reach it
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=16m,uid=%d,gid=%d", owner.Uid, owner.Gid)); err != nil {
		t.Skipf("cannot mount a small disk here: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	server.SQL(t, "postgres", `CREATE TABLESPACE small LOCATION '`+dir+`'`)
	server.SQL(t, "postgres", `CREATE DATABASE small TABLESPACE small`)
	s := openShared(t, server.Address("small"))
	r := run("r1", "build")
	must(t, s.Create(t.Context(), r, event("r1", 1, "x"), nobody))
	n, err := int64(0), error(nil)
	for ; err == nil; n++ {
		step := stepOf(r, n+2)
		step.Record, step.Run.Why = record(int(n+2), 1), manyWords(100_000)
		err = s.Commit(t.Context(), step)
	}
	if !errors.Is(err, ErrUnwritable) || !strings.Contains(err.Error(), "make room on the server's disk") {
		t.Errorf("full: %v", err)
	}
	stored, err := s.Run(t.Context(), "r1")
	if must(t, err); stored.N != n {
		t.Errorf("it is at %d, want %d", stored.N, n)
	}
	records, err := s.Iterations(t.Context(), "r1")
	if must(t, err); int64(len(records)) != n-1 {
		t.Errorf("it has %d iterations, want %d", len(records), n-1)
	}
}

// manyWords is a text that cannot be compressed.
func manyWords(length int) string {
	var all strings.Builder
	for all.Len() < length {
		all.WriteString(rand.Text())
	}
	return all.String()
}
