package cli

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// isTerminal is true for a file that a person looks at.
func isTerminal(f *os.File) bool {
	_, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	return err == nil
}

// terminalWidth is the columns of a terminal, 80 when it does not say.
func terminalWidth(w io.Writer) int {
	width, _ := terminalSize(w)
	return width
}

// terminalSize is the columns and rows of a terminal, 80 and 24 when it does
// not say.
func terminalSize(w io.Writer) (width, height int) {
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
