package git

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/test/gittest"
)

// impatient stands in for git, and waits less for locks than pawl asks for.
const impatient = `#!/bin/sh
n=$#
while [ $n -gt 0 ]; do
	a=$1; shift; n=$((n - 1))
	case $a in core.*Timeout=10000) a=${a%10000}100 ;; esac
	set -- "$@" "$a"
done
PATH="$IMPATIENT" exec git "$@"
`

// A git that was killed while it fetched or packed leaves locks of refs, of packed refs and of the commit graph. With
// no git at work there they have no holder: the next one removes them. The lock of an index may have work in it.
func TestLocksThatAKilledGitLeft(t *testing.T) {
	top, r := repository(t, "here")
	bare := filepath.Join(t.TempDir(), "there.git")
	gittest.Git(t, top, "clone", "-q", "--bare", ".", bare)
	gittest.Git(t, top, "remote", "add", "origin", bare)
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "git"), []byte(impatient), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("IMPATIENT", os.Getenv("PATH"))
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	index := r.Index + ".lock"
	put(t, index, "")
	for name, do := range map[string]func() error{
		"refs/pawl/remote/main.lock": func() error {
			_, err := r.Fetch(t.Context(), "origin", "refs/heads/main", "refs/pawl/remote/main")
			return err
		},
		"packed-refs.lock":               func() error { return r.Compact(t.Context()) },
		"objects/info/commit-graph.lock": func() error { return r.Compact(t.Context()) },
	} {
		lock := filepath.Join(r.Common, name)
		put(t, lock, "")
		end := startGit(t, top)
		if err := do(); err == nil || !strings.Contains(err.Error(), filepath.Base(lock)) {
			t.Errorf("%s, while a git works there: %v", name, err)
		}
		end()
		if err := do(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := os.Lstat(lock); err == nil {
			t.Errorf("%s is left", name)
		}
	}
	if _, err := os.Lstat(index); err != nil {
		t.Errorf("the lock of the index is gone: %v", err)
	}
}
