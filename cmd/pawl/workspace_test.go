package main

import (
	"context"
	"path/filepath"
	"slices"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/pawl-dev/pawl/internal/ask/config/statedir"
	"github.com/pawl-dev/pawl/internal/do/workspace/pool"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// workspace does with the workspace of a task what a loop on it does, or says where that of a run is.
func workspace(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 || !slices.Contains([]string{"of", "take", "keep", "collect", "land"}, args[0]) {
		ts.Fatalf("usage: workspace of|take|keep|collect|land VAR ID [WHY]")
	}
	ctx := context.Background()
	root := ts.MkAbs(".")
	dir := statedir.Of(root, []string{"XDG_STATE_HOME=" + ts.Getenv("XDG_STATE_HOME")})
	if args[0] == "of" {
		ts.Setenv(args[1], filepath.Join(dir, "workspaces", "run-"+args[2]))
		return
	}
	db, err := store.Open(ctx, filepath.Join(dir, "pawl.db"))
	ts.Check(err)
	defer func() { ts.Check(db.Close()) }()
	p, err := pool.Open(ctx, pool.Options{Root: root, StateDir: dir, Store: db, Retention: time.Hour, Copy: []string{".env"}})
	ts.Check(err)
	w := pool.Workspace{ID: args[2]}
	switch args[0] {
	case "take":
		w, err = p.Take(ctx, args[2], "HEAD")
		ts.Setenv(args[1], w.Dir)
	case "collect":
		var commit string
		commit, err = p.Collect(ctx, w, "work of "+args[2])
		ts.Setenv(args[1], commit)
	case "keep":
		err = p.Release(ctx, w, pool.Keep(append(args, "it failed")[3]))
	case "land":
		err = p.Release(ctx, w, pool.Landed)
	}
	ts.Check(err)
}
