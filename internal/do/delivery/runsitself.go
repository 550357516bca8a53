package delivery

import (
	"context"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/do/gate"
	"github.com/pawl-dev/pawl/internal/do/git"
)

// RunsItself lists those of the paths, relative to the top level, that programs of the
// person run or obey without being asked: what patterns cover, where git looks for hooks,
// files of settings that git's own include, attributes where git's settings have
// programs that these could name, what makes a folder a repository for git, and pawl's own folder.
func RunsItself(ctx context.Context, repo *git.Repo, paths, patterns []string) ([]string, error) {
	if len(paths) == 0 {
		return nil, nil
	}
	places, drivers, err := repo.Obeyed(ctx)
	if err != nil {
		return nil, err
	}
	inBare := insideBare(repo.Top, paths)
	return slices.DeleteFunc(slices.Clone(paths), func(p string) bool {
		obeyed := slices.ContainsFunc(places, func(place string) bool {
			isLinkOnTheWay := strings.HasPrefix(place, p+"/")
			return p == place || strings.HasPrefix(p, place+"/") || isLinkOnTheWay
		})
		attributes := drivers && path.Base(p) == ".gitattributes"
		isOfPawl := slices.Contains(strings.Split(p, "/"), ".pawl") // state files, logs, sprints
		return !obeyed && !attributes && !isOfPawl && !inBare(p) &&
			!slices.ContainsFunc(patterns, func(one string) bool { return gate.LeadsTo(p, "**/"+one) })
	}), nil
}

// insideBare reports whether a path lies in a folder that git takes for a bare repository, with
// the paths beside what is there already: it obeys the settings and hooks in there.
func insideBare(top string, paths []string) func(p string) bool {
	come := map[string]bool{} // paths and their folders; some file systems do not tell upper from lower case
	for _, p := range paths {
		for at := strings.ToLower(p); at != "." && !come[at]; at = path.Dir(at) {
			come[at] = true
		}
	}
	has := func(dir, name string) bool {
		_, err := os.Lstat(filepath.Join(top, dir, name))
		return err == nil || come[strings.ToLower(path.Join(dir, name))]
	}
	known := map[string]bool{".": false}
	isBare := func(dir string) bool {
		is, ok := known[dir]
		if !ok {
			if is = has(dir, "objects") && has(dir, "refs"); !is {
				is = has(dir, "commondir")
			}
			is = is && has(dir, "HEAD")
			known[dir] = is
		}
		return is
	}
	return func(p string) bool {
		for dir := path.Dir(p); dir != "."; dir = path.Dir(dir) {
			if isBare(dir) {
				return true
			}
		}
		return false
	}
}
