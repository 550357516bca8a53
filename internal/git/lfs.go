package git

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// pointerLimit is more bytes than a pointer file of LFS has.
const pointerLimit = 1024

// pointer is what git holds of a file whose content LFS keeps elsewhere.
type pointer struct {
	sum  string // SHA-256 of the content
	size int64
}

func readPointer(text string) (pointer, bool) {
	var p pointer
	version := false
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		switch key {
		case "version":
			version = strings.HasPrefix(value, "https://git-lfs.github.com/spec/")
		case "oid":
			p.sum = strings.TrimPrefix(value, "sha256:")
		case "size":
			p.size, _ = strconv.ParseInt(value, 10, 64)
		}
	}
	return p, version && len(p.sum) == 64
}

// ChangedLFS returns those of the staged paths whose content on disk is not what
// the staged pointer stands for. The others are as a checkout by LFS leaves them.
func (c *Clone) ChangedLFS(ctx context.Context, paths []string) (others []string, err error) {
	if len(paths) == 0 {
		return nil, nil
	}
	root, err := os.OpenRoot(c.Top)
	if err != nil {
		return nil, fmt.Errorf("cannot read the work tree: %w", err)
	}
	defer root.Close()
	entries, err := c.index.Entries(ctx)
	if err != nil {
		return nil, err
	}
	staged := make(map[string]string, len(entries))
	for _, e := range entries {
		if e.Mode == ModeFile || e.Mode == ModeExec {
			staged[e.Path] = e.Object
		}
	}
	var ask, ids []string
	for _, name := range paths {
		if id, ok := staged[name]; ok {
			ask, ids = append(ask, name), append(ids, id)
		} else {
			others = append(others, name)
		}
	}
	err = c.shadow.Blobs(ctx, ids, func(i int, size int64, body io.Reader) error {
		text, err := io.ReadAll(io.LimitReader(body, pointerLimit))
		if err != nil {
			return err
		}
		if want, ok := readPointer(string(text)); size >= pointerLimit || !ok || !holds(root, ask[i], want) {
			others = append(others, ask[i])
		}
		return nil
	})
	return others, err
}

// holds reports whether a file has the content that a pointer stands for.
func holds(root *os.Root, name string, want pointer) bool {
	f, err := root.OpenFile(filepath.FromSlash(name), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() || info.Size() != want.size {
		return false
	}
	h := sha256.New()
	if _, err := io.Copy(h, io.LimitReader(f, want.size+1)); err != nil {
		return false
	}
	return hex.EncodeToString(h.Sum(nil)) == want.sum
}
