package git

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"context"
	"crypto/sha1" //nolint:gosec // git's own name for objects, not a protection
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/pawl-dev/pawl/internal/do/git/command"
	"github.com/pawl-dev/pawl/internal/keep/files"
)

// Commit stores a commit by "pawl" with the time of now. Empty parents are
// left out. It is an error if the tree or a parent is not in the store.
func (s *Shadow) Commit(ctx context.Context, tree, message string, parents ...string) (string, error) {
	return s.CommitTree(ctx, pawl, tree, message, parents...)
}

// CommitTree is [Shadow.Commit] by somebody else.
func (s *Shadow) CommitTree(ctx context.Context, who Person, tree, message string, parents ...string) (string, error) {
	return commitTree(ctx, s.newCall(), who, tree, message, parents)
}

func commitTree(ctx context.Context, c call, who Person, tree, message string, parents []string) (string, error) {
	c.Args = []string{"commit-tree", tree}
	for _, p := range parents {
		if p != "" {
			c.Args = append(c.Args, "-p", p)
		}
	}
	c.Env = append(c.Env, who.commitEnvironment()...)
	if who.SignsOff {
		message = who.SignOff(message)
	}
	c.Stdin = strings.NewReader(message)
	return command.Text(ctx, c, "store a commit")
}

// Store stores bytes as a blob.
func (s *Shadow) Store(ctx context.Context, data io.Reader) (string, error) {
	c := s.newCall("hash-object", "-w", "--no-filters", "--stdin")
	c.Stdin = data
	return command.Text(ctx, c, "store a blob")
}

// Sizes returns the size in bytes of each blob, in order; -1 for one that is
// not in the object store.
func (s *Shadow) Sizes(ctx context.Context, objects []string) ([]int64, error) {
	if len(objects) == 0 {
		return nil, nil
	}
	c := s.newCall("cat-file", "--batch-check=%(objectsize)", "--buffer")
	c.Stdin = strings.NewReader(strings.Join(objects, "\n") + "\n")
	out, err := command.Run(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("cannot read the sizes of objects: %w", err)
	}
	lines := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	sizes := make([]int64, len(objects))
	for i := range sizes {
		sizes[i] = -1
		if i < len(lines) {
			if n, err := strconv.ParseInt(lines[i], 10, 64); err == nil {
				sizes[i] = n
			}
		}
	}
	return sizes, nil
}

// Blobs hands each blob to each, in order, as a stream that is valid during
// the call. An error of each ends it and is returned.
func (s *Shadow) Blobs(ctx context.Context, objects []string, each func(i int, size int64, r io.Reader) error) error {
	if len(objects) == 0 {
		return nil
	}
	c := s.newCall("cat-file", "--batch", "--buffer")
	c.Stdin = strings.NewReader(strings.Join(objects, "\n") + "\n")
	return command.Stream(ctx, c, func(pipe io.Reader) error {
		return streamObjects(bufio.NewReaderSize(pipe, 64<<10), objects, each)
	})
}

func streamObjects(r *bufio.Reader, objects []string, each func(int, int64, io.Reader) error) error {
	for i, id := range objects {
		line, err := r.ReadString('\n')
		if err != nil {
			return fmt.Errorf("cannot read object %s: %w", id, err)
		}
		f := strings.Fields(line)
		if len(f) != 3 {
			return fmt.Errorf("cannot read object %s: git said %q", id, strings.TrimSpace(line))
		}
		size, err := strconv.ParseInt(f[2], 10, 64)
		if err != nil {
			return fmt.Errorf("cannot read object %s: git said %q", id, strings.TrimSpace(line))
		}
		body := io.LimitReader(r, size)
		if err := each(i, size, body); err != nil {
			return err
		}
		if _, err := io.Copy(io.Discard, body); err != nil {
			return fmt.Errorf("cannot read object %s: %w", id, err)
		}
		if _, err := r.Discard(1); err != nil {
			return fmt.Errorf("cannot read object %s: %w", id, err)
		}
	}
	return nil
}

