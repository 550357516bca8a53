package git

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/keep/files"
	"github.com/pawl-dev/pawl/internal/test/gittest"
)

// A file that changes within the second in which it was scanned, and gets its size and
// time again, is seen: git alone takes it for the same.
func TestScanSeesChangesOfTheSameSecond(t *testing.T) {
	t.Parallel()
	dir, r := repository(t, "r")
	s, err := OpenShadow(t.Context(), r, r, filepath.Join(t.TempDir(), "git"))
	must(t, err)
	name := filepath.Join(dir, "a")
	old := time.Now().Add(-time.Hour)
	for {
		x := s.Index(filepath.Join(t.TempDir(), "index"), nil)
		put(t, name, "false\n")
		must(t, x.ReadTree(t.Context(), gittest.Git(t, dir, "rev-parse", "HEAD^{tree}")))
		must(t, x.Add(t.Context(), []string{"a"}))
		must(t, files.SetTime(name, old)) // as a workspace's files have the times of the person's
		must(t, x.Refresh(t.Context()))
		scan, err := x.Scan(t.Context(), ScanOptions{})
		must(t, err)
		if len(scan.Changed) != 0 {
			t.Fatalf("changed already: %q", scan.Changed)
		}
		before, err := files.Changed(name)
		must(t, err)
		put(t, name, "true \n")
		must(t, files.SetTime(name, old))
		after, err := files.Changed(name)
		must(t, err)
		scan, err = x.Scan(t.Context(), ScanOptions{})
		must(t, err)
		if len(scan.Changed) != 1 {
			t.Fatalf("changed from %v to %v, and the scan says %+v", before, after, scan)
		}
		if before.Unix() == after.Unix() { // else git alone has seen it
			return
		}
	}
}

// Git reads what is left of its index, in each of its formats.
func TestForgetTimes(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"sha1", "sha256"} {
		for _, version := range []string{"2", "3"} {
			t.Run(format+" "+version, func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				gittest.Git(t, dir, "init", "-q", "--object-format="+format)
				for n := 1; n < 20; n++ {
					put(t, filepath.Join(dir, "folder", strings.Repeat("n", n)), "1\n")
				}
				gittest.Git(t, dir, "add", ".")
				gittest.Git(t, dir, "update-index", "--index-version", version)
				if version == "3" { // git writes it for what needs more flags
					gittest.Git(t, dir, "update-index", "--skip-worktree", "folder/nnn")
				}
				file := filepath.Join(dir, ".git", "index")
				index, err := os.ReadFile(file)
				must(t, err)
				hash := (&Folders{Format: format}).newObjectHash()
				names := gittest.Git(t, dir, "ls-files", "-s", "-t")
				if n, err := forgetTimes(slices.Clone(index), hash, time.Now().Add(time.Hour)); n != 0 || err != nil {
					t.Errorf("%d files are of the future, %v", n, err)
				}
				if n, err := forgetTimes(index, hash, time.Now().Add(-time.Hour)); n != 19 || err != nil {
					t.Errorf("%d files are forgotten, %v", n, err)
				}
				must(t, os.WriteFile(file, index, 0o600))
				if got := gittest.Git(t, dir, "ls-files", "-s", "-t"); got != names {
					t.Errorf("the index has\n%s\nand had\n%s", got, names)
				}
				if got := gittest.Git(t, dir, "ls-files", "--debug"); strings.Count(got, "ctime: 0:0\n") != 19 {
					t.Errorf("times are left:\n%s", got)
				}
				gittest.Git(t, dir, "update-index", "--refresh")
			})
		}
	}
}

// Rubbish is refused, wherever it begins.
func FuzzForgetTimes(f *testing.F) {
	dir := f.TempDir()
	gittest.Git(f, dir, "init", "-q")
	if err := os.WriteFile(filepath.Join(dir, "a"), nil, 0o600); err != nil {
		f.Fatal(err)
	}
	gittest.Git(f, dir, "add", "a")
	index, err := os.ReadFile(filepath.Join(dir, ".git", "index"))
	if err != nil {
		f.Fatal(err)
	}
	for n := range index {
		f.Add(index[:n])
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		size := len(data)
		if _, err := forgetTimes(data, (&Folders{}).newObjectHash(), time.Time{}); len(data) != size {
			t.Errorf("it has %d bytes and had %d, %v", len(data), size, err)
		}
	})
}

// A scan finds the same whatever commit it is near to: the index's own, another, or none that
// can be read.
func TestScanNearACommit(t *testing.T) {
	t.Parallel()
	dir, r := repository(t, "r")
	put(t, filepath.Join(dir, "kept"), "1")
	put(t, filepath.Join(dir, "gone"), "1")
	put(t, filepath.Join(dir, "d", "changed"), "1")
	put(t, filepath.Join(dir, "log"), "tracked, and ignored")
	gittest.Git(t, dir, "add", "-A")
	gittest.Git(t, dir, "commit", "-q", "-m", "more")
	s, err := OpenShadow(t.Context(), r, r, filepath.Join(t.TempDir(), "git"))
	must(t, err)
	head := gittest.Git(t, dir, "rev-parse", "HEAD")
	put(t, filepath.Join(dir, ".gitignore"), "log\n")
	put(t, filepath.Join(dir, "d", "changed"), "2")
	put(t, filepath.Join(dir, "new", "untracked"), "1")
	must(t, os.Remove(filepath.Join(dir, "gone")))
	want := Scan{Changed: []string{"d/changed"}, Gone: []string{"gone"}, Untracked: []string{".gitignore", "new/untracked"},
		Tracked: []string{"log"}}
	for _, near := range []string{"", head, gittest.Git(t, dir, "rev-parse", "HEAD^"), strings.Repeat("1", 40), "no id"} {
		x := s.Index(filepath.Join(t.TempDir(), "index"), nil)
		must(t, x.ReadTree(t.Context(), head+"^{tree}"))
		got, err := x.Scan(t.Context(), ScanOptions{Near: near, Tracked: true})
		if must(t, err); !reflect.DeepEqual(got, want) {
			t.Errorf("near %q: got %+v, want %+v", near, got, want)
		}
	}
}
