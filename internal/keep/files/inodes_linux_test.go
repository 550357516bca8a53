package files

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A disk that has bytes and takes no more files is full, and it is said why.
func TestNoInodes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m,nr_inodes=30"); err != nil {
		t.Skipf("cannot mount a small disk here: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	if free, err := Free(dir); err != nil || free == 0 || !strings.Contains(FreeText(free, dir), "1 MB are free") {
		t.Errorf("at first: %d, %v", free, err)
	}
	for i := 0; ; i++ {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), nil, 0o600); err != nil {
			break
		}
	}
	if free, err := Free(dir); err != nil || free != 0 || !strings.Contains(FreeText(free, dir), "no inodes are free: df -i") {
		t.Errorf("%d, %v, %s", free, err, FreeText(free, dir))
	}
}
