package workspace

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/git"
)

// configured is git's configuration as it was last read.
type configured struct {
	settings []git.Setting
	files    []string // where it came from or could come from
	sum      string   // of the files; empty when it must be read anew each time
}

// settings is the effective git configuration. Git is asked only when one of
// its files is not as it was, or when files include others.
func (c *Checkout) settings(ctx context.Context) ([]git.Setting, error) {
	c.configMu.Lock()
	defer c.configMu.Unlock()
	last := &c.config
	if last.sum != "" && last.sum == sumFiles(last.files) {
		return last.settings, nil
	}
	files := c.configFiles(last.settings)
	before := sumFiles(files) // before git reads them, so that a change in between is seen next time
	all, err := c.Repo.Config(ctx)
	*last = configured{}
	if err != nil {
		return nil, err
	}
	*last = configured{settings: all, files: c.configFiles(all), sum: before}
	if !slices.Equal(last.files, files) {
		last.sum = "" // a file that was not looked at: next time
	}
	for _, s := range all {
		if s.Key == "include.path" || strings.HasPrefix(s.Key, "includeif.") {
			last.sum = ""
		}
	}
	return all, nil
}

// configFiles are the files that git reads without being told, and those that
// the settings came from: a git that was built for another place has its
// system-wide file there.
func (c *Checkout) configFiles(settings []git.Setting) []string {
	home := os.Getenv("HOME")
	xdg := os.Getenv("XDG_CONFIG_HOME")
	if xdg == "" {
		xdg = filepath.Join(home, ".config")
	}
	files := []string{
		filepath.Join(c.Repo.Common, "config"), filepath.Join(c.Repo.Dir, "config.worktree"),
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

// sumFiles is a sum of what files are and hold; empty if it cannot be certain.
func sumFiles(files []string) string {
	h := sha256.New()
	for _, name := range files {
		if name == "" {
			continue
		}
		fmt.Fprintf(h, "%s\x00", name)
		info, err := os.Lstat(name)
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			return ""
		}
		if to, err := os.Stat(name); err != nil || !to.Mode().IsRegular() || to.Size() > hookLimit {
			return ""
		}
		hashNode(h, name, info)
	}
	return hex.EncodeToString(h.Sum(nil))
}
