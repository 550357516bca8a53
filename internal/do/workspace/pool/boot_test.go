package pool

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/keep/store"
)

// A power loss took what is checked out, and left an empty object in pawl's own
// git directory of the clone, under the name of one that is needed to save the
// files. They are saved all the same, and the workspace goes.
func TestEmptyObjectAndBrokenHead(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.open()
	w := r.take(p, "task-001")
	r.put(w.Top, "work", "by the agent\n")
	r.release(p, w, Keep("to look at"))
	r.put(w.Top, ".git/HEAD", "")
	blob := r.git(r.top, "hash-object", filepath.Join(w.Top, "work"))
	var own string
	if err := r.o.Store.EditWorkspaces(t.Context(), func(all []store.Workspace) (c store.WorkspaceChange, err error) {
		for _, row := range all {
			own, row.UpdatedAt = row.Own, time.Unix(1, 0) // before the machine was started
			c.Put = append(c.Put, row)
		}
		return c, nil
	}); err != nil {
		t.Fatal(err)
	}
	r.put(filepath.Join(own, "git", "objects", blob[:2]), blob[2:], "")

	p = r.open()
	if got := r.git(r.top, "show", recoveryPrefix+"task-001/1:work"); got != "by the agent" {
		t.Errorf("what was saved is %q", got)
	}
	if _, err := os.Lstat(w.Top); !os.IsNotExist(err) {
		t.Errorf("the workspace is there: %v", err)
	}
	if notes := p.Notes(); len(notes) != 1 || !strings.Contains(notes[0], "did not survive the crash of the machine") {
		t.Errorf("notes are %q", notes)
	}
}

// A start of the machine may give a disk another number. What gates were in goes
// all the same when its process is dead, and a folder that is another one stays.
func TestTheNumberOfADiskChanges(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.open()
	var dirs []string
	for range 3 {
		w, err := p.Integration(t.Context(), "HEAD")
		if err != nil {
			t.Fatal(err)
		}
		dirs = append(dirs, w.Dir)
	}
	if err := r.o.Store.EditWorkspaces(t.Context(), func(all []store.Workspace) (c store.WorkspaceChange, err error) {
		for i, row := range all {
			device, inode, _ := strings.Cut(row.Folder, ":")
			row.Owner = store.Owner{} // its process is dead
			row.Folder = []string{"9" + device + ":" + inode, device + ":9" + inode, "9" + device + ":" + inode}[i]
			if i == 2 {
				row.State = kept
			}
			c.Put = append(c.Put, row)
		}
		return c, nil
	}); err != nil {
		t.Fatal(err)
	}
	p = r.open()
	all, err := p.List(t.Context())
	if err != nil || len(all) != 1 || all[0].Dir != dirs[1] || all[0].Why != "it cannot be proved to be the folder that was made" {
		t.Errorf("%+v, %v", all, err)
	}
	for i, dir := range dirs {
		if pathExists(dir) != (i == 1) {
			t.Errorf("folder %d is there: %v", i, pathExists(dir))
		}
	}
}
