package git

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// Setting is one value of the configuration.
type Setting struct {
	Scope string // system, global, local, worktree or command
	File  string // absolute; empty when it is not from a file
	Key   string // section and name in lower case
	Value string
}

// Config lists the effective configuration, included files too, in git's order.
func (r *Repo) Config(ctx context.Context) ([]Setting, error) {
	out, err := run(ctx, r.call("config", "--list", "--show-scope", "--show-origin", "--includes", "-z"))
	if err != nil {
		return nil, fmt.Errorf("cannot read the git configuration: %w", err)
	}
	var all []Setting
	for f := range slices.Chunk(records(out), 3) {
		if len(f) < 3 {
			return nil, errors.New("cannot read the git configuration: odd answer")
		}
		s := Setting{Scope: f[0]}
		if file, ok := strings.CutPrefix(f[1], "file:"); ok {
			s.File = file
			if !filepath.IsAbs(file) {
				s.File = filepath.Join(r.Top, file)
			}
		}
		s.Key, s.Value, _ = strings.Cut(f[2], "\n")
		all = append(all, s)
	}
	return all, nil
}

// ConfigPath is the value of a key that names a file, with ~ expanded; it is
// empty when the key is not set.
func (r *Repo) ConfigPath(ctx context.Context, key string) (string, error) {
	out, err := run(ctx, r.call("config", "-z", "--type=path", "--get", key))
	if exitCode(err) == 1 {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("cannot read %s of the git configuration: %w", key, err)
	}
	return strings.TrimSuffix(string(out), "\x00"), nil
}

// ConfigBool is the value of a key that is true or false; a key that is not
// set is false.
func (r *Repo) ConfigBool(ctx context.Context, key string) (bool, error) {
	out, err := run(ctx, r.call("config", "--type=bool", "--get", key))
	if exitCode(err) == 1 {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("cannot read %s of the git configuration: %w", key, err)
	}
	return strings.TrimSpace(string(out)) == "true", nil
}
