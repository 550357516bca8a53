package git

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/pawl-dev/pawl/internal/test/gittest"
)

// lend is a repository whose object store is lent, and an agent's git there: it sees
// what is new and what the store has.
func lend(t *testing.T) (r *Repo, in Intake, agent func(stdin string, args ...string) string) {
	t.Helper()
	dir, r := repository(t, "repo")
	beside := t.TempDir()
	in = Intake{Store: r.Objects, New: filepath.Join(beside, "new"), Lent: filepath.Join(beside, "lent")}
	if err := in.Prepare(); err != nil {
		t.Fatal(err)
	}
	// No mount shows the store here, so the place where it would be leads on to it.
	put(t, filepath.Join(in.Lent, "info", "alternates"), r.Objects+"\n")
	return r, in, func(stdin string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "git", args...)
		cmd.Dir, cmd.Stdin, cmd.Env = dir, strings.NewReader(stdin), append(os.Environ(), "GIT_OBJECT_DIRECTORY="+in.New)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %q: %v: %s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
}

// objectFile is the file of a blob.
func objectFile(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	z := zlib.NewWriter(&b)
	fmt.Fprintf(z, "blob %d\x00%s", len(text), text)
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// An object that unpacks to more than it says, or than an object may have, is read no
// further: a small file could be of any size.
func TestObjectThatIsTooLarge(t *testing.T) {
	t.Parallel()
	for said, want := range map[int]bool{5: true, 4: false, 6: false, maxObject + 1: false, -1: false} {
		var b bytes.Buffer
		z := zlib.NewWriter(&b)
		text := fmt.Sprintf("blob %d\x00hello", said)
		fmt.Fprint(z, text)
		must(t, z.Close())
		if id := fmt.Sprintf("%x", sha1.Sum([]byte(text))); isObject(&b, id) != want {
			t.Errorf("one of 5 bytes that says %d: taken %v", said, !want)
		}
	}
	var b bytes.Buffer
	z := zlib.NewWriter(&b)
	_, err := z.Write(append([]byte("blob 5\x00"), make([]byte, 64<<20)...))
	must(t, err)
	must(t, z.Close())
	if size := b.Len(); isObject(&b, strings.Repeat("0", 40)) || b.Len() < size/2 {
		t.Errorf("of %d bytes %d were not read", size, b.Len())
	}
}

// What is what its name says is taken in; what is not goes, and is named. What the
// store has stays as it is, whatever an agent calls by its name.
func TestAccept(t *testing.T) {
	t.Parallel()
	const made = "e81da74b3f1f8b8b4ec64d2c0c5c1c1a3a4f4a7e" // no object's name
	for name, c := range map[string]struct {
		plant func(t *testing.T, r *Repo, in Intake, agent func(string, ...string) string) (id string)
		bad   bool
		taken bool
	}{
		"an object": {func(_ *testing.T, _ *Repo, _ Intake, agent func(string, ...string) string) string {
			return agent("new", "hash-object", "-w", "--stdin")
		}, false, true},
		"a commit in a pack": {func(_ *testing.T, _ *Repo, _ Intake, agent func(string, ...string) string) string {
			id := agent("", "commit-tree", "-m", "two", "-p", "HEAD", "HEAD^{tree}")
			agent("", "update-ref", "refs/heads/two", id)
			agent("", "repack", "-q", "-a", "-d")
			return id
		}, false, true},
		"an object of another name": {func(t *testing.T, _ *Repo, in Intake, _ func(string, ...string) string) string {
			put(t, filepath.Join(in.New, made[:2], made[2:]), objectFile(t, "evil"))
			return made
		}, true, false},
		"one with something behind it": {func(t *testing.T, _ *Repo, in Intake, agent func(string, ...string) string) string {
			id := agent("tail", "hash-object", "--stdin")
			put(t, filepath.Join(in.New, id[:2], id[2:]), objectFile(t, "tail")+"more")
			return id
		}, true, false},
		"half of one": {func(t *testing.T, _ *Repo, in Intake, agent func(string, ...string) string) string {
			id := agent("half", "hash-object", "--stdin")
			put(t, filepath.Join(in.New, id[:2], id[2:]), objectFile(t, "half")[:10])
			return id
		}, true, false},
		"a link": {func(t *testing.T, r *Repo, in Intake, _ func(string, ...string) string) string {
			must(t, os.MkdirAll(filepath.Join(in.New, made[:2]), 0o755))
			must(t, os.Symlink(r.Index, filepath.Join(in.New, made[:2], made[2:])))
			return made
		}, true, false},
		"a pipe": {func(t *testing.T, _ *Repo, in Intake, _ func(string, ...string) string) string {
			must(t, os.MkdirAll(filepath.Join(in.New, made[:2]), 0o755))
			must(t, unix.Mkfifo(filepath.Join(in.New, made[:2], made[2:]), 0o600))
			return made
		}, true, false},
		"a folder": {func(t *testing.T, _ *Repo, in Intake, _ func(string, ...string) string) string {
			must(t, os.MkdirAll(filepath.Join(in.New, made[:2], made[2:], "x"), 0o755))
			return made
		}, true, false},
		"a link for a folder": {func(t *testing.T, r *Repo, in Intake, _ func(string, ...string) string) string {
			must(t, os.Symlink(filepath.Dir(r.Top), filepath.Join(in.New, made[:2])))
			return made
		}, true, false},
		"a pack that is none": {func(t *testing.T, _ *Repo, in Intake, _ func(string, ...string) string) string {
			put(t, filepath.Join(in.New, "pack", "pack-"+made+".pack"), "PACK")
			put(t, filepath.Join(in.New, "pack", "pack-"+made+".idx"), "")
			return made
		}, true, false},
		"the index of a pack": {func(t *testing.T, _ *Repo, in Intake, agent func(string, ...string) string) string {
			// The index says that the pack's one object is another.
			id := agent("packed", "hash-object", "-w", "--stdin")
			base := filepath.Join(in.New, "pack", "pack")
			sum := agent(id+"\n", "pack-objects", "-q", base)
			must(t, os.RemoveAll(filepath.Join(in.New, id[:2])))
			index := base + "-" + sum + ".idx"
			must(t, os.Chmod(index, 0o600))
			data, err := os.ReadFile(index)
			must(t, err)
			put(t, index, strings.Replace(string(data), string(unhex(t, id)), string(unhex(t, made)), 1))
			return id
		}, false, true},
		"more alternates": {func(t *testing.T, _ *Repo, in Intake, _ func(string, ...string) string) string {
			put(t, filepath.Join(in.New, "info", "alternates"), "/\n")
			return made
		}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, in, agent := lend(t)
			before := stored(t, r)
			id := c.plant(t, r, in, agent)
			bad, err := r.Accept(t.Context(), in)
			if err != nil || (len(bad) > 0) != c.bad {
				t.Errorf("bad %q, %v; want some: %v", bad, err, c.bad)
			}
			if _, err := run(t.Context(), r.call("cat-file", "-e", id)); (err == nil) != c.taken {
				t.Errorf("it is in the store: %v", err)
			}
			gittest.Git(t, r.Top, "fsck", "--strict")
			if after := stored(t, r); !c.taken && !slices.Equal(after, before) {
				t.Errorf("the store has %q, and had %q", after, before)
			}
			again, err := r.Accept(t.Context(), in)
			if left := stored(t, &Repo{Objects: in.New}); err != nil || len(again) > 0 || len(left) > 0 {
				t.Errorf("once more: bad %q, %v, left %q", again, err, left)
			}
		})
	}
}

