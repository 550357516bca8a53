package process

import (
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

var bootID = sync.OnceValue(func() string {
	data, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(data))
})

var bootTime = sync.OnceValue(func() time.Time {
	data, _ := os.ReadFile("/proc/stat")
	for line := range strings.Lines(string(data)) {
		if secs, ok := strings.CutPrefix(line, "btime "); ok {
			if n, err := strconv.ParseInt(strings.TrimSpace(secs), 10, 64); err == nil {
				return time.Unix(n, 0)
			}
		}
	}
	return time.Time{}
})

var pidSpace = sync.OnceValue(func() string {
	link, _ := os.Readlink("/proc/self/ns/pid")
	return link
})

// AwaitEnd waits until the process has ended, whoever's child it is. It
// returns false when ctx is done first.
func (id Identity) AwaitEnd(ctx context.Context) bool {
	fd, err := unix.PidfdOpen(id.PID, 0)
	if err != nil {
		return pollEnd(ctx, id)
	}
	defer func() { _ = unix.Close(fd) }()
	for Look(id) == Living {
		// A short bound, so that a done ctx is seen; the end itself wakes at once.
		_, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int((20 * time.Millisecond).Milliseconds())) //nolint:gosec // a descriptor fits
		if err != nil && !errors.Is(err, unix.EINTR) {
			return pollEnd(ctx, id)
		}
		if ctx.Err() != nil {
			return Look(id) != Living
		}
	}
	return true
}