// BlobID is the id that git gives to size bytes of r stored as they are.
func (r *Folders) BlobID(size int64, from io.Reader) (string, error) {
	h := r.newObjectHash()
	fmt.Fprintf(h, "blob %d\x00", size)
	if _, err := io.Copy(h, from); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

func (r *Folders) newObjectHash() hash.Hash {
	if r.Format == "sha256" {
		return sha256.New()
	}
	return sha1.New() //nolint:gosec // git's own name for objects, not a protection
}

// Loose counts the objects that are files of their own.
func (r *History) Loose(ctx context.Context) (int, error) {
	out, err := command.Run(ctx, r.NewCall("count-objects"))
	if err != nil {
		return 0, fmt.Errorf("cannot count loose objects: %w", err)
	}
	number, _, _ := strings.Cut(string(out), " ")
	n, err := strconv.Atoi(number)
	if err != nil {
		return 0, fmt.Errorf("cannot count loose objects: git says %q", out)
	}
	return n, nil
}

// Compact packs the objects of pawl's own repository, and drops those that no ref has led to for a week.
func (r *RefStore) Compact(ctx context.Context) error {
	if err := r.runRefCommand(ctx, r.NewCall("gc", "--quiet", "--cruft", "--prune=1.week.ago")); err != nil {
		return fmt.Errorf("cannot pack loose objects: %w", err)
	}
	return nil
}

// JoinPacks makes few packs of many, with all objects that are in them, and leaves alone what is
// already few, or a partial clone.
func (r *History) JoinPacks(ctx context.Context) error {
	const many = 50 // as for git's own gc
	packs, _ := filepath.Glob(filepath.Join(r.Objects, "pack", "pack-*.pack"))
	partial, _ := filepath.Glob(filepath.Join(r.Objects, "pack", "pack-*.promisor"))
	if len(packs) <= many || len(partial) > 0 {
		return nil
	}
	if _, err := command.Run(ctx, r.NewCall("repack", "--geometric=2", "-d", "-q")); err != nil {
		return fmt.Errorf("cannot join packs: %w", err)
	}
	return nil
}

// Git by default syncs packs, and neither single objects, refs nor folders: what
// it wrote may be empty or gone after a power loss. What must not be is synced
// here, when it matters, all of it at once.

// SyncObjects makes the commits want, with all that have does not have, survive a
// power loss. An empty have is nothing.
func (r *History) SyncObjects(ctx context.Context, have string, want ...string) error {
	c := r.NewCall("rev-list", "--objects", "--no-object-names", "--stdin")
	c.Stdin = reachable(have, want)
	out, err := command.Run(ctx, c)
	if err != nil {
		return fmt.Errorf("cannot list what is to be kept: %w", err)
	}
	paths := []string{r.Objects, filepath.Join(r.Objects, "pack")}
	for line := range strings.Lines(string(out)) {
		id := strings.TrimSpace(line)
		if !r.isObjectID(id) {
			continue
		}
		name := r.loosePath(id)
		if info, err := os.Lstat(name); err == nil && info.Mode().IsRegular() {
			paths = append(paths, name, filepath.Dir(name))
		}
	}
	if err := files.Sync(paths...); err != nil {
		return fmt.Errorf("cannot keep objects on the disk: %v", err)
	}
	return nil
}

// loosePath returns the path of an object outside of packs. There need be no file.
func (r *Folders) loosePath(id string) string { return filepath.Join(r.Objects, id[:2], id[2:]) }

// syncRefs makes refs that were moved, and what their logs say, survive a power loss.
func (r *RefStore) syncRefs(names ...string) error {
	paths := []string{r.Common}
	add := func(top, name string) {
		file := filepath.Join(top, name)
		paths = append(paths, files.Folders(file, top)...) // git synced the file
		log := filepath.Join(top, "logs", name)
		if _, err := os.Lstat(log); err == nil {
			paths = append(append(paths, log), files.Folders(log, top)...)
		}
	}
	add(r.Dir, "HEAD") // its log is of the branch that is checked out
	for _, name := range names {
		add(r.Common, name)
	}
	if err := files.Sync(paths...); err != nil {
		return fmt.Errorf("cannot keep refs on the disk: %v", err)
	}
	return nil
}

// maxObject is the size in bytes up to which an object may have a file of its own. Git puts
// large ones into packs: see core.bigFileThreshold, which is half of it.
const maxObject = 1 << 30

// isObject reports whether what is read is the file of the object id, and nothing more.
// Of one that unpacks to more than it says, or than maxObject, no more is read.
func (r *Folders) isObject(from io.Reader, id string) bool {
	in := bufio.NewReader(from)
	z, err := zlib.NewReader(in)
	if err != nil {
		return false
	}
	content := bufio.NewReader(z)
	begin, _ := content.Peek(len("commit 18446744073709551615\x00")) // a small object ends before
	head, _, _ := bytes.Cut(begin, []byte{0})
	_, number, _ := strings.Cut(string(head), " ")
	size, err := strconv.ParseInt(number, 10, 64)
	if err != nil || size < 0 || size > maxObject {
		return false
	}
	h := r.newObjectHash()
	if _, err := io.CopyN(h, content, int64(len(head))+1+size); err != nil {
		return false
	}
	if _, err := content.ReadByte(); !errors.Is(err, io.EOF) {
		return false
	}
	_, err = in.ReadByte() // git cannot read an object with something behind it
	return errors.Is(err, io.EOF) && hex.EncodeToString(h.Sum(nil)) == id
}
