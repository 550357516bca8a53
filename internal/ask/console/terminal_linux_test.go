package console

import (
	"io"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// openTerminal opens one; where there is none the test is skipped.
func openTerminal(t *testing.T) *os.File {
	t.Helper()
	f, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip("no terminal can be opened: ", err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func resize(t *testing.T, f *os.File, columns, rows int) {
	t.Helper()
	set := unix.Winsize{Col: uint16(columns), Row: uint16(rows)}
	if err := unix.IoctlSetWinsize(int(f.Fd()), unix.TIOCSWINSZ, &set); err != nil {
		t.Fatal(err)
	}
}

// A terminal says how large it is; where one does not, or there is none, it is
// as large as terminals always were.
func TestSize(t *testing.T) {
	t.Parallel()
	f := openTerminal(t)
	for _, c := range []struct{ columns, rows, width, height int }{
		{120, 40, 120, 40}, {0, 0, 80, 24}, {120, 0, 120, 24}, {0, 40, 80, 40},
	} {
		resize(t, f, c.columns, c.rows)
		if width, height := Size(f); width != c.width || height != c.height || Width(f) != c.width || !OnTerminal(f) {
			t.Errorf("%d columns and %d rows: %d and %d", c.columns, c.rows, width, height)
		}
	}
	file, err := os.Create(t.TempDir() + "/file")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	for _, w := range []io.Writer{file, io.Discard} {
		if width, height := Size(w); width != 80 || height != 24 || OnTerminal(file) {
			t.Errorf("no terminal: %d and %d", width, height)
		}
	}
}
