package pool

import (
	"errors"
	"testing"

	"github.com/pawl-dev/pawl/internal/keep/store"
)

func TestDecideWhoGetsAWorkspace(t *testing.T) {
	t.Parallel()
	me, other, gone := store.Owner{PID: 1}, store.Owner{PID: 2}, store.Owner{PID: 3}
	alive := func(o store.Owner) bool { return o == me || o == other }
	want := store.Workspace{ID: "task-001", Kind: kindTask, State: making, Repo: "/r", Dir: "/w/task-001", Branch: "pawl/task-001", Base: "new", Owner: me}
	row := func(state string, owner store.Owner) store.Workspace {
		r := want
		r.State, r.Owner, r.Base, r.Own, r.Ports, r.Folder = state, owner, "old", "/own/1", 20000, "1:2"
		return r
	}
	idle := store.Workspace{ID: "warm-2", Kind: kindWarm, State: warm, Repo: "/r", Dir: "/w/.warm-2", Own: "/own/2", Folder: "3:4"}
	elsewhere := idle
	elsewhere.Repo = "/another"
	for _, c := range []struct {
		name  string
		all   []store.Workspace
		taken bool
		was   string // the state it was found in
		own   string
		base  string
		drop  string
	}{
		{"nothing is there", nil, false, making, "/own/new", "new", ""},
		{"one waits", []store.Workspace{elsewhere, idle}, false, warm, "/own/2", "new", "warm-2"},
		{"one waits, of another repository", []store.Workspace{elsewhere}, false, making, "/own/new", "new", ""},
		{"another process uses it", []store.Workspace{row(leased, other)}, true, "", "", "", ""},
		{"this process works in it", []store.Workspace{row(leased, me)}, true, "", "", "", ""},
		{"another process makes it", []store.Workspace{row(making, other)}, true, "", "", "", ""},
		{"another process removes it", []store.Workspace{row(removing, other)}, true, "", "", "", ""},
		{"it was kept", []store.Workspace{idle, row(kept, store.Owner{})}, false, leased, "/own/1", "old", ""},
		{"its process is dead", []store.Workspace{row(leased, gone)}, false, leased, "/own/1", "old", ""},
		{"half made by one that is dead", []store.Workspace{row(making, gone)}, false, making, "/own/1", "new", ""},
		{"half removed by one that is dead", []store.Workspace{row(removing, gone)}, false, making, "/own/1", "new", ""},
	} {
		got, was, ch, err := decideTake(c.all, want, "/own/new", func(r store.Workspace) bool { return alive(r.Owner) })
		if c.taken {
			if !errors.Is(err, ErrTaken) || len(ch.Put)+len(ch.Drop) > 0 {
				t.Errorf("%s: %+v, %v", c.name, ch, err)
			}
			continue
		}
		if was == kept { // as it was found; taken up as one that is held
			was = leased
		}
		if err != nil || was != c.was || got.Own != c.own || got.Base != c.base || got.Owner != me || got.ID != "task-001" || got.Dir != "/w/task-001" {
			t.Errorf("%s: %s, %+v, %v", c.name, was, got, err)
		}
		if len(ch.Put) != 1 || ch.Put[0] != got {
			t.Errorf("%s: stored %+v", c.name, ch.Put)
		}
		if (c.drop == "") != (len(ch.Drop) == 0) || c.drop != "" && ch.Drop[0] != c.drop {
			t.Errorf("%s: dropped %v", c.name, ch.Drop)
		}
	}
}
