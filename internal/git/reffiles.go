package git

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// fileRef is a ref as the files say it.
type fileRef struct{ name, id string }

// refFiles lists the refs of the prefixes, each a whole name or one that ends at
// a slash, from the files of the repository, in no order. It is false when there are more than
// limit, and for whatever is not plain: then git is asked. A symbolic ref is left
// out if it leads below one of the prefixes, where its commit is listed anyway.
func (r *Repo) refFiles(limit int, prefixes ...string) ([]fileRef, bool) {
	if !r.refsInFiles() {
		return nil, false
	}
	// The refs' own files come first: one that is packed in between is found
	// among the packed ones.
	all := map[string]string{}
	for _, prefix := range prefixes {
		if !r.looseRefs(prefix, prefixes, limit, all) {
			return nil, false
		}
	}
	packed, ok := r.packedRefs()
	if !ok {
		return nil, false
	}
	for line := range strings.Lines(packed) {
		id, name, two := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if line[0] == '#' || line[0] == '^' || !slices.ContainsFunc(prefixes, func(p string) bool { return below(name, p) }) {
			continue
		}
		if _, loose := all[name]; loose {
			continue
		}
		if !two || !r.isID(id) || len(all) >= limit {
			return nil, false
		}
		all[name] = id
	}
	list := make([]fileRef, 0, len(all))
	for name, id := range all {
		if id != "" {
			list = append(list, fileRef{name, id})
		}
	}
	return list, true
}

// below reports whether a ref is the one of a name, or begins with a prefix that
// ends at a slash.
func below(ref, prefix string) bool {
	if strings.HasSuffix(prefix, "/") {
		return strings.HasPrefix(ref, prefix)
	}
	return ref == prefix
}

// namesLimit is how many refs are listed from files.
const namesLimit = 10_000

// RefNames lists the names of the refs below a prefix that ends at a slash, in no
// order.
func (r *Repo) RefNames(ctx context.Context, prefix string) ([]string, error) {
	var names []string
	if list, ok := r.refFiles(namesLimit, prefix); ok {
		for _, ref := range list {
			names = append(names, ref.name)
		}
		return names, nil
	}
	refs, err := r.Refs(ctx, prefix)
	for _, ref := range refs {
		names = append(names, ref.Name)
	}
	return names, err
}

// looseRefs adds the refs below a prefix that have files of their own; a
// symbolic one has no id.
func (r *Repo) looseRefs(prefix string, prefixes []string, limit int, all map[string]string) bool {
	top := filepath.Join(r.Common, filepath.FromSlash(prefix))
	err := filepath.WalkDir(top, func(file string, d fs.DirEntry, err error) error {
		switch {
		case file == top && errors.Is(err, fs.ErrNotExist):
			return fs.SkipAll
		case err != nil:
			return err
		case d.IsDir():
			return nil
		}
		name, err := filepath.Rel(r.Common, file)
		if err != nil {
			return err
		}
		if name = filepath.ToSlash(name); !plainRef(name) {
			return nil // a lock, or what a git that was killed left: no ref
		}
		text, err := plainFile(file)
		if err != nil || len(all) >= limit {
			return errUnusual
		}
		to, symbolic := strings.CutPrefix(text, "ref: ")
		switch {
		case symbolic && slices.ContainsFunc(prefixes, func(p string) bool { return below(to, p) }):
			all[name] = ""
		case r.isID(text):
			all[name] = text
		default:
			return errUnusual
		}
		return nil
	})
	return err == nil
}

// packedRefs is the text of the file with many refs, if it can be read here.
func (r *Repo) packedRefs() (string, bool) {
	file := filepath.Join(r.Common, "packed-refs")
	info, err := os.Lstat(file)
	if errors.Is(err, fs.ErrNotExist) {
		return "", true
	}
	if err != nil || !info.Mode().IsRegular() || info.Size() > packedLimit {
		return "", false
	}
	data, err := os.ReadFile(file)
	return string(data), err == nil && (len(data) == 0 || data[len(data)-1] == '\n')
}

// dropRefFiles removes refs of pawl's own that are files and nothing else. False
// means that git has to remove what is left.
func (r *Repo) dropRefFiles(prefixes []string) bool {
	list, ok := r.refFiles(namesLimit, prefixes...)
	if !ok {
		return false
	}
	packed, ok := r.packedRefs()
	if !ok {
		return false
	}
	root, err := os.OpenRoot(r.Common) // a link that an agent put there leads nowhere
	if err != nil {
		return false
	}
	defer root.Close()
	for _, ref := range list {
		_, locked := root.Lstat(ref.name + ".lock")
		_, logged := root.Lstat("logs/" + ref.name)
		if !strings.HasPrefix(ref.name, "refs/pawl/") || strings.Contains(packed, " "+ref.name+"\n") ||
			!errors.Is(locked, fs.ErrNotExist) || !errors.Is(logged, fs.ErrNotExist) {
			return false
		}
		if err := root.Remove(ref.name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false
		}
		for dir := path.Dir(ref.name); strings.Count(dir, "/") > 2 && root.Remove(dir) == nil; { // empty ones
			dir = path.Dir(dir)
		}
	}
	return true
}

// noRefs reports whether the files say that there is no ref below any of the
// prefixes. False means that git must be asked.
func (r *Repo) noRefs(prefixes ...string) bool {
	list, ok := r.refFiles(1, prefixes...)
	return ok && len(list) == 0
}
