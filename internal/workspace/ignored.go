package workspace

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
)

// ignoredTracked are the paths of the private index that the rules of now
// ignore. Git is asked only when a rule or what is in the index changed.
func (r *session) ignoredTracked(ctx context.Context) ([]string, error) {
	// Before git: rules that change in between are seen next time.
	rules := r.rulesNow(r.start.global)
	if r.mem.rules == rules {
		return r.mem.ignored, nil
	}
	all, err := r.index.IgnoredTracked(ctx)
	if err != nil {
		return nil, err
	}
	r.mem.ignored, r.mem.rules = all, rules
	return all, nil
}

// rulesNow is a sum of every ignore file that can have a say about a path of
// the private index. One that is in the index and outside of the sparse
// checkout is not among them.
func (r *session) rulesNow(global string) string {
	h := sha256.New()
	add := func(name string, data []byte) {
		fmt.Fprintf(h, "%s\x00%s\x00%s\x00", name, fileKey(name), sum(data))
	}
	add(global, readRules(global))
	add(r.c.Repo.Exclude, readRules(r.c.Repo.Exclude))
	for _, dir := range slices.Sorted(maps.Keys(r.mem.folders)) {
		file := path.Join(dir, ".gitignore")
		name := filepath.Join(r.c.Repo.Top, file)
		if _, err := os.Lstat(name); err == nil {
			add(name, r.c.readTreeRules(file))
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

// expect keeps what is known of ignored paths true over the change of the
// private index that follows. A fresh path is not ignored; it may be in a
// folder that had none.
func (r *session) expect(ignored, gone, again, fresh []string) {
	if slices.ContainsFunc(again, func(p string) bool { return r.c.look(p) != absent }) {
		r.mem.rules = ""
	}
	if slices.ContainsFunc(gone, func(p string) bool { return slices.Contains(ignored, p) }) {
		r.mem.rules = ""
	}
	for _, p := range fresh {
		r.noteFolders(p)
	}
}

// noteFolders notes the folders above a path of the private index.
func (r *session) noteFolders(p string) {
	for dir := path.Dir(p); dir != "." && !r.mem.folders[dir]; dir = path.Dir(dir) {
		r.mem.folders[dir] = true
	}
}
