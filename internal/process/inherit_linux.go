package process

import (
	"bufio"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

var ignoredMask = sync.OnceValue(func() uint64 {
	f, err := os.Open("/proc/self/status")
	if err != nil {
		return 0
	}
	defer func() { _ = f.Close() }()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if text, ok := strings.CutPrefix(lines.Text(), "SigIgn:"); ok {
			mask, _ := strconv.ParseUint(strings.TrimSpace(text), 16, 64)
			return mask
		}
	}
	return 0
})

func inheritedIgnored(sig syscall.Signal) bool { return ignoredMask()&(1<<(sig-1)) != 0 }

// CloseOnExec keeps descriptors above 2 that this process inherited from
// going on to its children.
func CloseOnExec() {
	if unix.CloseRange(3, ^uint(0), unix.CLOSE_RANGE_CLOEXEC) == nil {
		return
	}
	names, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return
	}
	for _, n := range names {
		if fd, err := strconv.Atoi(n.Name()); err == nil && fd > 2 {
			unix.CloseOnExec(fd)
		}
	}
}
