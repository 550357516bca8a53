package console

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// IsTerminal is true for a file that a person looks at.
func IsTerminal(f *os.File) bool {
	_, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	return err == nil
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
	f, ok := w.(*os.File)
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
