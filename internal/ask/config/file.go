package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"syscall"

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

// bareReason takes operation and path off an error, which the message names by
// itself; fs.ErrNotExist can still be found.
func bareReason(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}

// WriteNew writes a file that does not exist yet; one that exists, in any
// form, is an error and stays as it is.
func WriteNew(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644) //nolint:gosec // to be committed
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("cannot write %s: it exists already; edit it, or remove it first: %w", path, fs.ErrExist)
	}
	if err != nil {
		return fmt.Errorf("cannot write %s: %v", path, bareReason(err))
	}
	_, err = f.Write(data)
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		_ = os.Remove(path) // it is ours and half-written
		return fmt.Errorf("cannot write %s: %v", path, bareReason(err))
	}
	return nil
}
