package git

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// Setting is one value of the configuration.
type Setting struct {
	Scope string // system, global, local, worktree or command
	File  string // absolute; empty when it is not from a file
	Key   string // section and name in lower case
	Value string
}

// configured is the configuration as it was last read.
type configured struct {
	mu       sync.Mutex
	settings []Setting
	files    []string // where it came from or could come from
	sum      string   // of the files; empty when it must be read anew each time
}

// Config lists the effective configuration, included files too, in git's order.
// Git is asked only when one of its files is not as it was, or when files
// include others. The list is not the caller's to change.
func (r *Repo) Config(ctx context.Context) ([]Setting, error) {
	last := &r.configured
	last.mu.Lock()
	defer last.mu.Unlock()
	if last.sum != "" && last.sum == sumFiles(last.files) {
		return last.settings, nil
	}
	files := r.configFiles(last.settings)
	before := sumFiles(files) // before git reads them, so that a change in between is seen next time
	last.settings, last.files, last.sum = nil, nil, ""
	all, err := r.readConfig(ctx)
	if err != nil {
		return nil, err
	}
	last.settings, last.files = all, r.configFiles(all)
	if slices.Equal(last.files, files) && !slices.ContainsFunc(all, includes) {
		last.sum = before // else there is a file that was not looked at: next time
	}
	return all, nil
}

// knowConfig makes the configuration known of a repository that has the given
// file of its own, which pawl wrote, and otherwise what holds for another one of the
// same user. What is not certain is left to git.
func (r *Repo) knowConfig(ctx context.Context, like *Repo, own string) {
	local, ok := r.plainSettings(own)
	if !ok {
		return
	}
	files := r.configFiles(nil)
	sum := sumFiles(files) // before the other one looks, so that a change in between is seen next time
	all, err := like.Config(ctx)
	if err != nil || slices.ContainsFunc(all, includes) {
		return
	}
	var settings []Setting
	for _, s := range all {
		switch s.Scope {
		case "local", "worktree":
			continue
		case "command":
			settings, local = append(settings, local...), nil
		}
		settings = append(settings, s)
	}
	settings = append(settings, local...)
	if slices.Equal(files, r.configFiles(settings)) {
		r.configured.settings, r.configured.files, r.configured.sum = settings, files, sum
	}
}

// plainSettings reads a configuration file of lines as pawl writes them.
func (r *Repo) plainSettings(text string) (all []Setting, ok bool) {
	section := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if head, is := strings.CutPrefix(line, "["); is {
			section = strings.TrimSuffix(head, "]") + "."
			continue
		}
		key, value, found := strings.Cut(strings.TrimPrefix(line, "\t"), " = ")
		if plain, quoted := strings.CutPrefix(value, `"`); quoted {
			value = strings.TrimSuffix(plain, `"`)
		}
		if !found || strings.ContainsAny(value, "\"\\") {
			return nil, false
		}
		all = append(all, Setting{Scope: "local", File: filepath.Join(r.Common, "config"), Key: strings.ToLower(section + key), Value: value})
	}
	return all, len(all) > 0
}

// includes reports whether a setting names another file of settings.
func includes(s Setting) bool {
	return s.Key == "include.path" || strings.HasPrefix(s.Key, "includeif.")
}

// configFiles are the files that git reads without being told, and those that
// the settings came from: a git that was built for another place has its
// system-wide file there.
func (r *Repo) configFiles(settings []Setting) []string {
	home := os.Getenv("HOME")
	xdg := os.Getenv("XDG_CONFIG_HOME")
	if xdg == "" {
		xdg = filepath.Join(home, ".config")
	}
	files := []string{
		filepath.Join(r.Common, "config"), filepath.Join(r.Dir, "config.worktree"),
		filepath.Join(home, ".gitconfig"), filepath.Join(xdg, "git", "config"), "/etc/gitconfig",
		os.Getenv("GIT_CONFIG_GLOBAL"), os.Getenv("GIT_CONFIG_SYSTEM"),
	}
	known := map[string]bool{"": true}
	for _, f := range files {
		known[f] = true
	}
	for _, s := range settings {
		if !known[s.File] {
			known[s.File] = true
			files = append(files, s.File)
		}
	}
	return files
}

// configLimit is the size in bytes of a file whose content is compared.
const configLimit = 1 << 20

// sumFiles is a sum of what files are and hold; empty if it cannot be certain.
func sumFiles(files []string) string {
	h := sha256.New()
	for _, name := range files {
		if name == "" {
			continue
		}
		fmt.Fprintf(h, "%s\x00", name)
		info, err := os.Stat(name)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil || !info.Mode().IsRegular() || info.Size() > configLimit {
			return ""
		}
		data, err := os.ReadFile(name)
		if err != nil {
			return ""
		}
		fmt.Fprintf(h, "%d\x00", len(data))
		h.Write(data)
	}
	return hex.EncodeToString(h.Sum(nil))
}

func (r *Repo) readConfig(ctx context.Context) ([]Setting, error) {
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
	settings, err := r.Config(ctx)
	if err != nil {
		return "", err
	}
	if path, plain := plainPath(latest(settings)[strings.ToLower(key)]); plain {
		return path, nil
	}
	out, err := run(ctx, r.call("config", "-z", "--type=path", "--get", key))
	if exitCode(err) == 1 {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("cannot read %s of the git configuration: %w", key, err)
	}
	return strings.TrimSuffix(string(out), "\x00"), nil
}

// plainPath is the path that a value stands for. It is not plain when only git
// knows what it expands to, such as another user's home.
func plainPath(value string) (path string, plain bool) {
	if rest, ok := strings.CutPrefix(value, "~/"); ok && os.Getenv("HOME") != "" {
		return filepath.Join(os.Getenv("HOME"), rest), true
	}
	return value, !strings.HasPrefix(value, "~") && !strings.HasPrefix(value, "%(") && !strings.HasPrefix(value, ":")
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
