package git

import (
	"bufio"
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// pawl is the author of every commit that pawl makes for itself.
var pawl = Person{Name: "pawl", Email: "pawl@localhost"}

var author = []string{
	"GIT_AUTHOR_NAME=" + pawl.Name, "GIT_AUTHOR_EMAIL=" + pawl.Email,
	"GIT_COMMITTER_NAME=" + pawl.Name, "GIT_COMMITTER_EMAIL=" + pawl.Email,
}

// Commit stores a commit by "pawl" with the time of now. Empty parents are
// left out. It is an error if the tree or a parent is not in the store.
func (s *Shadow) Commit(ctx context.Context, tree, message string, parents ...string) (string, error) {
	parents = slices.DeleteFunc(slices.Clone(parents), func(p string) bool { return p == "" })
	if id, err := s.writeCommit(Person{"pawl", "pawl@localhost"}, tree, message, parents); err == nil {
		return id, nil
	}
	args := []string{"commit-tree", tree}
	for _, p := range parents {
		args = append(args, "-p", p)
	}
	c := s.call(args...)
	c.env = append(c.env, author...)
	c.stdin = strings.NewReader(message)
	out, err := run(ctx, c)
	if err != nil {
		return "", fmt.Errorf("cannot store a commit: %w", err)
	}
	for _, id := range append(parents, tree) {
		s.stored.Store(id, true)
	}
	return strings.TrimSpace(string(out)), nil
}

// Store stores bytes as a blob.
func (s *Shadow) Store(ctx context.Context, data io.Reader) (string, error) {
	c := s.call("hash-object", "-w", "--no-filters", "--stdin")
	c.stdin = data
	out, err := run(ctx, c)
	if err != nil {
		return "", fmt.Errorf("cannot store a blob: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

// Sizes returns the size in bytes of each blob, in order; -1 for one that is
// not in the object store.
func (s *Shadow) Sizes(ctx context.Context, objects []string) ([]int64, error) {
	if sizes, ok := s.looseSizes(objects); ok {
		return sizes, nil
	}
	c := s.call("cat-file", "--batch-check=%(objectsize)", "--buffer")
	c.stdin = strings.NewReader(strings.Join(objects, "\n") + "\n")
	out, err := run(ctx, c)
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

// fewObjects is how many objects are looked at one by one rather than by git.
const fewObjects = 100

func (s *Shadow) looseSizes(objects []string) ([]int64, bool) {
	if len(objects) > fewObjects {
		return nil, false
	}
	sizes := make([]int64, len(objects))
	for i, id := range objects {
		if sizes[i] = s.Repo.looseSize(id); sizes[i] < 0 {
			return nil, false
		}
	}
	return sizes, true
}

// Blobs hands each blob to each, in order, as a stream that is valid during
// the call. An error of each ends it and is returned.
func (s *Shadow) Blobs(ctx context.Context, objects []string, each func(i int, size int64, r io.Reader) error) error {
	if len(objects) == 0 {
		return nil
	}
	c := s.call("cat-file", "--batch", "--buffer")
	c.stdin = strings.NewReader(strings.Join(objects, "\n") + "\n")
	p := prepare(ctx, c)
	defer p.cancel()
	pipe, err := p.cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("cannot read objects: %w", err)
	}
	if err := p.cmd.Start(); err != nil {
		return startError(p.name, err)
	}
	err = stream(bufio.NewReaderSize(pipe, 64<<10), objects, each)
	if err != nil {
		p.cancel()
		_ = p.cmd.Wait() // killed: its status says nothing new
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return err
	}
	return p.failure(ctx, p.cmd.Wait())
}

func stream(r *bufio.Reader, objects []string, each func(int, int64, io.Reader) error) error {
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
func (r *Repo) BlobID(size int64, from io.Reader) (string, error) {
	h := r.newHash()
	fmt.Fprintf(h, "blob %d\x00", size)
	if _, err := io.Copy(h, from); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
