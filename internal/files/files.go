// Package files writes files that several processes share: whole or not at
// all, and by one of them at a time. It knows nothing of what is in them.
package files

import (
	"errors"
	"os"
	"path/filepath"
)

// Replace writes a file in one step: a reader, and a crash, see the old
// content or the new one. The new file has the mode. With synced it also
// survives a power loss, which costs two writes to the disk.
func Replace(path string, data []byte, mode os.FileMode, synced bool) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".pawl-*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil && mode != 0o600 { // what it is made with
		err = f.Chmod(mode)
	}
	if err == nil && synced {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return err
	}
	if synced {
		return Sync(filepath.Dir(path))
	}
	return nil
}
