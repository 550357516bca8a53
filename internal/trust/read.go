package trust

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/pawl-dev/pawl/internal/files"
)

// maxFile is the size in bytes over which a file is not read.
const maxFile = 1 << 20

// Missing is the reason of a file that is not there.
var Missing = syscall.ENOENT.Error()

// Read reads a regular file. Below root, where an agent may have put it, no
// symbolic link is followed.
func Read(root, path string) File {
	f := File{Path: path}
	data, err := content(root, path)
	if err != nil {
		if p, ok := errors.AsType[*fs.PathError](err); ok {
			err = p.Err
		}
		f.Why = err.Error()
	}
	f.Text = string(data)
	return f
}

func content(root, path string) ([]byte, error) {
	file, err := open(root, path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // nothing was written
	data, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err == nil && len(data) > maxFile {
		size := int64(len(data))
		if info, err := file.Stat(); err == nil {
			size = max(size, info.Size())
		}
		return nil, fmt.Errorf("it is larger than 1 MiB (%d bytes)", size)
	}
	return data, err
}

func open(root, path string) (*os.File, error) {
	info, err := os.Lstat(path)
	if err == nil && info.IsDir() {
		return nil, errors.New("it is a folder, not a file")
	}
	if name, below := files.Below(root, path); below {
		return files.OpenBelow(root, name)
	}
	if err == nil {
		info, err = os.Stat(path)
	}
	if err == nil && !info.Mode().IsRegular() {
		err = files.ErrNotRegular // opening a pipe would wait for its writer
	}
	if err != nil {
		return nil, err
	}
	return os.Open(path)
}
