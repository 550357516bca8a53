package git

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"crypto/sha1"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/test/gittest"
)

// beforeAnyBoot is older than the start of the machine that runs the tests.
var beforeAnyBoot = time.Unix(1, 0)

// darkened is a repository as a power loss leaves it: an empty and a half object,
// refs that lead nowhere, and locks.
func darkened(t *testing.T) (dir string, r *Repo, half string) {
	t.Helper()
	dir, r = repository(t, "repo")
	good := gittest.Git(t, dir, "rev-parse", "HEAD")
	empty, half := gittest.Git(t, dir, "commit-tree", "-m", "lost", "HEAD^{tree}"), gittest.Git(t, dir, "commit-tree", "-m", "half", "HEAD^{tree}")
	gittest.Git(t, dir, "update-ref", "refs/pawl/runs/a/1", good)
	gittest.Git(t, dir, "update-ref", "refs/pawl/runs/a/2", empty)
	gittest.Git(t, dir, "update-ref", "refs/pawl/runs/a/3", good)
	for name, text := range map[string]string{
		r.loosePath(empty): "", r.loosePath(half): "no object", r.Common + "/refs/pawl/runs/a/3": "",
		r.Common + "/refs/heads/main.lock": "", r.Common + "/refs/heads/other.lock": "", r.Index + ".lock": "",
	} {
		if err := os.RemoveAll(name); err != nil {
			t.Fatal(err)
		}
		put(t, name, text)
		if strings.HasSuffix(name, "main.lock") || strings.HasSuffix(name, "index.lock") {
			if err := os.Chtimes(name, beforeAnyBoot, beforeAnyBoot); err != nil {
				t.Fatal(err)
			}
		}
	}
	return dir, r, half
}

func TestAfterBoot(t *testing.T) {
	t.Parallel()
	dir, r, half := darkened(t)
	state := filepath.Join(t.TempDir(), "new", "state")
	// Who begins here has nothing to repair, and does not look.
	if notes, err := r.AfterBoot(t.Context(), state); err != nil || len(notes) > 0 {
		t.Fatalf("the first time: %v, %v", notes, err)
	}
	if err := os.WriteFile(filepath.Join(state, bootFile), []byte("another\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	notes, err := r.AfterBoot(t.Context(), state)
	if err != nil || len(notes) != 2 || !strings.Contains(notes[0], "2 objects") || !strings.Contains(notes[1], "2 of pawl's own refs") {
		t.Fatalf("%v, %q", err, notes)
	}
	if refs := gittest.Git(t, dir, "for-each-ref", "--format=%(refname)", "refs/pawl"); refs != "refs/pawl/runs/a/1" {
		t.Errorf("refs: %s", refs)
	}
	if out := gittest.Git(t, dir, "fsck", "--full"); strings.Contains(out, "error") {
		t.Errorf("git fsck: %s", out)
	}
	if data, err := os.ReadFile(filepath.Join(state, "after-power-loss", half)); err != nil || string(data) != "no object" {
		t.Errorf("the half object is kept as %q, %v", data, err)
	}
	for name, stays := range map[string]bool{
		r.Common + "/refs/heads/main.lock": false, r.Common + "/refs/heads/other.lock": true, r.Index + ".lock": true,
	} {
		if _, err := os.Lstat(name); (err == nil) != stays {
			t.Errorf("%s: %v; stays: %v", name, err, stays)
		}
	}
	if notes, err := r.AfterBoot(t.Context(), state); err != nil || len(notes) > 0 {
		t.Errorf("again: %v, %v", notes, err)
	}
}

// A lock stays while a program works in the repository, however old it is.
func TestALockOfSomebodyStays(t *testing.T) {
	t.Parallel()
	dir, r, _ := darkened(t)
	held := startGit(t, dir)
	r.dropLocks()
	lock := r.Common + "/refs/heads/main.lock"
	if _, err := os.Lstat(lock); err != nil {
		t.Errorf("it is gone: %v", err)
	}
	held()
	r.dropLocks()
	if _, err := os.Lstat(lock); err == nil {
		t.Error("it stays")
	}
}

// startGit starts a git that works in a folder until the end is asked for.
func startGit(t *testing.T, dir string) (end func()) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", "cat-file", "--batch-check")
	cmd.Dir = dir
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err == nil {
		_, err = io.WriteString(in, "HEAD\n")
	}
	if err == nil {
		_, err = bufio.NewReader(out).ReadString('\n') // it is at work
	}
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := errors.Join(in.Close(), cmd.Wait()); err != nil {
			t.Error(err)
		}
	}
}

// holdFile is the file that whoever moves a work tree holds.
// An object that unpacks to more than it says, or than an object may have, is read no
// further: a small file could be of any size.
func TestObjectThatIsTooLarge(t *testing.T) {
	t.Parallel()
	r := &Folders{Format: "sha1"}
	for said, want := range map[int]bool{5: true, 4: false, 6: false, maxObject + 1: false, -1: false} {
		var b bytes.Buffer
		z := zlib.NewWriter(&b)
		text := fmt.Sprintf("blob %d\x00hello", said)
		fmt.Fprint(z, text)
		must(t, z.Close())
		if id := fmt.Sprintf("%x", sha1.Sum([]byte(text))); r.isObject(&b, id) != want {
			t.Errorf("one of 5 bytes that says %d: taken %v", said, !want)
		}
	}
	var b bytes.Buffer
	z := zlib.NewWriter(&b)
	_, err := z.Write(append([]byte("blob 5\x00"), make([]byte, 64<<20)...))
	must(t, err)
	must(t, z.Close())
	if size := b.Len(); r.isObject(&b, strings.Repeat("0", 40)) || b.Len() < size/2 {
		t.Errorf("of %d bytes %d were not read", size, b.Len())
	}
}
