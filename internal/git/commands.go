package git

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/files"
	"github.com/pawl-dev/pawl/internal/lazy"
)

// This file decides which of git's settings may make it run a program for pawl, or
// send work somewhere. Those of the person hold: a key by core.sshCommand, a helper of
// credentials, a filter. One that stands in a file of the work tree, which the
// configuration includes, may be an agent's; then git is not called, or without it.

// Settings by what pawl has git do.
var (
	ofNetwork = settingsOf(`core\.(sshcommand|askpass|gitproxy|alternaterefscommand)` +
		`|(credential|http|https|url|remote|protocol|ssh|gpg)\..*|push\.gpgsign|(fetch|transfer)\.bundleuri`)
	ofFilters = settingsOf(`filter\..*\.(clean|smudge|process)`)
	ofMerges  = settingsOf(`merge\..*\.driver`)
)

func settingsOf(keys string) func() *regexp.Regexp {
	return lazy.Regexp(`^(` + keys + `)$`)
}

// ofTree are those of some settings that stand in a file of the work tree.
func (r *Repo) ofTree(ctx context.Context, some func() *regexp.Regexp) ([]Setting, error) {
	all, err := r.Config(ctx)
	return slices.DeleteFunc(all, func(s Setting) bool {
		if s.File == "" || !some().MatchString(strings.ToLower(s.Key)) || r.ownFile(s.File) {
			return true
		}
		_, below := files.ProgramPath(s.File, r.Trees()...)
		return len(below) == 0
	}), err
}

// trusts refuses to have git do what some settings are about, if one of them stands
// in a file of the work tree.
func (r *Repo) trusts(ctx context.Context, some func() *regexp.Regexp) error {
	found, err := r.ofTree(ctx, some)
	if err != nil || len(found) == 0 {
		return err
	}
	s := found[0]
	if rel, err := filepath.Rel(r.Top, s.File); err == nil && filepath.IsLocal(rel) {
		s.File = rel
	}
	return fmt.Errorf("git's configuration takes %s from %s in the work tree, where an agent may have written it; "+
		"if it is yours, set it in .git/config: git config --local %s …", s.Key, s.File, s.Key)
}

// ownFile is whether a file lies in the git folders, where no agent writes.
func (r *Repo) ownFile(path string) bool {
	for _, dir := range []string{r.Dir, r.Common} {
		if _, below := files.Below(dir, path); below {
			return true
		}
	}
	return false
}