// stored are the objects of a store, without what git has not finished and removes
// in time.
func stored(t *testing.T, r *Repo) (all []string) {
	t.Helper()
	must(t, filepath.WalkDir(r.Objects, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() && filepath.Base(filepath.Dir(path)) != "info" && !strings.HasPrefix(d.Name(), "tmp_") {
			all = append(all, path)
		}
		return err
	}))
	return all
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func unhex(t *testing.T, id string) (raw []byte) {
	t.Helper()
	_, err := fmt.Sscanf(id, "%x", &raw)
	must(t, err)
	return raw
}

// An object that the store has is not replaced by another of its name.
func TestAcceptReplacesNothing(t *testing.T) {
	t.Parallel()
	r, in, _ := lend(t)
	id := gittest.Git(t, r.Top, "rev-parse", "HEAD:a")
	put(t, filepath.Join(in.New, id[:2], id[2:]), objectFile(t, "evil\n"))
	if bad, err := r.Accept(t.Context(), in); err != nil || !slices.Equal(bad, []string{id[:2] + "/" + id[2:]}) {
		t.Errorf("bad %q, %v", bad, err)
	}
	if text := gittest.Git(t, r.Top, "cat-file", "-p", id); text != "1" {
		t.Errorf("it is %q now", text)
	}
}

// A store that borrows by a path of its own does so where it is lent.
func TestLendAlternates(t *testing.T) {
	t.Parallel()
	r, in, agent := lend(t)
	far, other := repository(t, "far")
	gittest.Git(t, far, "commit", "-q", "--allow-empty", "-m", "far")
	id := gittest.Git(t, far, "rev-parse", "HEAD")
	rel, err := filepath.Rel(r.Objects, other.Objects)
	must(t, err)
	put(t, filepath.Join(r.Objects, "info", "alternates"), "# a comment\n"+rel+"\n")
	must(t, in.Prepare())
	must(t, os.RemoveAll(filepath.Join(in.Lent, "info")))
	if kind := agent("", "cat-file", "-t", id); kind != "commit" {
		t.Errorf("it is a %q", kind)
	}
}
