package files

import (
	"errors"
	"io"
	"os"
)

// ErrLarge is that a file has more bytes than may be copied.
var ErrLarge = errors.New("the file is too large")

// Copy copies a regular file, at most limit bytes of it, from one folder to
// another that has nothing of that name: bytes, permissions and time, by sharing
// blocks where the file system can. It returns how many bytes they were.
func Copy(from, to *os.Root, name string, limit int64) (int64, error) {
	in, err := from.Open(name)
	if err != nil {
		return 0, err
	}
	defer in.Close()
	info, err := in.Stat()
	switch {
	case err != nil, !info.Mode().IsRegular():
		return 0, err
	case info.Size() > limit:
		return 0, ErrLarge
	}
	out, err := to.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, info.Mode().Perm()|0o200)
	if err != nil {
		return 0, err
	}
	n, err := io.Copy(out, io.LimitReader(in, limit+1))
	if err = errors.Join(err, out.Close()); err == nil && n > limit {
		err = ErrLarge // it grew
	}
	return n, errors.Join(err, to.Chtimes(name, info.ModTime(), info.ModTime()))
}
