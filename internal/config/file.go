package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// readBounded reads a regular file of at most maxFile bytes. Its errors are a
// reason without the path.
func readBounded(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, reason(err)
	case info.IsDir():
		return nil, errors.New("it is a folder, not a file")
	case !info.Mode().IsRegular():
		// Opening a pipe would wait for its writer.
		return nil, errors.New("it is not a regular file")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, reason(err)
	}
	defer func() { _ = f.Close() }() // nothing was written
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	switch {
	case err != nil:
		return nil, reason(err)
	case len(data) > maxFile:
		return nil, fmt.Errorf("it is larger than 1 MiB (%d bytes)", max(info.Size(), int64(len(data))))
	}
	return data, nil
}

// reason takes operation and path off an error, which the message names by
// itself; fs.ErrNotExist can still be found.
func reason(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// WriteNew writes a file that does not exist yet; one that exists, in any
// form, is an error and stays as it is.
func WriteNew(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644) //nolint:gosec // a file of the project, to be committed
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("cannot write %s: it exists already; edit it, or remove it first: %w", path, fs.ErrExist)
	}
	if err != nil {
		return fmt.Errorf("cannot write %s: %v", path, reason(err))
	}
	_, err = f.Write(data)
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		_ = os.Remove(path) // it is ours and half-written
		return fmt.Errorf("cannot write %s: %v", path, reason(err))
	}
	return nil
}
