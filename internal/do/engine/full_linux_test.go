package engine

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/engine/runplan"
	"github.com/pawl-dev/pawl/internal/do/statefile"
	"github.com/pawl-dev/pawl/internal/do/supervisor"
)

// A database without room: the run goes on in memory, says so once, and stores
// all of it, in order, when there is room again.
func TestTheDatabaseIsFullForAWhile(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quick)
	small := w.path("small")
	if err := os.Mkdir(small, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", small, "tmpfs", 0, "size=2m"); err != nil {
		t.Skipf("cannot mount a small disk here: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(small, syscall.MNT_DETACH) })
	w.o.DB = filepath.Join(small, "pawl.db")
	w.o.Policy.MaxIterations = 8
	h := w.within()
	h.on["iteration started 3"] = func() { fill(t, filepath.Join(small, "filler")) }
	h.on["iteration started 6"] = func() {
		if f, err := statefile.Read(statefile.Path(w.o.Root, "build")); err != nil || f.Iteration != 5 {
			t.Errorf("the state file is not written: %+v, %v", f, err)
		}
		if run, err := h.opts.Store.Run(context.Background(), w.run()); err != nil || run.Iteration >= 6 {
			t.Errorf("the database was not full: %+v, %v", run, err)
		}
		if err := os.Remove(filepath.Join(small, "filler")); err != nil {
			t.Error(err)
		}
	}
	h.start()
	var want []string
	for i := range 8 {
		want = append(want, string(rune('1'+i))+".1 success")
	}
	w.holds(loop.Completed, want...)
	if n := h.count("warning the run is not recorded"); n != 1 {
		t.Errorf("%d warnings: %q", n, h.lines)
	}
	events, err := h.opts.Store.Events(context.Background(), w.run(), 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range events {
		if e.N != int64(i+1) {
			t.Errorf("event %d has number %d", i+1, e.N)
		}
	}
}

// fill leaves no room on a disk.
func fill(t *testing.T, name string) {
	f, err := os.Create(name)
	if err != nil {
		t.Error(err)
		return
	}
	block := make([]byte, 4096)
	for err == nil {
		_, err = f.Write(block)
	}
	_ = f.Close()
}

// An agent of a task that fails by itself while a disk is full is taken for ended by
// that; with room, or where its provider said what is wrong, it is not.
func TestAnAgentThatFailsOnAFullDisk(t *testing.T) {
	t.Parallel()
	small := t.TempDir()
	if err := syscall.Mount("tmpfs", small, "tmpfs", 0, "size=2m"); err != nil {
		t.Skipf("cannot mount a small disk here: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(small, syscall.MNT_DETACH) })
	said := supervisor.Result{}
	said.Agent.Errors = []failure.APIError{{Status: 529}}
	for name, tt := range map[string]struct {
		dir  string
		kind loop.Kind
		code int
		res  supervisor.Result
		want loop.Ended
	}{
		"full":           {small, loop.Task, 1, supervisor.Result{}, loop.EndedDisk},
		"it succeeded":   {small, loop.Task, 0, supervisor.Result{}, loop.NotEnded},
		"its provider":   {small, loop.Task, 1, said, loop.NotEnded},
		"somebody looks": {small, loop.Procedure, 1, supervisor.Result{}, loop.NotEnded},
		"there is room":  {t.TempDir(), loop.Task, 1, supervisor.Result{}, loop.NotEnded},
	} {
		s := &session{plan: runplan.Plan{Root: tt.dir}}
		s.o.StateDir, s.plan.Policy.Kind = tt.dir, tt.kind
		r := &loop.Record{Exit: loop.Exit{Code: tt.code}}
		newWorker(s).blameDisk(r, tt.res)
		if r.Exit.Ended != tt.want {
			t.Errorf("%s: ended %q", name, r.Exit.Ended)
		}
	}
}
