package console

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// OnTerminal is true where a person looks at what is written, or types what is read.
func OnTerminal(stream any) bool {
	if _, ok := stream.(*SafeWriter); ok {
		return true
	}
	f, ok := stream.(*os.File)
	if !ok {
		return false
	}
	_, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	return err == nil
}

// Waits is true where something can be read from a pipe now.
func Waits(f *os.File) bool {
	fds := []unix.PollFd{{Fd: int32(f.Fd()), Events: unix.POLLIN}} //nolint:gosec // descriptors are small numbers
	n, err := unix.Poll(fds, 0)
	return err == nil && n == 1 && fds[0].Revents&unix.POLLIN != 0
}

// Width is the columns of a terminal, 80 when it does not say.
func Width(w io.Writer) int {
	width, _ := Size(w)
	return width
}

// Size is the columns and rows of a terminal, 80 and 24 when it does
// not say.
func Size(w io.Writer) (width, height int) {
	width, height = 80, 24
	f, ok := Raw(w).(*os.File)
	if !ok {
		return width, height
	}
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return width, height
	}
	if size.Col > 0 {
		width = int(size.Col)
	}
	if size.Row > 0 {
		height = int(size.Row)
	}
	return width, height
}
