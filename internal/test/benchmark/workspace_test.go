package benchmark

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/do/workspace/pool"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// BenchmarkWorkspace takes the workspace of a task in a repository of 5,000
// files: made anew, and one that waits; collects the edits of twenty files; and gives
// it back.
func BenchmarkWorkspace(b *testing.B) {
	const rounds = 5
	p := newProject(b, diskDir(b), "workspaces", "exit 0")
	p.fill(5000)
	p.commit()
	ctx, cancel := context.WithTimeout(context.Background(), runBound)
	defer cancel()
	db, err := store.Open(ctx, filepath.Join(p.state, "pawl.db"))
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	open := func(warm int) *pool.Pool {
		spaces, err := pool.Open(ctx, pool.Options{Root: p.dir, StateDir: p.state, Store: db, Warm: warm})
		if err != nil {
			b.Fatal(err)
		}
		return spaces
	}
	u := &user{b: b, ctx: ctx, repo: p.dir, to: filepath.Join(filepath.Dir(p.dir), "clone"), fresh: open(-1), warm: open(4)}
	u.give(u.warm, u.take(u.warm)) // one waits
	for b.Loop() {
		wall, _ := interleave(rounds, 1, u.clone, u.anew, u.again, u.collect, u.back)
		report(b, "workspace of 5,000 files: git clone --shared", wall[0]/1000, "ms", nil)
		report(b, "workspace of 5,000 files: made anew", wall[1]/1000, "ms", nil)
		report(b, "workspace of 5,000 files: made anew, ratio", wall[1]/wall[0], "×", atMost(1.2))
		report(b, "workspace of 5,000 files: one that waits", wall[2]/1000, "ms", atMost(100))
		report(b, "workspace of 5,000 files: collect 20 edits", wall[3]/1000, "ms", nil)
		report(b, "workspace of 5,000 files: give back", wall[4]/1000, "ms", nil)
	}
}

// user takes workspaces in turn.
type user struct {
	b           *testing.B
	ctx         context.Context
	repo, to    string
	fresh, warm *pool.Pool
	n           int
	w           pool.Workspace
}

func (u *user) take(p *pool.Pool) pool.Workspace {
	u.n++
	w, err := p.Take(u.ctx, fmt.Sprintf("task-%03d", u.n), "HEAD")
	if err != nil {
		u.b.Fatal(err)
	}
	return w
}

func (u *user) give(p *pool.Pool, w pool.Workspace) {
	if err := p.Release(u.ctx, w, pool.Landed); err != nil {
		u.b.Fatal(err)
	}
}

// clone is what git needs for the same.
func (u *user) clone() cost {
	began := time.Now()
	if out, err := exec.CommandContext(u.ctx, "git", "clone", "-q", "--shared", u.repo, u.to).CombinedOutput(); err != nil {
		u.b.Fatalf("%v\n%s", err, out)
	}
	wall := time.Since(began)
	if err := os.RemoveAll(u.to); err != nil {
		u.b.Fatal(err)
	}
	return cost{wall: wall}
}

// anew takes a workspace while the one that waits is in use.
func (u *user) anew() cost {
	busy := u.take(u.warm)
	began := time.Now()
	w := u.take(u.fresh)
	wall := time.Since(began)
	u.give(u.fresh, w)
	u.give(u.warm, busy)
	return cost{wall: wall}
}

func (u *user) again() cost {
	began := time.Now()
	u.w = u.take(u.warm)
	return cost{wall: time.Since(began)}
}

func (u *user) collect() cost {
	p := &project{b: u.b, dir: u.w.Dir}
	for i := range 20 {
		p.write(fmt.Sprintf("d%02d/f%02d", i*2, i), fmt.Sprintf("edit of %s\n", u.w.ID))
	}
	began := time.Now()
	if _, err := u.warm.Collect(u.ctx, u.w, "work"); err != nil {
		u.b.Fatal(err)
	}
	return cost{wall: time.Since(began)}
}

func (u *user) back() cost {
	began := time.Now()
	u.give(u.warm, u.w)
	return cost{wall: time.Since(began)}
}
