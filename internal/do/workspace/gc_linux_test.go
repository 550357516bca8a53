package workspace

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// The user's gc takes what a snapshot has just stored and no ref leads to yet: the
// snapshot is made again, whole, from the files.
func TestAGCWhileASnapshotIsTaken(t *testing.T) {
	p := newPlace(t, "kept", "1\n")
	p.snap(0)
	git, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	text := `#!/bin/sh
` + git + ` "$@" || exit
case " $* " in *' update-index '*) mkdir "` + bin + `/once" 2>/dev/null || exit 0 ;; *) exit 0 ;; esac
unset GIT_DIR GIT_INDEX_FILE GIT_WORK_TREE GIT_OBJECT_DIRECTORY
cd "` + p.top + `" && ` + git + ` repack -adq && ` + git + ` prune --expire=now
`
	if err := os.WriteFile(filepath.Join(bin, "git"), []byte(text), 0o700); err != nil { //nolint:gosec // it is run
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	p.write("small", "one small file\n")
	snap := p.snap(1)
	if _, err := os.Stat(filepath.Join(bin, "once")); err != nil {
		t.Fatal("there was no gc")
	}
	if got := p.git("show", snap.Commit+":small"); got != "one small file" {
		t.Errorf("the snapshot has %q", got)
	}
	p.git("fsck", "--connectivity-only")
}
