package git

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/zlib"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
)

// treeLimit is the size in bytes of a tree that is read here.
const treeLimit = 16 << 20

// treeEntry is one line of a tree. Its mode has six digits.
type treeEntry struct{ mode, name, object string }

const modeTree = "040000"

// diffLoose lists how two trees or commits differ, in git's order and without
// renames. It reads objects that lie in files of their own, as new ones do; for
// any other the error says that git must be asked.
func (r *Repo) diffLoose(from, to string) ([]Change, error) {
	d := treeDiff{repo: r}
	a, err := r.treeOf(from)
	if err != nil {
		return nil, err
	}
	b, err := r.treeOf(to)
	if err != nil {
		return nil, err
	}
	err = d.trees("", a, b)
	return d.all, err
}

type treeDiff struct {
	repo *Repo
	all  []Change
}

// trees compares two trees; an empty id is the tree without entries.
func (d *treeDiff) trees(dir, from, to string) error {
	if from == to {
		return nil
	}
	old, err := d.repo.looseTree(from)
	if err != nil {
		return err
	}
	now, err := d.repo.looseTree(to)
	if err != nil {
		return err
	}
	for len(old)+len(now) > 0 {
		var a, b treeEntry
		var order int
		switch {
		case len(old) == 0:
			order = 1
		case len(now) == 0:
			order = -1
		default:
			order = cmp.Compare(old[0].key(), now[0].key())
		}
		if order <= 0 {
			a, old = old[0], old[1:]
		}
		if order >= 0 {
			b, now = now[0], now[1:]
		}
		if err := d.entries(dir, a, b); err != nil {
			return err
		}
	}
	return nil
}

// key orders the entries of a tree: a folder sorts as if it ended in a slash.
func (e treeEntry) key() string {
	if e.mode == modeTree {
		return e.name + "/"
	}
	return e.name
}

// entries compares what one name stands for; one of the two may be nothing.
// Both are trees or none is, because the key tells them apart.
func (d *treeDiff) entries(dir string, a, b treeEntry) error {
	if a == b {
		return nil
	}
	name := dir + cmp.Or(a.name, b.name)
	if a.mode == modeTree || b.mode == modeTree {
		return d.trees(name+"/", a.object, b.object)
	}
	c := Change{Status: 'M', Path: name, OldMode: a.mode, OldObject: a.object, NewMode: b.mode, NewObject: b.object}
	switch {
	case a.name == "":
		c.Status = 'A'
	case b.name == "":
		c.Status = 'D'
	case a.mode[:3] != b.mode[:3]:
		c.Status = 'T'
	}
	d.all = append(d.all, c)
	return nil
}

// treeOf is the tree that an id stands for: itself, or that of a commit.
func (r *Repo) treeOf(id string) (string, error) {
	kind, body, err := r.readLoose(id)
	if err != nil || kind == "tree" {
		return id, err
	}
	first, _, _ := strings.Cut(string(body), "\n")
	tree, ok := strings.CutPrefix(first, "tree ")
	if kind != "commit" || !ok || !r.isID(tree) {
		return "", errUnusual
	}
	return tree, nil
}

// looseTreeOf is the tree of a commit in a file of its own.
func (r *Repo) looseTreeOf(commit string) (string, bool) {
	tree, err := r.treeOf(commit)
	return tree, err == nil && tree != commit
}

func (r *Repo) looseTree(id string) ([]treeEntry, error) {
	if id == "" {
		return nil, nil
	}
	kind, body, err := r.readLoose(id)
	if err != nil {
		return nil, err
	}
	if kind != "tree" {
		return nil, errUnusual
	}
	var all []treeEntry
	size := len(id) / 2
	for len(body) > 0 {
		head, rest, ok := bytes.Cut(body, []byte{0})
		mode, name, two := strings.Cut(string(head), " ")
		if !ok || !two || len(rest) < size {
			return nil, errUnusual
		}
		if mode == "40000" {
			mode = modeTree
		}
		if !slices.Contains([]string{modeTree, ModeFile, ModeExec, ModeSymlink, ModeNested}, mode) {
			return nil, errUnusual // git has its own idea of modes from its early days
		}
		all = append(all, treeEntry{mode: mode, name: name, object: hex.EncodeToString(rest[:size])})
		body = rest[size:]
	}
	return all, nil
}

// looseSize is the size of an object in a file of its own, in any of the stores, by
// its first bytes; -1 when it has none.
func (r *Repo) looseSize(id string) int64 {
	name := r.findLoose(id)
	if name == "" {
		return -1
	}
	f, err := os.Open(name)
	if err != nil {
		return -1
	}
	defer f.Close()
	z, err := zlib.NewReader(f)
	if err != nil {
		return -1
	}
	head, err := bufio.NewReaderSize(z, 64).ReadString(0)
	_, text, _ := strings.Cut(strings.TrimSuffix(head, "\x00"), " ")
	size, nerr := strconv.ParseInt(text, 10, 64)
	if err != nil || nerr != nil || size < 0 {
		return -1
	}
	return size
}

// readLoose reads an object from its own file, in any of the stores. Its content must be what its
// id says, which git itself does not check for trees.
func (r *Repo) readLoose(id string) (kind string, body []byte, err error) {
	file := r.findLoose(id)
	if file == "" {
		return "", nil, errUnusual
	}
	f, err := os.Open(file)
	if err != nil {
		return "", nil, err
	}
	defer f.Close()
	z, err := zlib.NewReader(f)
	if err != nil {
		return "", nil, err
	}
	data, err := io.ReadAll(io.LimitReader(z, treeLimit+1))
	if err != nil {
		return "", nil, err
	}
	h := r.newHash()
	h.Write(data)
	head, body, _ := bytes.Cut(data, []byte{0})
	kind, size, _ := strings.Cut(string(head), " ")
	if hex.EncodeToString(h.Sum(nil)) != id || size != fmt.Sprint(len(body)) {
		return "", nil, errUnusual
	}
	return kind, body, nil
}
