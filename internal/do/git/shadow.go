package git

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/pawl-dev/pawl/internal/keep/files"
)

// Shadow is a git directory of pawl's own over the work tree and the object
// store of a [Repo]. It has no refs and shares no file but objects.
type Shadow struct {
	Repo *Repo
	Dir  string
	Who  Person // who commits in the repository: in git's configuration, else pawl
}

// plain switches off every conversion for every path. It stands in
// info/attributes, which beats any .gitattributes of the work tree.
const plain = "* -text !eol -crlf -ident !filter !working-tree-encoding !diff !merge\n"

// OpenShadow makes or refreshes the git directory at dir, which must lie
// outside of the work tree. It takes over what the repository says about
// ignored files and letter case, and nothing else of its configuration.
func OpenShadow(ctx context.Context, r *Repo, dir string) (*Shadow, error) {
	settings, err := r.Config(ctx)
	if err != nil {
		return nil, err
	}
	s := &Shadow{Repo: r, Dir: dir, Who: identity(settings)}
	config, err := s.config(ctx, settings)
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
	over := *s.Repo
	over.Top = dir
	return &Shadow{Repo: &over, Dir: s.Dir}
}

func (s *Shadow) config(ctx context.Context, settings []Setting) (string, error) {
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

// call makes a call in the shadow, without an index.
func (s *Shadow) call(args ...string) call {
	return call{dir: s.Repo.Top, args: args, trees: s.Repo.Trees(), env: []string{
		"GIT_DIR=" + s.Dir, "GIT_WORK_TREE=" + s.Repo.Top, "GIT_OBJECT_DIRECTORY=" + s.Repo.Objects,
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_ATTR_NOSYSTEM=1",
	}}
}
