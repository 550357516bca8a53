package git

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/pawl-dev/pawl/internal/keep/files"
)

// Shadow is a git directory of pawl's own over the work tree of a [Repo]. It has
// no refs. What it stores goes to an object store of pawl's own.
type Shadow struct {
	Repo    *Repo
	Dir     string
	Who     Person // who commits in the repository: in git's configuration, else pawl
	objects string // where it stores; "" is the store of Repo
}

// plain switches off every conversion for every path. It stands in
// info/attributes, which beats any .gitattributes of the work tree.
const plain = "* -text !eol -crlf -ident !filter !working-tree-encoding !diff !merge\n"

// OpenShadow makes or refreshes the git directory at dir, which must lie
// outside of the work tree. It takes over what the repository says about
// ignored files and letter case, and nothing else of its configuration. What it
// stores goes to the objects of store.
func OpenShadow(ctx context.Context, r, store *Repo, dir string) (*Shadow, error) {
	settings, err := r.Config(ctx)
	if err != nil {
		return nil, err
	}
	own := *r
	own.NoModes = latestValues(settings)["core.filemode"] == "false"
	s := &Shadow{Repo: &own, Dir: dir, Who: identityOf(settings), objects: store.Objects}
	config, err := s.configText(ctx, settings)
	if err != nil {
		return nil, err
	}
	return s, keepGitDir(dir, config, plain)
}

// keepGitDir makes or refreshes a git directory of pawl's own.
func keepGitDir(dir, config, attributes string) error {
	for _, d := range []string{"objects/info", "objects/pack", "refs", "info"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o700); err != nil {
			return fmt.Errorf("cannot make pawl's git directory: %w", err)
		}
	}
	for _, f := range []struct{ name, text string }{
		{"HEAD", "ref: refs/heads/none\n"}, {"config", config}, {"info/attributes", attributes},
	} {
		if err := keepFile(filepath.Join(dir, f.name), []byte(f.text)); err != nil {
			return fmt.Errorf("cannot make pawl's git directory: %w", err)
		}
	}
	return nil
}

// Over is the same git directory over the files of another folder, which need
// be no repository. What is stored goes to the same object store.
func (s *Shadow) Over(dir string) *Shadow {
	over, repo := *s, *s.Repo
	repo.Top = dir
	over.Repo = &repo
	return &over
}

func (s *Shadow) configText(ctx context.Context, settings []Setting) (string, error) {
	ignore, err := s.Repo.ignoreLine(ctx, settings)
	if err != nil {
		return "", err
	}
	text := "[core]\n\trepositoryFormatVersion = 1\n\tbare = false\n\tfileMode = true\n\tsymlinks = true\n" +
		"\tautocrlf = false\n\tuntrackedCache = false\n\tattributesFile = /dev/null\n" +
		"\tprotectNTFS = false\n\tprotectHFS = false\n\tlogAllRefUpdates = false\n"
	text += ignore + configLines(settings, "ignorecase", "precomposeunicode", "sharedrepository")
	return text + "[extensions]\n\tobjectFormat = " + s.Repo.Format + "\n", nil
}

// keepFile writes a file atomically unless it has the content already.
func keepFile(path string, data []byte) error {
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, data) {
		return nil
	}
	return files.Replace(path, data, 0o600, false)
}

// SetExclude makes rules the repository-wide ignore rules of the shadow.
func (s *Shadow) SetExclude(rules []byte) error {
	if err := keepFile(filepath.Join(s.Dir, "info", "exclude"), rules); err != nil {
		return fmt.Errorf("cannot write pawl's copy of info/exclude: %w", err)
	}
	return nil
}

// newCall makes a call in the shadow, without an index.
func (s *Shadow) newCall(args ...string) call {
	return call{Dir: s.Repo.Top, Args: args, Trees: s.Repo.Trees(), Env: []string{
		"GIT_DIR=" + s.Dir, "GIT_WORK_TREE=" + s.Repo.Top, "GIT_OBJECT_DIRECTORY=" + cmp.Or(s.objects, s.Repo.Objects),
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_ATTR_NOSYSTEM=1",
	}}
}
