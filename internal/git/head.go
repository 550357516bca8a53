package git

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// packedLimit is the size in bytes of a packed-refs file that is read here;
// git maps a larger one faster.
const packedLimit = 8 << 20

// readHeadFiles reads HEAD from the files of the git directory. It is false
// for whatever is not plain: a link, a symbolic ref to another one, refs that
// are not kept in files, a broken id. Then git is asked.
func (r *Repo) readHeadFiles() (Head, bool) {
	text, err := plainFile(filepath.Join(r.Dir, "HEAD"))
	if err != nil {
		return Head{}, false
	}
	if branch, symbolic := strings.CutPrefix(text, "ref: "); symbolic {
		// Refs in a reftable have a branch here that is not valid.
		if !strings.HasPrefix(branch, "refs/heads/") || !plainRef(branch) {
			return Head{}, false
		}
		commit, ok := r.readRef(branch)
		return Head{Commit: commit, Branch: branch}, ok
	}
	return Head{Commit: text}, r.isID(text)
}

// readRef is what a ref of the whole repository points to; empty when there is
// no such ref, and false when git must be asked. The ref's own file comes
// first: a ref that is packed in between is found in the packed ones.
func (r *Repo) readRef(name string) (string, bool) {
	text, err := plainFile(filepath.Join(r.Common, name))
	if err == nil {
		return text, r.isID(text)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", false
	}
	packed, ok := r.packedRefs()
	if !ok {
		return "", false
	}
	before, _, found := strings.Cut(packed, " "+name+"\n")
	if !found {
		return "", true
	}
	id := before[strings.LastIndexByte(before, '\n')+1:]
	return id, r.isID(id)
}

// plainRef reports whether a name is one that git allows and that needs no
// thought as a path.
func plainRef(name string) bool {
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || part[0] == '.' || strings.HasSuffix(part, ".lock") {
			return false
		}
	}
	return !strings.Contains(name, "..") && !strings.Contains(name, "@{") &&
		!strings.ContainsAny(name, " ~^:?*[\\\x7f") && strings.IndexFunc(name, func(c rune) bool { return c < ' ' }) < 0
}

// plainFile is the one line that a small regular file holds.
func plainFile(name string) (string, error) {
	info, err := os.Lstat(name)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() || info.Size() > 4096 {
		return "", errors.New("not a plain file")
	}
	data, err := os.ReadFile(name)
	return strings.TrimSuffix(string(data), "\n"), err
}

// isID reports whether text is a full object id other than zero.
func (r *Repo) isID(text string) bool {
	return len(text) == len(r.Zero()) && text != r.Zero() && strings.Trim(text, "0123456789abcdef") == ""
}
