package process

import (
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// Sealed is what r has, as a file without a name that nobody can change any
// more. It is read from its beginning.
func Sealed(r io.Reader) (*os.File, error) {
	fd, err := unix.MemfdCreate("pawl", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("cannot make a file in memory: %v", err)
	}
	f := os.NewFile(uintptr(fd), "sealed") //nolint:gosec // a descriptor fits
	if _, err = io.Copy(f, r); err == nil {
		const all = unix.F_SEAL_SEAL | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_WRITE
		_, err = unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, all)
	}
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("cannot fill a file in memory: %v", err)
	}
	return f, nil
}
