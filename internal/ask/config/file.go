package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/pawl-dev/pawl/internal/ask/config/statedir"
	"github.com/pawl-dev/pawl/internal/do/trust"
)

// texts reads the files that commands are taken from, and keeps what it read.
type texts struct {
	root   string
	pinned []trust.File // used instead of the files
	read   []trust.File
}

// readFile reads one. An error is a reason without the path.
func (t *texts) readFile(path string) ([]byte, error) {
	is := func(f trust.File) bool { return f.Path == path }
	var f trust.File
	if at := slices.IndexFunc(t.pinned, is); at >= 0 {
		f = t.pinned[at]
	} else {
		f = trust.Read(t.root, path)
	}
	if !slices.ContainsFunc(t.read, is) {
		t.read = append(t.read, f)
	}
	switch f.Why {
	case "":
		return []byte(f.Text), nil
	case trust.Missing:
		return nil, syscall.ENOENT
	}
	return nil, errors.New(f.Why)
}

// WriteNew writes a file that does not exist yet; one that exists, in any
// form, is an error and stays as it is.
func WriteNew(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644) //nolint:gosec // to be committed
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("cannot write %s: it exists already; edit it, or remove it first: %w", path, fs.ErrExist)
	}
	if err != nil {
		return fmt.Errorf("cannot write %s: %v", path, statedir.BareReason(err))
	}
	_, err = f.Write(data)
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		_ = os.Remove(path) // it is ours and half-written
		return fmt.Errorf("cannot write %s: %v", path, statedir.BareReason(err))
	}
	return nil
}

// userFile is the user-wide file; "" if the environment names no place for it.
func userFile(vars map[string]string) string {
	switch {
	case filepath.IsAbs(vars["XDG_CONFIG_HOME"]):
		return filepath.Join(vars["XDG_CONFIG_HOME"], "pawl", "config.yaml")
	case filepath.IsAbs(vars["HOME"]):
		return filepath.Join(vars["HOME"], ".config", "pawl", "config.yaml")
	}
	return ""
}

// displayPath is a file as its reader would name it: relative to where they are
// (or to the root, for what is in it), from ~, or absolute.
func displayPath(path, dir, home string) string {
	if rel, err := filepath.Rel(dir, path); err == nil {
		up := strings.Count(rel, ".."+string(filepath.Separator))
		ofRoot := filepath.Base(path) == statedir.FileName && up*3+len(statedir.FileName) == len(rel)
		if up == 0 || ofRoot {
			return rel
		}
	}
	if home != "" {
		if rel, ok := strings.CutPrefix(path, filepath.Clean(home)+string(filepath.Separator)); ok {
			return "~" + string(filepath.Separator) + rel
		}
	}
	return path
}
