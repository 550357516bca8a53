package git

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1" //nolint:gosec // git's own name for objects, not a protection
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// errUnusual says that what is there is not the plain case that is done
// without git.
var errUnusual = errors.New("not the plain case")

func (r *Repo) newHash() hash.Hash {
	if r.Format == "sha256" {
		return sha256.New()
	}
	return sha1.New() //nolint:gosec // see the import
}

// loosePath is where an object lies that is in no pack.
func (r *Repo) loosePath(id string) string { return filepath.Join(r.Objects, id[:2], id[2:]) }

// hasLoose reports whether an object lies in a file of its own. An object in
// a pack or in another object store is none.
func (r *Repo) hasLoose(id string) bool {
	if !r.isID(id) {
		return false
	}
	info, err := os.Lstat(r.loosePath(id))
	return err == nil && info.Mode().IsRegular() && info.Size() > 0
}

// stores are the folders in which objects are looked for: the repository's own
// first, then those that it borrows from, as its files say.
func (r *Repo) stores() []string {
	all := []string{r.Objects}
	for i := 0; i < len(all) && len(all) < 8; i++ {
		name := filepath.Join(all[i], "info", "alternates")
		if info, err := os.Lstat(name); err != nil || !info.Mode().IsRegular() || info.Size() > 4096 {
			continue
		}
		data, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(data)) {
			if dir := strings.TrimSuffix(line, "\n"); filepath.IsAbs(dir) && !slices.Contains(all, dir) {
				all = append(all, dir)
			}
		}
	}
	return all
}

// findLoose is the file in which an object lies by itself, in any of the
// stores; "" when there is none.
func (r *Repo) findLoose(id string) string {
	if !r.isID(id) {
		return ""
	}
	for _, dir := range r.stores() {
		name := filepath.Join(dir, id[:2], id[2:])
		if info, err := os.Lstat(name); err == nil && info.Mode().IsRegular() && info.Size() > 0 {
			return name
		}
	}
	return ""
}

// peel is the commit that an id stands for, which may be a tag's, if that is
// certain without git.
func (r *Repo) peel(id string) (string, bool) {
	if commit, known := r.peeled.Load(id); known {
		text, ok := commit.(string)
		return text, ok
	}
	if kind, _, err := r.readLoose(id); err != nil || kind != "commit" {
		return "", false
	}
	r.peeled.Store(id, id)
	return id, true
}

// isCommit reports whether an id is certain to be a commit in the store. False
// means that git must be asked.
func (r *Repo) isCommit(id string) bool {
	commit, known := r.peel(id)
	return known && commit == id
}

// writeLoose stores an object in a file of its own, whole or not at all. Like
// git by default, it does not wait for the disk.
func (r *Repo) writeLoose(kind string, body []byte) (string, error) {
	var object bytes.Buffer
	fmt.Fprintf(&object, "%s %d\x00", kind, len(body))
	object.Write(body)
	h := r.newHash()
	h.Write(object.Bytes())
	id := hex.EncodeToString(h.Sum(nil))
	if r.hasLoose(id) {
		return id, nil
	}
	var packed bytes.Buffer
	z := zlib.NewWriter(&packed)
	if _, err := z.Write(object.Bytes()); err != nil {
		return "", err
	}
	if err := z.Close(); err != nil {
		return "", err
	}
	name := r.loosePath(id)
	if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil { //nolint:gosec // git's own mode, less the umask
		return "", err
	}
	return id, placeObject(name, packed.Bytes())
}

// placeObject uses a name that git's own collection takes for a left-over.
func placeObject(name string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(name), "tmp_obj_*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Chmod(0o444), f.Close()); err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // of no use to anyone
	}
	return err
}

// writeCommit is what git commit-tree does, for a tree and parents that are
// certain to be in the store, and for texts that it takes as they are.
func (s *Shadow) writeCommit(by Person, tree, message string, parents []string) (string, error) {
	if s.shared || !plainWord(by.Name) || !plainWord(by.Email) || !utf8.ValidString(message) || strings.ContainsRune(message, 0) {
		return "", errUnusual
	}
	for _, id := range append([]string{tree}, parents...) {
		if _, seen := s.stored.Load(id); !seen && s.Repo.findLoose(id) == "" {
			return "", errUnusual
		}
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "tree %s\n", tree)
	for _, p := range parents {
		fmt.Fprintf(&b, "parent %s\n", p)
	}
	now := time.Now()
	who := fmt.Sprintf("%s <%s> %d %s", by.Name, by.Email, now.Unix(), now.Format("-0700"))
	fmt.Fprintf(&b, "author %s\ncommitter %s\n\n%s", who, who, message)
	return s.Repo.writeLoose("commit", b.Bytes())
}

// plainWord reports whether git writes a name or an address as it is: it drops
// some signs, at the ends more of them.
func plainWord(text string) bool {
	odd := func(c rune) bool { return c < ' ' || c == '<' || c == '>' || c == utf8.RuneError }
	return text != "" && strings.Trim(text, " .,:;\"\\'") == text && strings.IndexFunc(text, odd) < 0
}

// writeRef makes a new ref of pawl's own. The file takes its name when it is
// whole and only if the name is free, so no lock is needed, and none can stay
// behind that would be in the way of the next attempt. A ref that is there is
// git's to change.
func (r *Repo) writeRef(name, commit string) error {
	if !strings.HasPrefix(name, "refs/pawl/") || !plainRef(name) || !r.refsInFiles() || !r.isCommit(commit) {
		return errUnusual
	}
	file := filepath.Join(r.Common, name)
	if _, err := os.Lstat(file + ".lock"); !errors.Is(err, fs.ErrNotExist) {
		return errUnusual // git is at it
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil { //nolint:gosec // git's own mode, less the umask
		return err
	}
	part := filepath.Join(filepath.Dir(file), ".pawl-"+commit)            // git passes a dot's files over
	f, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666) //nolint:gosec // likewise
	if err != nil {
		return err
	}
	defer os.Remove(part)
	_, wrong := f.WriteString(commit + "\n")
	if err := errors.Join(wrong, f.Close()); err != nil {
		return err
	}
	return os.Link(part, file)
}

// refsInFiles reports whether each ref is a file of its own. It looks each
// time: "git refs migrate" changes it.
func (r *Repo) refsInFiles() bool {
	if _, err := os.Lstat(filepath.Join(r.Common, "reftable")); !errors.Is(err, fs.ErrNotExist) {
		return false
	}
	head, err := plainFile(filepath.Join(r.Dir, "HEAD"))
	return err == nil && head != "ref: refs/heads/.invalid"
}
