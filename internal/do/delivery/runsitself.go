package delivery

import (
	"context"
	"path"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/do/gate"
	"github.com/pawl-dev/pawl/internal/do/git"
)

// RunsItself lists those of the paths, relative to the top level, that programs of the
// person run or obey without being asked: what patterns cover, where git looks for hooks,
// files of settings that git's own include, and attributes where git's settings have
// programs that these could name.
func RunsItself(ctx context.Context, repo *git.Repo, paths, patterns []string) ([]string, error) {
	if len(paths) == 0 {
		return nil, nil
	}
	places, drivers, err := repo.Obeyed(ctx)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(paths), func(p string) bool {
		obeyed := slices.ContainsFunc(places, func(place string) bool {
			isLinkOnTheWay := strings.HasPrefix(place, p+"/")
			return p == place || strings.HasPrefix(p, place+"/") || isLinkOnTheWay
		})
		attributes := drivers && path.Base(p) == ".gitattributes"
		return !obeyed && !attributes &&
			!slices.ContainsFunc(patterns, func(one string) bool { return leadsTo(p, one) })
	}), nil
}

// leadsTo reports whether a pattern covers a path, or a folder of the pattern does: what
// changed there is a link to another folder then.
func leadsTo(p, pattern string) bool {
	isCovered := gate.Match("**/"+pattern, p)
	for dir := path.Dir(pattern); !isCovered && dir != "."; dir = path.Dir(dir) {
		isCovered = !strings.ContainsAny(dir, "*?[{") && gate.Match("**/"+dir, p)
	}
	return isCovered
}
