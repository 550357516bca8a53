package web

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/ask/action"
	"github.com/pawl-dev/pawl/internal/ask/planner"
	"github.com/pawl-dev/pawl/internal/ask/web/view"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/delivery"
	"github.com/pawl-dev/pawl/internal/do/engine/storedrun"
	"github.com/pawl-dev/pawl/internal/do/workspace"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// rests stores a run whose agent wrote files that are not delivered; meanwhile the person wrote theirs.
func (r *rig) rests(files, theirs map[string]string) {
	r.t.Helper()
	ctx := r.t.Context()
	r.repository("before", map[string]string{"a": "1\n2\n3\n"})
	pl, err := r.s.o.Planner("", planner.Flags{})
	if err != nil {
		r.t.Fatal(err)
	}
	pl.Config.Root, pl.Config.Safety.Confirm = r.s.o.Root, []string{".envrc"}
	id := action.PrivateID("build")
	w, err := action.OpenPrivate(ctx, pl.Config, r.s.o.Env, r.store, id, func(string) {})
	if err != nil {
		r.t.Fatal(err)
	}
	if err := w.Begin(ctx, "abc123"); err != nil {
		r.t.Fatal(err)
	}
	for dir, files := range map[string]map[string]string{w.Place().Top: files, r.s.o.Root: theirs} {
		for name, text := range files {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				r.t.Fatal(err)
			}
		}
	}
	if _, err := w.Tree().Snapshot(ctx, "abc123", 1, workspace.SnapshotOptions{}); err != nil {
		r.t.Fatal(err)
	}
	if _, err := w.BringIn(ctx, 1); err != nil {
		r.t.Fatal(err)
	}
	if err := w.Release(ctx, delivery.Kept); err != nil {
		r.t.Fatal(err)
	}
	setup, err := json.Marshal(action.Setup{Setup: storedrun.Setup{Private: id, Undelivered: "it is not verified"}})
	if err != nil {
		r.t.Fatal(err)
	}
	r.run("abc123", func(row *store.Run, _ *loop.State) {
		row.Status, row.Root, row.Setup, row.Owner = string(loop.Paused), r.s.o.Root, setup, r.nobody()
	})
}

// can lists what may be done with the work of the run.
func (r *rig) can() string {
	r.t.Helper()
	var d view.RunDetail
	r.get("/runs/abc123", &d)
	return strings.Join(slices.DeleteFunc(d.Actions, func(a string) bool {
		return !slices.Contains([]string{"settle", "apply", "discard"}, a)
	}), " ")
}

func (r *rig) file(name string) string {
	text, _ := os.ReadFile(filepath.Join(r.s.o.Root, name))
	return string(text)
}

// What a person and an agent both changed is shown with both sides, and settled; then it can be applied.
func TestConflictIsSettled(t *testing.T) {
	t.Parallel()
	for choice, want := range map[delivery.Choice]string{
		delivery.Mine: "1\nmine\n3\n", delivery.Agents: "1\nagent\n3\n", delivery.Both: "1\nmine\nagent\n3\n",
		delivery.Edited: "by hand\n",
	} {
		t.Run(string(choice), func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.rests(map[string]string{"a": "1\nagent\n3\n", "new": "n"}, map[string]string{"a": "1\nmine\n3\n"})
			if can := r.can(); can != "settle apply discard" {
				t.Errorf("before it is settled: %s", can)
			}
			var all view.Clashes
			r.get("/runs/abc123/conflicts", &all)
			if len(all.Files) != 1 || all.Files[0].Path != "a" || all.Files[0].Settled ||
				!strings.Contains(all.Files[0].Text, " mine\nmine\n") || !strings.Contains(all.Files[0].Text, "\nagent\n") {
				t.Fatalf("%+v", all)
			}
			for _, body := range []string{`{"path":"none","choice":"mine"}`, `{"path":"../a","choice":"edit","text":"x"}`,
				`{"path":"a","choice":"edit","text":"` + strings.Repeat("<", 23) + ` mine\nx"}`} {
				r.refused(http.MethodPost, "/runs/abc123/conflicts", body, http.StatusConflict)
			}
			r.refused(http.MethodPost, "/runs/abc123/conflicts", `{"path":"a","choice":"theirs"}`, http.StatusUnprocessableEntity)
			var done view.Done
			r.ask(http.MethodPost, "/runs/abc123/conflicts", `{"path":"a","choice":"`+string(choice)+`","text":"by hand\n"}`, &done)
			if can := r.can(); can != "settle apply discard" || done.Message != "a is settled: resume the run, or apply its work." {
				t.Errorf("settled: %s; said %s", can, done.Message)
			}
			if r.file("a") != "1\nmine\n3\n" {
				t.Errorf("settling changed the person's file: %q", r.file("a"))
			}
			r.ask(http.MethodPost, "/runs/abc123/apply", `{}`, &done)
			if r.file("a") != want || r.file("new") != "n" {
				t.Errorf("applied: %q, %q; said %s", r.file("a"), r.file("new"), done.Message)
			}
		})
	}
}

// What programs run by themselves is applied once a person has seen it by name.
func TestApplyIsForeseen(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.rests(map[string]string{".envrc": "x", "new": "n"}, nil)
	var out action.Application
	r.get("/runs/abc123/apply", &out)
	if out.Status != "check" || !slices.Equal(out.Confirm, []string{".envrc"}) || !slices.Equal(out.Written, []string{".envrc", "new"}) {
		t.Errorf("%+v", out)
	}
	if p := r.refused(http.MethodPost, "/runs/abc123/apply", `{}`, http.StatusConflict); !strings.Contains(p.Message, ".envrc") || r.file("new") != "" {
		t.Errorf("%+v", p)
	}
	var done view.Done
	r.ask(http.MethodPost, "/runs/abc123/apply?confirmed=true", `{}`, &done)
	if r.file(".envrc") != "x" || r.file("new") != "n" {
		t.Errorf("it does not exist: %s", done.Message)
	}
}

// What is discarded is offered no more, and the person's files stay as they are.
func TestDiscard(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.rests(map[string]string{"new": "n"}, nil)
	var done view.Done
	r.ask(http.MethodPost, "/runs/abc123/discard", `{}`, &done)
	if can := r.can(); can != "" || r.file("new") != "" || !strings.Contains(done.Message, "is discarded") {
		t.Errorf("%q; said %s", can, done.Message)
	}
	r.refused(http.MethodPost, "/runs/abc123/discard", `{}`, http.StatusConflict)
}
