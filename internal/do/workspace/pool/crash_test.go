package pool

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/keep/store"
)

// child works with a pool as pawl does, and kills itself at the step whose
// number it was given. What it has written into a workspace is in the file "done".
func child(top string) int {
	if err := work(context.Background(), top); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func work(ctx context.Context, top string) error {
	dir := filepath.Dir(top)
	state := filepath.Join(dir, "state", "repo")
	db, err := store.Open(ctx, filepath.Join(state, "pawl.db"))
	if err != nil {
		return err
	}
	p, err := Open(ctx, Options{Root: top, StateDir: state, Store: db, Retention: time.Hour})
	if err != nil {
		return err
	}
	if other := os.Getenv("PAWL_TEST_POOL_OTHER"); other != "" {
		return compete(ctx, p, other)
	}
	left, err := strconv.Atoi(os.Getenv("PAWL_TEST_POOL_STEP"))
	if err != nil {
		return err
	}
	p.step = func(name string) {
		if left--; left == 0 {
			_, _ = fmt.Println("killed at", name)
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
	return map[string]func(context.Context, *Pool, string) error{"land": first, "give up": second, "integrate": third, "roll back": fourth}[os.Getenv("PAWL_TEST_POOL_PART")](ctx, p, dir)
}

// compete takes a task that others want, and one that nobody else does, and
// holds them until its stdin ends.
func compete(ctx context.Context, p *Pool, other string) error {
	got := "got"
	if _, err := p.Take(ctx, "task-001", "HEAD"); errors.Is(err, ErrTaken) {
		got = "taken"
	} else if err != nil {
		return err
	}
	w, err := p.Take(ctx, other, "HEAD")
	if err != nil {
		return err
	}
	fmt.Println(got, w.Ports)
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// first lands a task, to which something was added after it was collected.
func first(ctx context.Context, p *Pool, dir string) error {
	w, err := p.Take(ctx, "task-001", "HEAD")
	if err != nil {
		return err
	}
	if err := leave(w, dir, "one"); err != nil {
		return err
	}
	if _, err := p.Collect(ctx, w, "one"); err != nil {
		return err
	}
	if err := leave(w, dir, "two"); err != nil {
		return err
	}
	return p.Release(ctx, w, Landed)
}

// second gives up a task.
func second(ctx context.Context, p *Pool, dir string) error {
	w, err := p.Take(ctx, "task-002", "HEAD")
	if err != nil {
		return err
	}
	if err := leave(w, dir, "three"); err != nil {
		return err
	}
	if err := p.Release(ctx, w, Keep("it failed")); err != nil {
		return err
	}
	all, err := p.Clean(ctx, []string{w.ID}, false)
	if err == nil && (len(all) != 1 || !all[0].Remove) {
		return fmt.Errorf("clean: %+v", all)
	}
	return err
}

// third runs gates before a landing.
func third(ctx context.Context, p *Pool, _ string) error {
	w, err := p.Integration(ctx, "HEAD")
	if err != nil {
		return err
	}
	return p.Release(ctx, w, Landed)
}

// fourth rolls a failed task back.
func fourth(ctx context.Context, p *Pool, dir string) error {
	w, err := p.Take(ctx, "task-001", "HEAD")
	if err != nil {
		return err
	}
	if err := leave(w, dir, "four"); err != nil {
		return err
	}
	if err := p.Release(ctx, w, Keep("it failed")); err != nil {
		return err
	}
	_, err = p.Rollback(ctx, w.ID, Point{})
	return err
}

// leave writes a file with its own name into a workspace, and notes that.
func leave(w Workspace, dir, name string) error {
	if err := os.WriteFile(filepath.Join(w.Dir, name), []byte(name), 0o600); err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(dir, "done"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if _, err := f.WriteString(w.ID + " " + name + "\n"); err != nil {
		return err
	}
	return f.Close()
}

// Killed between any two steps, nothing of the work is lost, the next process
// finds a pool that it can use, and in the end nothing is left over.
func TestKilledAtEveryStep(t *testing.T) {
	t.Parallel()
	const most = 50
	for part, least := range map[string]int{"land": 12, "give up": 8, "integrate": 6, "roll back": 3} {
		t.Run(part, func(t *testing.T) {
			t.Parallel()
			for n := 1; ; n++ {
				if n > most {
					t.Fatalf("the work has more than %d steps", most)
				}
				if killedAt(t, part, n) != "" {
					continue
				}
				if n <= least {
					t.Errorf("the work has only %d steps", n-1)
				}
				return
			}
		})
	}
}

// killedAt lets a process work until its n-th step, checks what it left, and
// returns the name of the step; empty when there are fewer. A task is given up in
// a clone that was used before.
func killedAt(t *testing.T, part string, n int) string {
	r := newRig(t)
	if part == "give up" {
		p := r.open()
		r.release(p, r.take(p, "task-009"), Landed)
	}
	before := r.everything()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), "PAWL_TEST_POOL="+r.top, "PAWL_TEST_POOL_STEP="+strconv.Itoa(n), "PAWL_TEST_POOL_PART="+part)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	name, killed := strings.CutPrefix(strings.TrimSpace(string(out)), "killed at ")
	if !killed && err != nil {
		t.Fatalf("%s, step %d: %v\n%s", part, n, err, out)
	}
	t.Logf("%s, step %d: %s", part, n, name)
	p := r.open()
	r.nothingHalfDone(p, name)
	r.nothingLost(p, name)
	r.usable(p, name)
	after := r.everything()
	for path, sum := range before {
		if after[path] != sum {
			t.Errorf("killed at %s: %s changed", name, path)
		}
	}
	return name
}

// nothingHalfDone checks that rows and folders agree.
func (r *rig) nothingHalfDone(p *Pool, at string) {
	r.t.Helper()
	all, err := p.List(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	dirs := map[string]bool{}
	for _, e := range all {
		dirs[filepath.Base(e.Dir)] = true
		if e.State != kept && e.State != warm || !pathExists(e.Dir) || e.Process != 0 {
			r.t.Errorf("killed at %s: %+v", at, e)
		}
		if e.Landed {
			r.t.Errorf("killed at %s: %s counts as given back, and nobody would do it", at, e.ID)
		}
	}
	there, err := os.ReadDir(p.o.Dir)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, d := range there {
		if !dirs[d.Name()] {
			r.t.Errorf("killed at %s: the folder %s has no row", at, d.Name())
		}
	}
}

// nothingLost checks that each file that was written is in its workspace or on
// a ref of the user's repository.
func (r *rig) nothingLost(p *Pool, at string) {
	r.t.Helper()
	done, err := os.ReadFile(filepath.Join(r.dir, "done"))
	if err != nil && !os.IsNotExist(err) {
		r.t.Fatal(err)
	}
	refs := strings.Fields(r.git(r.top, "for-each-ref", "--format=%(refname)", "refs/pawl"))
	for line := range strings.Lines(string(done)) {
		id, name, _ := strings.Cut(strings.TrimSpace(line), " ")
		found := pathExists(filepath.Join(p.DirOf(id), name))
		for _, ref := range refs {
			if _, err := tryGit(r.top, "cat-file", "-e", ref+":"+name); err == nil {
				found = true
			}
		}
		if !found {
			r.t.Errorf("killed at %s: %s of %s is lost", at, name, id)
		}
	}
}

// usable checks that the tasks can be taken, and that in the end nothing is left
// but recovery refs.
func (r *rig) usable(p *Pool, at string) {
	r.t.Helper()
	for _, id := range []string{"task-001", "task-002"} {
		w := r.take(p, id)
		if _, err := tryGit(w.Dir, "fsck", "--strict"); err != nil {
			r.t.Errorf("killed at %s: the clone of %s is broken: %v", at, id, err)
		}
		r.release(p, w, GivenUp("test"))
	}
	if _, err := p.Clean(r.t.Context(), nil, false); err != nil {
		r.t.Error(err)
	}
	if all, err := p.List(r.t.Context()); err != nil || len(all) != 0 {
		r.t.Errorf("killed at %s: left %+v, %v", at, all, err)
	}
	for _, dir := range []string{p.o.Dir, filepath.Join(p.o.StateDir, "pool")} {
		if there, err := os.ReadDir(dir); err == nil && len(there) > 0 {
			r.t.Errorf("killed at %s: left in %s: %v", at, dir, there)
		}
	}
	if ports, err := os.ReadFile(p.o.Ports); err == nil && strings.TrimSpace(string(ports)) != "[]" {
		r.t.Errorf("killed at %s: ports %s", at, ports)
	}
	if refs := r.git(r.top, "for-each-ref", "refs/pawl/base"); refs != "" {
		r.t.Errorf("killed at %s: left\n%s", at, refs)
	}
	if out, err := tryGit(r.top, "fsck", "--strict"); err != nil {
		r.t.Errorf("killed at %s: %s", at, out)
	}
}

// Of several processes that want one task, one gets it; each gets another one,
// with ports of its own. When they are gone, their workspaces are kept.
func TestProcessesAtOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	const many = 3
	var ends []func() error
	var lines []*bufio.Reader
	for i := range many {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), "PAWL_TEST_POOL="+r.top, fmt.Sprintf("PAWL_TEST_POOL_OTHER=task-10%d", i))
		cmd.Stderr = os.Stderr
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, bufio.NewReader(out))
		ends = append(ends, func() error { return errors.Join(in.Close(), cmd.Wait()) })
	}
	got, ports := 0, map[string]bool{}
	for _, l := range lines {
		line, err := l.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		what, port, _ := strings.Cut(strings.TrimSpace(line), " ")
		if what == "got" {
			got++
		}
		ports[port] = true
	}
	if got != 1 || len(ports) != many {
		t.Errorf("%d processes have the task; ports %v", got, ports)
	}
	p := r.open()
	if _, err := p.Take(t.Context(), "task-001", "HEAD"); !errors.Is(err, ErrTaken) {
		t.Errorf("taken from a live process: %v", err)
	}
	for _, end := range ends {
		if err := end(); err != nil {
			t.Error(err)
		}
	}
	p = r.open()
	all, err := p.List(t.Context())
	if err != nil || len(all) != many+1 {
		t.Errorf("%+v, %v", all, err)
	}
	for _, e := range all {
		if e.State != kept || !strings.Contains(e.Why, "has ended") {
			t.Errorf("%+v", e)
		}
	}
}
